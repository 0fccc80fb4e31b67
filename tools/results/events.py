"""The effect of events as a cost in the loss: accuracy and accumulations."""

from __future__ import annotations

from lbq_hw.markdown import table
from tools.results.runs import label
from tools.results.store import Results, Run
from tools.results.text import paragraph, percent


def _order(run: Run) -> tuple[str, int, float]:
    return run.network, run.weight_bits, run.activity


def section(results: Results) -> str | None:
    """The events of networks that were trained with ``train.activity``, and the events of the
    networks from which they started; None if there are none.
    """
    found = {name: run for name, run in results.runs.items() if run.activity}
    if not found:
        return None
    rows = []
    starts = {net["model"]: name for name, net in results.measured.items()}
    for name, run in sorted(found.items(), key=lambda item: _order(item[1])):
        begun = starts.get(run.init)
        for each in (begun, name):
            for net in results.nets_of(each) if each else ():
                own = results.runs[str(each)]
                acs = net["energy"]["paper"]["lbq"]["acs"] / 1e6
                words = label(own), str(each), f"{net['weight_bits']} bit", f"{own.activity:g}"
                facts = percent(own.accuracy), percent(net["accuracy"]), f"{acs:,.1f}"
                if (*words, *facts) not in rows:
                    rows.append((*words, *facts))
    first = paragraph(
        "A core's cycles are its bit-sparse ACs over its lanes. With `train.activity` the loss has",
        "the mean level that an accumulation meets, times a weight. ACs per image are those of the",
        'tables above: "not counted", pixels and identity shortcuts left out.',
    )
    headings = ("", "run", "weights", "weight in the loss", "float", "integer", "ACs, M")
    return first + "\n" + table(headings, rows, words=range(3))
