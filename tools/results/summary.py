"""The first page of the results: figures, what was reproduced, what was not, and our additions."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping
from statistics import mean
from typing import Any

from lbq_hw.markdown import table
from tools.results import ablation, curves, layers, levels, surrogates
from tools.results.runs import label
from tools.results.store import PAPERS, Results, Run
from tools.results.text import join, millions, paragraph, percent, points

FIGURE = "additions.svg"
DETAILS = "details.md"


def page(results: Results) -> str:
    """The whole page, as Markdown."""
    folder = results.folder.name
    parts = [
        "# Results\n",
        f"<!-- made by python -m tools.results docs/{folder}; change the JSON, not this file -->\n",
    ]
    if additions(results):
        parts += [
            f"![accuracy against additions]({folder}/{FIGURE})\n",
            paragraph(
                "CIFAR-10, ResNet-20, T = 2: accuracy of the integer network against its",
                "bit-sparse additions per image, taps of padding counted, beside the paper's. A",
                "number at a dot is the weight of events in the loss, or the bits of stage 3;",
                "dots without a name have N = 5. A bar spans the seeds of a dot where there are",
                "several.",
            ),
        ]
    for title, make in SECTIONS.items():
        made = make(results)
        if made:
            parts += [f"## {title}\n", made]
    parts += [
        "## More\n",
        paragraph(
            f"[{DETAILS}]({folder}/{DETAILS}) has every run with its settings, costs by layer,",
            "recipes and training speed, and [commands.sh]"
            f"({folder}/commands.sh) the command of each run. Every number comes from the JSON",
            f"files in [{folder}]({folder}). Accuracies are those of the last epoch, never of the",
            "best one.",
        ),
    ]
    return "\n".join(parts)


def _short(results: Results) -> str | None:
    """One sentence each on what was reproduced, what was not, and our additions."""
    lines = [*_accuracies(results), *_learned(results), *_additions(results)]
    if _ours(results):
        lines.append(
            "**Ours**: 4-bit weights, 2 or 3 bits in stage 3, events as a cost in the loss, and"
            " networks for small chips ([below](#ours))."
        )
    wrapped = (
        textwrap.fill(line, 100, initial_indent="* ", subsequent_indent="  ") for line in lines
    )
    return "\n".join(wrapped) + "\n" if lines else None


def _accuracies(results: Results) -> Iterator[str]:
    """A sentence for every recipe with the paper's epochs, at the paper's two timesteps."""
    for dataset, by_steps in results.paper["accuracy"].items():
        found = []
        for (recipe, start), runs in _same(results, dataset, 2).items():
            if start or next(iter(runs.values())).epochs != results.paper["epochs"]:
                continue
            on = _chosen(results, runs)
            facts = [f"{len(runs)} seed{'s' if len(runs) > 1 else ''}"]
            facts += [f"chosen on {on} images"] if on else []
            accuracy = mean(run.accuracy for run in runs.values())
            found.append(f"{accuracy:.2f} % in float after {recipe} ({', '.join(facts)})")
        if found and "2" in by_steps:
            yield f"**{dataset}, T = 2**: {join(found)}; the paper has {by_steps['2']:.2f} %."


def _learned(results: Results) -> Iterator[str]:
    verdict = ablation.verdict(ablation.dots_of(results), results.paper)
    if verdict:
        yield f"**Learned step**: {verdict} ([ablation](#ablation))."


def _additions(results: Results) -> Iterator[str]:
    for net in results.nets(timesteps=2, dataset=PAPERS, capacity=5, weight_bits=8):
        known = results.paper["lbq"]["5"]["acs"]
        ours = net["energy"]["paper"]["lbq_with_padding"]["acs"]
        yield (
            f"**Additions**: LBQ(5) takes {abs(100 * (ours / known - 1)):.0f} %"
            f" {'more' if ours > known else 'fewer'} bit-sparse additions than the paper's"
            " ([cost](#cost))."
        )


def additions(results: Results) -> list[dict[str, Any]]:
    """The data of the first figure; runs of one network with different seeds are one dot."""
    found = [
        _dot("paper", f"LBQ({capacity})", known["acs"], [known["accuracy"]])
        for capacity, known in results.paper["lbq"].items()
    ]
    groups: dict[tuple[Any, ...], list[tuple[Run, Mapping[str, Any]]]] = {}
    for name, net in results.measured.items():
        run = results.runs.get(results.run_of(name) or "")
        if run is None or run.dataset != PAPERS or run.network or run.timesteps != 2:
            continue
        bits = tuple(run.layer_bits.items())
        sharp = bool(run.sam_epochs), run.refine_epochs
        key = net["weight_bits"], run.capacity, run.activity, run.epochs, run.init, bits, sharp
        groups.setdefault(key, []).append((run, net))
    for (bits, capacity, activity, *_), same in groups.items():
        run = same[0][0]
        group = f"ours, {bits} bit"
        group += ", fewer in stage 3" if run.layer_bits else ""
        group += ", events in the loss" if activity else ""
        if not (activity or run.init):
            group += f", {run.epochs} epochs"
        acs = mean(net["energy"]["paper"]["lbq_with_padding"]["acs"] for _, net in same)
        name = "" if capacity == 5 else f"LBQ({capacity})"
        name = f"{activity:g}" if activity else name
        name = f"{min(run.layer_bits.values())} bit" if run.layer_bits else name
        found.append(_dot(group, name, acs, [net["accuracy"] for _, net in same]))
    return found if len(found) > len(results.paper["lbq"]) else []


def _dot(group: str, name: str, acs: float, each: list[float]) -> dict[str, Any]:
    facts = {"group": group, "name": name, "acs": acs, "accuracy": mean(each)}
    return facts | {"least": min(each), "most": max(each)}


def _reproduced(results: Results) -> str | None:
    rows = []
    for dataset, by_steps in results.paper["accuracy"].items():
        for steps, theirs in by_steps.items():
            for (recipe, start), runs in _same(results, dataset, int(steps)).items():
                each = [run.accuracy for run in runs.values()]
                nets = [net for name in runs for net in results.nets_of(name)]
                integer = percent(mean(net["accuracy"] for net in nets)) if nets else ""
                seeds = ", ".join(str(run.seed) for run in runs.values())
                gain = points(mean(each) - theirs)
                chosen = _chosen(results, runs)
                words = dataset, steps, recipe, start or "random", chosen, seeds
                rows.append((*words, percent(mean(each)), integer, percent(theirs), gain))
    if not rows:
        return None
    headings = (
        "dataset",
        "T",
        "training",
        "start",
        "chosen on",
        "seeds",
        "float",
        "integer",
        "paper",
        "float - paper",
    )
    return "\n".join(
        (
            paragraph(
                "LBQ(5) at the paper's width, percent of test images. Recipes with",
                "sharpness-aware epochs (SAM) are ours, not the paper's; integer networks have",
                "8-bit weights. Recipes were fixed before their runs, or chosen on the images that",
                "a row names.",
            ),
            table(headings, rows, words=range(5)),
        )
    )


def _chosen(results: Results, names: Iterable[str]) -> str:
    """A sentence on the images on which the recipes of runs were chosen, or nothing."""
    return ", ".join(sorted({results.chosen[name] for name in names if name in results.chosen}))


def _same(results: Results, dataset: str, steps: int) -> dict[tuple[str, str], dict[str, Run]]:
    """Runs of the paper's network with float weights, by recipe and start."""
    found: dict[tuple[str, str], dict[str, Run]] = {}
    for name, run in results.runs.items():
        wanted = run.dataset == dataset and run.timesteps == steps and run.capacity == 5
        plain = not (run.network or run.activity or run.weight_bits or run.refine_epochs)
        if wanted and plain and run.method == "lbq":
            recipe = f"{run.epochs} epochs" + (f", {run.sam_epochs} SAM" if run.sam_epochs else "")
            found.setdefault((recipe, run.init), {})[name] = run
    return found


