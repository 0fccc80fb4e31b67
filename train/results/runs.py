"""The tables of trained networks: accuracy beside the paper's, and the ablation with its order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import combinations
from statistics import mean
from typing import Any

from lbq_hw.markdown import table
from lbq_hw.train.results.store import METHODS, PAPERS, Results, Run
from lbq_hw.train.results.text import join, paragraph, percent, points

SHARP = (
    '"Sharpness-aware" epochs are the last ones too, their gradients taken a short way uphill from '
    "the weights (Foret et al., arXiv:2010.01412; late in training: Zhou et al., "
    "arXiv:2410.10373)."
)


def accuracy(results: Results) -> str | None:
    """One line per run and width of its weights, or None where there is no run."""
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
    """One line per run that was made to choose a recipe, or None where there is none."""
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
    """How integer accuracies came about."""
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
    theirs = percent(_theirs(run, results.paper))
    for net in nets or [None]:
        bits = run.weight_bits if net is None else net["weight_bits"]
        integer = difference = ""
        if net is not None:
            integer = percent(net["accuracy"])
            difference = points(net["accuracy"] - run.accuracy)
        weights = f"{bits} bit{', trained so' if run.weight_bits else ''}" if bits else "float"
        words = run.dataset, label(run), name, weights, _training(run), str(run.seed)
        yield *words, percent(run.accuracy), integer, difference, theirs


def _theirs(run: Run, paper: Mapping[str, Any]) -> float | None:
    """The paper's accuracy of this network, trained as it trains."""
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
    """CIFAR-10 and T = 2, the paper's first, then by what it is."""
    images = run.dataset != PAPERS, run.dataset, run.network
    method = [*METHODS].index("lbq") != [*METHODS].index(run.method), run.method
    size = run.timesteps != 2, run.timesteps, run.capacity, run.weight_bits
    return *images, *method, *size, run.seed, run.refine_epochs, run.sam_epochs


def label(run: Run) -> str:
    """What a row calls a run's network."""
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


def ablation(results: Results) -> str | None:
    """A table a budget, one line per neuron in it, and whether the paper's order holds; None where
    there is no run.

    ValueError where runs of one table differ in more than their neurons and seeds.
    """
    tables = [_ablation(results, name) for name, rows in results.ablations.items() if rows]
    return "\n".join(tables) or None


def _ablation(results: Results, name: str) -> str:
    runs = results.ablations[name].values()
    budgets = sorted({_budget(run) for run in runs})
    if len(budgets) > 1:
        raise ValueError(
            f"the runs of {results.folder / name} must share all but neuron and seed, not "
            + " and ".join(", ".join(budget) for budget in budgets)
        )
    rows, orders = [], []
    for variant, methods in _by_variant(runs).items():
        ours = {method: mean(run.accuracy for run in same) for method, same in methods.items()}
        papers = {method: replace(same[0], network="") for method, same in methods.items()}
        theirs = {method: _theirs(run, results.paper) for method, run in papers.items()}
        for method, same in methods.items():
            label = ", ".join((METHODS[method], *variant))
            row = label, str(same[0].timesteps), str(len(same)), _gamma(same[0])
            rows.append((*row, percent(ours[method]), percent(theirs[method])))
        known = {method: value for method, value in theirs.items() if value}
        lead = (
            f"With {', '.join(variant)}" if variant else "Of the pairs of rows that the paper has"
        )
        orders.append(_order(lead, ours, known))
    some = next(iter(runs))
    seeds = sorted({run.seed for run in runs})
    first = paragraph(
        f"{f'{some.network}, ' if some.network else ''}{some.epochs} epochs each,",
        f"batch {some.batch}, lr {some.lr:g},",
        f"seed{'s' if len(seeds) > 1 else ''} {join([str(seed) for seed in seeds])}; the last",
        f"epoch, in fp32. The paper's rows have {results.paper['epochs']} epochs: what compares is",
        "the order.",
    )
    headings = ("", "T", "runs", "gamma, by layer", "ours", "paper")
    return "\n".join((first, table(headings, rows), paragraph(*orders)))


def _by_variant(runs: Iterable[Run]) -> dict[tuple[str, ...], dict[str, list[Run]]]:
    """Runs of different seeds together, by what their neuron has that the method's does not, and
    by method; the methods themselves first.
    """
    found: dict[tuple[str, ...], dict[str, list[Run]]] = {}
    methods = [*METHODS]
    for run in sorted(runs, key=lambda run: (methods.index(run.method), run.seed)):
        levels = run.method in ("v1", "v2", "v3", "lbq", "quantized-ann")
        size = (f"N = {run.capacity}",) if levels and run.capacity != 5 else ()
        found.setdefault((*size, *run.neuron_changes), {}).setdefault(run.method, []).append(run)
    return dict(sorted(found.items()))


def _budget(run: Run) -> tuple[str, ...]:
    """All that a row has in common with the others."""
    common = ("dataset", "epochs", "batch", "lr", "ema", "init", "refine_epochs", "sam_epochs")
    own = [c for c in run.changes if not c.startswith(("neuron.", "train.seed="))]
    return *(f"{key}={getattr(run, key)}" for key in common), *own


def _gamma(run: Run) -> str:
    """The range of the step over layers, where it is learned."""
    low, high = (run.ranges.get(key) for key in ("gamma_min", "gamma_max"))
    return "" if low is None or low == high else f"{low:.3f} to {high:.3f}"


def _order(lead: str, ours: Mapping[str, float], theirs: Mapping[str, float]) -> str:
    """How many pairs of methods have the paper's order here, and which have not; empty without a
    pair."""
    common = sorted((method for method in ours if method in theirs), key=lambda m: theirs[m])
    pairs = list(combinations(common, 2))
    if not pairs:
        return ""
    turned = [
        f"{_short(low)} against {_short(high)} ({points(ours[low] - ours[high])} here, "
        f"{points(theirs[low] - theirs[high])} there)"
        for low, high in pairs
        if ours[low] >= ours[high]
    ]
    tail = f"; turned round: {join(turned)}" if turned else ""
    return f"{lead}, {len(pairs) - len(turned)} of {len(pairs)} are in its order{tail}."


def _short(method: str) -> str:
    return METHODS[method].partition(":")[0]
