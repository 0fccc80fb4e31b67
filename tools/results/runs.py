"""The tables of trained networks: accuracy compared with the paper's, and the recipes tried."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lbq_hw.markdown import table
from tools.results.store import METHODS, PAPERS, Results, Run
from tools.results.text import join, paragraph, percent, points

SHARP = (
    '"Sharpness-aware" epochs are the last ones too, their gradients taken a short way uphill from '
    "the weights (Foret et al., arXiv:2010.01412; late in training: Zhou et al., "
    "arXiv:2410.10373)."
)


def accuracy(results: Results) -> str | None:
    """One line per run and width of its weights, or None if there is no run."""
    if not results.runs:
        return None
    runs = dict(sorted(results.runs.items(), key=lambda item: _rank(item[1])))
    settings = ("dataset", "", "run", "weights", "training", "seed")
    headings = (*settings, "float", "integer", "difference", "paper")
    rows = [row for name in runs for row in _accuracy_rows(name, results)]
    last = [
        f"{run.last_weights:.2f} % ({name})"
        for name, run in runs.items()
        if run.last_weights is not None
    ]
    first = paragraph(
        "Percent of test images classified right after the last epoch, not the best one.",
        "Float is evaluated in fp32.",
        _tested(results),
        f"All of it is from {len(runs)} run{'s' if len(runs) > 1 else ''}.",
    )
    parts = [first, table(headings, rows, words=range(5))]
    if any(run.refine_epochs for run in runs.values()):
        mild = 'Epochs on "mild" images are the last ones, without AutoAugment and cutout.'
        parts.append(paragraph(mild))
    if any(run.sam_epochs for run in runs.values()):
        parts.append(paragraph(SHARP))
    if last:
        kept = (
            "Where weights are averaged over steps, the average is what is tested and deployed; "
            f"the last weights themselves give {join(last)} in float."
        )
        parts.append(paragraph(kept))
    return "\n".join(parts)


def recipes(results: Results) -> str | None:
    """One line per run that was made to choose a recipe, or None if there is none."""
    if not results.validation:
        return None
    rows = []
    for name, run in sorted(results.validation.items(), key=lambda item: item[1].accuracy):
        shown = [change for change in run.changes if not change.startswith(_BUDGET)]
        facts = (", ".join(shown) or "none", f"{run.epochs}", f"{run.seed}", percent(run.accuracy))
        rows.append((run.name, name, *facts))
    first = paragraph(
        "Recipes are chosen on images held out of the training split (`data.validation`), the same",
        "in every run. Percent of these classified right after the last epoch; the test images",
        "were not read.",
    )
    headings = ("configuration", "run", "changes", "epochs", "seed", "validation")
    return first + "\n" + table(headings, rows, words=range(3))


_BUDGET = ("data.validation=", "train.epochs=")


def _tested(results: Results) -> str:
    """A sentence on how integer accuracies were measured."""
    nets = results.measured.values()
    if not nets:
        return "No integer network was measured."
    images = join([f"{n:,}" for n in sorted({net["images"] for net in nets})])
    told = f"Integer is the exported network on {images} test images"
    if all("golden" in net for net in nets):
        proven = min(net["golden"]["images"] for net in nets)
        return f"{told}, in torch; on the first {proven:,} all logits were equal to golden's."
    return f"{told}, in torch."


def _accuracy_rows(name: str, results: Results) -> Iterator[tuple[str, ...]]:
    run, nets = results.runs[name], results.nets_of(name)
    papers = percent(theirs(run, results.paper))
    for net in nets or [None]:
        bits = run.weight_bits if net is None else net["weight_bits"]
        integer = difference = ""
        if net is not None:
            integer = percent(net["accuracy"])
            difference = points(net["accuracy"] - run.accuracy)
        own = "".join(f", {count} in {layers}" for layers, count in run.layer_bits.items())
        weights = f"{bits} bit{own}{', trained so' if run.weight_bits else ''}" if bits else "float"
        words = run.dataset, label(run), name, weights, _training(run), str(run.seed)
        yield *words, percent(run.accuracy), integer, difference, papers


def theirs(run: Run, paper: Mapping[str, Any]) -> float | None:
    """The paper's accuracy of this network with this neuron, if the paper has one."""
    if run.network:
        return None
    if run.method == "lbq" and run.capacity == 5:
        return paper["accuracy"].get(run.dataset, {}).get(str(run.timesteps))
    if run.dataset != PAPERS:
        return None
    if run.method == "lbq":
        known = paper["lbq"].get(str(run.capacity)) if run.timesteps == 2 else None
        return known and known["accuracy"]
    return paper["ablation"].get(run.method) if run.timesteps in (1, 2) else None


def _rank(run: Run) -> tuple[Any, ...]:
    """Sort key: CIFAR-10, T = 2 and the paper's networks come first."""
    images = run.dataset != PAPERS, run.dataset, run.network
    method = [*METHODS].index("lbq") != [*METHODS].index(run.method), run.method
    size = run.timesteps != 2, run.timesteps, run.capacity, run.weight_bits
    return *images, *method, *size, run.seed, run.refine_epochs, run.sam_epochs


def label(run: Run) -> str:
    """The name of a run's network in a row."""
    name = f"LBQ({run.capacity})" if run.method == "lbq" else METHODS[run.method]
    shape = (run.network,) if run.network else ()
    return ", ".join((name, *shape, f"T = {run.timesteps}"))


def _training(run: Run) -> str:
    words = [f"{run.epochs} epochs"]
    words += [f"batch {run.batch}"] if not run.init else [f"from {run.init}"]
    words += [f"last {run.refine_epochs} mild"] if run.refine_epochs else []
    words += [f"last {run.sam_epochs} sharpness-aware"] if run.sam_epochs else []
    words += [f"activity {run.activity:g}"] if run.activity else []
    return ", ".join(words)