def _ablation(results: Results) -> str | None:
    rows = ablation.dots_of(results)
    if not rows:
        return None
    folder = results.folder.name
    parts = [
        paragraph(*ablation.learned_step(rows)),
        f"![every seed]({folder}/{ablation.FIGURE})\n",
    ]
    some = rows[0].runs[0]
    parts.append(
        paragraph(
            f"{some.network or 'ResNet-20'}, {some.epochs} epochs, batch {some.batch}, one budget",
            "for all rows; a dot is a run. The paper does not define its Box-ET: three readings",
            "of it are rows. At equal accuracy rows differ in what they cost (below). Details are",
            "in",
            f"[{DETAILS}]({folder}/{DETAILS}#ablation).",
        )
    )
    parts.append(ablation.square(rows, results.paper))
    parts += [
        "What passes back, for N = 5:\n",
        f"![surrogates]({folder}/{surrogates.FIGURE})\n",
    ]
    if curves.facts(results):
        parts += [
            f"![training curves]({folder}/{curves.FIGURE})\n",
            paragraph(
                "Training loss by epoch, means of the runs whose logs were kept. The last epochs",
                "of the long run are sharpness-aware.",
            ),
        ]
    if levels.rows(results):
        parts += [
            paragraph(
                "What the neurons cost, of runs whose levels were counted on the test images, taps",
                "of padding included. The ANNs multiply instead of adding:",
            ),
            levels.section(results),
            f"![active ratio by layer]({folder}/{levels.FIGURE})\n",
        ]
    return "\n".join(parts)


