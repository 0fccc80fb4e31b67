"""The tables of trained networks: accuracy beside the paper's, and the ablation with its order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from statistics import mean
from typing import Any

from train.results.store import METHODS, Results, Run
from train.results.text import join, paragraph, percent, points, table


def accuracy(results: Results) -> str | None:
    """One line a run and a width of its weights, or None where there is no run."""
    if not results.runs:
        return None
    runs = sorted(results.runs.values(), key=_rank)
    headings = ("", "weights", "training", "seed", "float", "integer", "difference", "paper")
    rows = [row for run in runs for row in _accuracy_rows(run, results)]
    last = [
        f"{run.evaluations['model_fp32']:.2f} % ({_label(run)}, {_training(run)})"
        for run in runs
        if run.ema and "model_fp32" in run.evaluations
    ]
    kept = (
        "Weights are averaged over steps, and the average is what is tested and deployed; the "
        f"last weights themselves give {join(last)} in float."
    )
    first = paragraph(
        "Percent of test images classified right after the last epoch, not the best one.",
        "Float is evaluated in fp32.",
        _tested(results),
        f"All of it is from {len(runs)} run{'s' if len(runs) > 1 else ''}.",
    )
    text = f"{first}\n{table(headings, rows, text=3)}"
    return f"{text}\n{paragraph(kept)}" if last else text


def _tested(results: Results) -> str:
    """How integer accuracies came about."""
    nets = results.measured
    if not nets:
        return "No integer network was measured."
    images = join([f"{n:,}" for n in sorted({net["images"] for net in nets})])
    told = f"Integer is the exported network on {images} test images"
    if all("golden" in net for net in nets):
        proven = min(net["golden"]["images"] for net in nets)
        return f"{told}, in torch; on the first {proven:,} all logits were equal to golden's."
    return f"{told}, in torch."


def _accuracy_rows(run: Run, results: Results) -> Iterator[tuple[str, ...]]:
    nets = results.nets(timesteps=run.timesteps, capacity=run.capacity, float_accuracy=run.accuracy)
    nets = [net for net in nets if run.weight_bits in (0, net["weight_bits"])]
    theirs = percent(_theirs(run, results.paper))
    for net in nets or [None]:
        bits = run.weight_bits if net is None else net["weight_bits"]
        integer = difference = ""
        if net is not None:
            integer = percent(net["accuracy"])
            difference = points(net["accuracy"] - run.accuracy)
        weights = f"{bits} bit{', trained so' if run.weight_bits else ''}" if bits else "float"
        words = _label(run), weights, _training(run), str(run.seed)
        yield *words, percent(run.accuracy), integer, difference, theirs


def _theirs(run: Run, paper: Mapping[str, Any]) -> float | None:
    """The paper's accuracy of this network, trained as it trains."""
    if run.method == "lbq" and run.capacity == 5:
        return paper["accuracy"].get(str(run.timesteps))
    if run.method == "lbq":
        known = paper["lbq"].get(str(run.capacity)) if run.timesteps == 2 else None
        return known and known["accuracy"]
    return paper["ablation"].get(run.method) if run.timesteps in (1, 2) else None


def _rank(run: Run) -> tuple[Any, ...]:
    """T = 2, the paper's first, then by what it is."""
    method = [*METHODS].index("lbq") != [*METHODS].index(run.method), run.method
    return *method, run.timesteps != 2, run.timesteps, run.capacity, run.weight_bits, run.seed


def _label(run: Run) -> str:
    name = f"LBQ({run.capacity})" if run.method == "lbq" else METHODS[run.method]
    return f"{name}, T = {run.timesteps}"


def _training(run: Run) -> str:
    return f"{run.epochs} epochs{', fine-tuned' if run.fine_tuned else ''}"


def ablation(results: Results) -> str | None:
    """One line a neuron, and whether the paper's order holds; None where there is no run.

    ValueError where the runs differ in more than their neurons.
    """
    runs = results.ablation.values()
    if not runs:
        return None
    budgets = sorted({(run.epochs, run.batch, run.lr, run.ema, run.fine_tuned) for run in runs})
    if len(budgets) > 1:
        raise ValueError(
            f"the runs of {results.folder / 'ablation'} must share epochs, batch, lr, ema and "
            f"fine_tuned, not {budgets!r}"
        )
    epochs, batch, lr, _, _ = budgets[0]
    seeds = sorted({run.seed for run in runs})
    theirs = results.paper["ablation"]
    ours: dict[str, float] = {}
    rows = []
    for method, label in METHODS.items():
        same = [run for run in runs if run.method == method]
        if same:
            ours[method] = mean(run.accuracy for run in same)
            row = label, str(same[0].timesteps), str(len(same)), _gamma(same[0])
            rows.append((*row, percent(ours[method]), percent(theirs.get(method))))
    first = paragraph(
        f"{epochs} epochs each, batch {batch}, lr {lr:g},",
        f"seed{'s' if len(seeds) > 1 else ''} {join([str(seed) for seed in seeds])}; the last",
        f"epoch, in fp32. The paper's rows have {results.paper['epochs']} epochs: what compares is",
        "the order.",
    )
    headings = ("", "T", "runs", "gamma, by layer", "ours", "paper")
    order = paragraph(_order(ours, theirs))
    return f"{first}\n{table(headings, rows)}\n{order}"


def _gamma(run: Run) -> str:
    """The range of the step over layers, where it is learned."""
    low, high = (run.ranges.get(key) for key in ("gamma_min", "gamma_max"))
    return "" if low is None or low == high else f"{low:.3f} to {high:.3f}"


def _order(ours: Mapping[str, float], theirs: Mapping[str, float]) -> str:
    """Whether every pair that the paper orders has the same order here, and which has not."""
    common = sorted((method for method in ours if method in theirs), key=lambda m: theirs[m])
    pairs = list(combinations(common, 2))
    turned = [(low, high) for low, high in pairs if ours[low] >= ours[high]]
    if not turned:
        return f"The paper's order holds in all {len(pairs)} pairs of rows that it has."
    found = [
        f"{_short(low)} against {_short(high)} ({points(ours[low] - ours[high])} here, "
        f"{points(theirs[low] - theirs[high])} there)"
        for low, high in turned
    ]
    return (
        f"Of the {len(pairs)} pairs of rows that the paper has, {len(pairs) - len(turned)} are in "
        f"its order. Turned round: {join(found)}."
    )


def _short(method: str) -> str:
    return METHODS[method].partition(":")[0]