def _ours(results: Results) -> str | None:
    rows = []
    for name, run in results.runs.items():
        nets = results.nets_of(name)
        if not nets or not (run.weight_bits or run.activity) or run.dataset != PAPERS:
            continue
        bits = f"{nets[0]['weight_bits']} bit"
        bits += "".join(f", {count} in {part}" for part, count in run.layer_bits.items())
        acs = millions(nets[0]["energy"]["paper"]["lbq"]["acs"])
        words = label(run), name, bits, f"{run.activity:g}" if run.activity else ""
        facts = percent(run.accuracy), percent(nets[0]["accuracy"]), acs
        seed = _chosen(results, [name]), str(run.seed)
        rows.append((*words, str(run.epochs), run.init, *seed, *facts))
    if not rows:
        return None
    rows.sort(key=lambda row: (row[0], row[2], row[3]))
    headings = (
        "",
        "run",
        "weights",
        "activity",
        "epochs",
        "start",
        "chosen on",
        "seed",
        "float",
        "integer",
        "ACs, M",
    )
    first = paragraph(
        "Weights of few bits, fewer bits where the memory binds (blocks 6 to 8 are stage 3),",
        "events as a cost in the loss (`train.activity`), and networks for small chips. ACs are",
        "bit-sparse additions per image without taps of padding.",
    )
    return first + "\n" + table(headings, rows, words=range(3))


def _conversion(results: Results) -> str | None:
    found = results.conversion
    if found is None:
        return None
    rows = [
        (
            *(str(row["timesteps"]), percent(found["ann"]), percent(row["converted"])),
            *(percent(row["tuned"]), percent(row["integer"])),
        )
        for row in found["rows"]
    ]
    first = paragraph(
        f"{found['network']}, trained on {found['dataset']} for {found['epochs']} epochs,",
        f"converted with `convert` into LBQ({found['rows'][0]['capacity']}), fine-tuned for",
        f"{found['tune_epochs']} epochs with {found['rows'][0]['weight_bits']}-bit weights, and",
        f"exported; seed {found['seed']}, batch {found['batch']}.",
    )
    headings = ("T", "ANN", "converted", "fine-tuned", "integer")
    command = "    python docs/examples/convert.py --data DIR/cifar10 --out runs/convert\n"
    return "\n".join((first, table(headings, rows), command))


def _cost(results: Results) -> str | None:
    rows = list(_cost_rows(results))
    if not rows:
        return None
    first = paragraph(
        "Additions per image at T = 2, in millions, taps of padding counted; means over seeds. The",
        f"paper's networks have {results.paper['epochs']} epochs:",
    )
    headings = (
        *("", "training", "seeds", "unary, paper", "ours", "bit-sparse, paper", "ours"),
        *("accuracy, paper", "ours"),
    )
    return first + "\n" + table(headings, rows, words=range(2))


def _cost_rows(results: Results) -> Iterator[tuple[str, ...]]:
    """Every 8-bit network of the paper's shape, with all runs of one recipe in one row."""
    groups: dict[tuple[int, int, int, int], list[Mapping[str, Any]]] = {}
    for name, net in results.measured.items():
        run = results.runs.get(results.run_of(name) or "")
        if run is None or run.dataset != PAPERS or run.network or run.timesteps != 2:
            continue
        if net["weight_bits"] == 8 and not (run.activity or run.init):
            recipe = run.capacity, run.epochs, run.sam_epochs, run.refine_epochs
            groups.setdefault(recipe, []).append(net)
    for (capacity, epochs, sam, mild), nets in sorted(groups.items()):
        known = results.paper["lbq"][str(capacity)]
        ours = [net["energy"]["paper"]["lbq_with_padding"] for net in nets]
        unary, sparse = (mean(each[key] for each in ours) for key in ("acs_unary", "acs"))
        recipe = f"{epochs} epochs" + (f", {sam} SAM" if sam else "")
        yield (
            f"LBQ({capacity})",
            recipe + (f", {mild} mild" if mild else ""),
            str(len(nets)),
            *(millions(known["acs_unary"]), millions(unary)),
            *(millions(known["acs"]), millions(sparse)),
            *(percent(known["accuracy"]), percent(mean(net["accuracy"] for net in nets))),
        )


def _layers(results: Results) -> str | None:
    if layers.described(results) is None:
        return None
    picture = f"{results.folder.name}/{layers.FIGURE}"
    return f"![gamma by layer; entropy against active ratio; levels by layer]({picture})\n"


SECTIONS = {
    "In short": _short,
    "Reproduced": _reproduced,
    "Cost": _cost,
    "Ablation": _ablation,
    "Ours": _ours,
    "A converted ANN": _conversion,
    "Layers": _layers,
}
