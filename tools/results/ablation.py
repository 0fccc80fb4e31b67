"""The ablation: neurons compared at one budget, a dot per seed, with the paper's four variants."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from statistics import mean
from typing import Any

from lbq_hw.markdown import table
from lbq_hw.train.settings import config as configurations
from lbq_hw.train.settings.config import NeuronConfig
from tools.results.runs import theirs
from tools.results.store import METHODS, Results, Run
from tools.results.text import join, paragraph, percent, points

FIGURE = "ablation.svg"
SQUARE = ("v1", "v2", "v3", "lbq")  # fixed and learned step, with box and with ReLSG-ET
BOX, WIDE, TAILS = "box on [1, N]", "box on [0, N]", "box with fixed tails"
SCALED = "scaled step gradient"
READ_AS = {"low=0.0": WIDE, "learn_lambda=false": TAILS, "scale_step=true": SCALED}


@dataclass(frozen=True, kw_only=True)
class Row:
    """Runs that differ only in their seeds.

    Members: `method`, a key of `METHODS`; `changes` of its neuron from the method's neuron, without
    the first step; `first_step`, None for a neuron without one; `beta`, None if it is learned or if
    there is no state.
    """

    method: str
    changes: tuple[str, ...]
    timesteps: int
    capacity: int
    first_step: float | None
    beta: float | None
    runs: tuple[Run, ...]

    @property
    def mean(self) -> float:
        return mean(run.accuracy for run in self.runs)

    @property
    def label(self) -> str:
        name = METHODS[self.method]
        parts = self.changes
        if self.method in ("v1", "v3"):
            name, parts = f"{name.partition(', ')[0]}, {self.box}", parts[self.box != BOX :]
        return ", ".join((name, *parts, *((f"T = {self.timesteps}",) if self._short else ())))

    @property
    def _short(self) -> bool:
        """Whether it has one timestep, and the paper two."""
        return self.timesteps == 1 and self.method not in ("ann", "quantized-ann")

    @property
    def box(self) -> str:
        """The interpretation of the paper's Box-ET."""
        return self.changes[0] if self.changes and self.changes[0] in (WIDE, TAILS) else BOX

    @property
    def papers(self) -> bool:
        """Whether the paper has such a row, with any interpretation of its box."""
        return self.changes in ((), (self.box,)) and not self._short


def section(results: Results) -> str | None:
    """One table per budget, the longest first, each with the paper's four variants; None if there
    is no run.

    ValueError if runs of one table differ in more than their neurons and seeds.
    """
    folders = [name for name, runs in results.ablations.items() if runs]
    folders.sort(key=lambda name: -_some(results.ablations[name].values()).epochs)
    parts = []
    if folders:
        parts = [paragraph(*learned_step(dots_of(results))), f"![every seed]({FIGURE})\n"]
    tables = [_tables(results, name, told=name != folders[0]) for name in folders]
    return "\n".join([*parts, *tables]) or None


def dots_of(results: Results) -> list[Row]:
    """The rows of the figure: the rows with the most epochs."""
    longest = max(
        (runs.values() for runs in results.ablations.values() if runs),
        key=lambda runs: _some(runs).epochs,
        default=(),
    )
    return rows_of(longest)


def facts(results: Results) -> list[dict[str, Any]]:
    """The data for `tools.results.dots`: each row's name and its accuracies by first step."""
    found: dict[str, dict[str, list[float]]] = {}
    for row in dots_of(results):
        step = "none" if row.first_step is None else f"{row.first_step:g}"
        found.setdefault(row.label, {})[step] = [run.accuracy for run in row.runs]
    return [{"row": label, "accuracy": by_step} for label, by_step in found.items()]


def rows_of(runs: Iterable[Run]) -> list[Row]:
    """Rows in the order of `METHODS`, then by changes of the neuron, then by first step."""
    found: dict[tuple[Any, ...], list[Run]] = {}
    for run in sorted(runs, key=lambda run: run.seed):
        neuron = _neuron(run.name)
        changes = _changed(run)
        step = float(changes.pop("gamma0")) if "gamma0" in changes else neuron.gamma0
        if changes.get("learn_lambda") == "false":
            changes.pop("surrogate", None)
        words = sorted(f"{key}={value}" for key, value in changes.items())
        levels = run.method in (*SQUARE, "quantized-ann")
        size = [f"N = {run.capacity}"] if levels and run.capacity != 5 else []
        told = sorted((READ_AS.get(word, word) for word in words), key=lambda w: w == SCALED)
        place = [*METHODS].index(run.method), -run.timesteps, len(told), (*told, *size)
        found.setdefault((*place, step or 0.0), []).append(run)
    return [_row(key, same) for key, same in sorted(found.items(), key=lambda item: item[0])]


def _row(key: tuple[Any, ...], runs: list[Run]) -> Row:
    some = runs[0]
    changed = _changed(some)
    return Row(
        method=some.method,
        changes=key[3],
        timesteps=some.timesteps,
        capacity=some.capacity,
        first_step=key[4] or None,
        beta=float(changed["beta"]) if "beta" in changed else _neuron(some.name).beta,
        runs=tuple(runs),
    )


def _changed(run: Run) -> dict[str, str]:
    """The changes to its configuration's neuron, by key."""
    return {key: value for key, _, value in (c.partition("=") for c in run.neuron_changes)}


@cache
def _neuron(name: str) -> NeuronConfig:
    """The neuron of a shipped configuration."""
    return configurations.load(name).neuron


def _some(runs: Iterable[Run]) -> Run:
    return next(iter(runs))


def _tables(results: Results, name: str, *, told: bool) -> str:
    """The tables of one folder; `told`: the page already explains the second table."""
    runs = results.ablations[name].values()
    budgets = sorted({_budget(run) for run in runs})
    if len(budgets) > 1:
        raise ValueError(
            f"the runs of {results.folder / name} must share all but neuron and seed, not "
            + " and ".join(", ".join(budget) for budget in budgets)
        )
    some, seeds = _some(runs), sorted({run.seed for run in runs})
    first = paragraph(
        f"{f'{some.network}, ' if some.network else ''}{some.epochs} epochs each,",
        f"batch {some.batch}, lr {some.lr:g},",
        f"seed{'s' if len(seeds) > 1 else ''} {join([str(seed) for seed in seeds])}; the last",
        f"epoch, in fp32. The paper's rows have {results.paper['epochs']} epochs: what compares is",
        "the order.",
    )
    rows = rows_of(runs)
    headings = ("", "T", "N", "beta", "first step", "gamma, by layer", "runs", "mean", "from", "to")
    made = [first, table((*headings, "paper"), (_cells(row, results.paper) for row in rows))]
    four = square(rows, results.paper)
    if four:
        made += [four] if told else [_SQUARE, four]
    return "\n".join(made)


def square(rows: list[Row], paper: Mapping[str, Any]) -> str:
    """The paper's four variants, by interpretation of its box and by first step; empty if none was
    run.
    """
    found = list(_square(rows, paper))
    return table(_SQUARE_HEADINGS, found, words=range(1)) if found else ""


def _cells(row: Row, paper: Mapping[str, Any]) -> tuple[str, ...]:
    each = [run.accuracy for run in row.runs]
    several = [percent(min(each)), percent(max(each))] if len(each) > 1 else ["", ""]
    size = str(row.timesteps), str(row.capacity) if row.method != "ann" else ""
    numbers = ("" if x is None else f"{x:g}" for x in (row.beta, row.first_step))
    known = percent(_papers(row, paper))
    gamma = _gamma(row.runs[0])
    return row.label, *size, *numbers, gamma, str(len(each)), percent(row.mean), *several, known


def _papers(row: Row, paper: Mapping[str, Any]) -> float | None:
    return theirs(replace(row.runs[0], network=""), paper)


def learned_step(rows: list[Row]) -> Iterator[str]:
    """Sentences on whether a learned step is better than a fixed step of the same first value."""
    known = {(row.method, row.first_step): row for row in rows if row.papers}
    for (method, step), fixed in known.items():
        learned = known.get(("lbq", step))
        if method == "v2" and learned is not None:
            yield (
                f"From a first step of {step:g}, LBQ's learned step ends at {learned.mean:.2f} %,"
                f" V2's fixed step at {fixed.mean:.2f} %:"
                f" {points(learned.mean - fixed.mean)}"
                f" ({len(learned.runs)} and {len(fixed.runs)} seeds)."
            )


def verdict(rows: list[Row], paper: Mapping[str, Any]) -> str:
    """Whether LBQ's learned step is better than V2's best fixed step; empty if a row is missing.

    A difference within the spread of the seeds of either row does not count as better.
    """
    fixed = [row for row in rows if row.papers and row.method == "v2"]
    best = max(fixed, key=lambda row: row.mean, default=None)
    known = {row.first_step: row for row in rows if row.papers and row.method == "lbq"}
    if best is None or best.first_step not in known:
        return ""
    learned = known[best.first_step]
    gain, each = learned.mean - best.mean, (learned, best)
    spread = max(max(r.accuracy for r in x.runs) - min(r.accuracy for r in x.runs) for x in each)
    theirs = paper["ablation"]["lbq"] - paper["ablation"]["v2"]
    return (
        f"it {'gains over' if gain > spread else 'gains nothing over'} a good fixed one"
        f" ({points(gain)} points from a first step of {best.first_step:g}; the paper"
        f" {points(theirs)})" + _elsewhere(fixed, best, known)
    )


def _elsewhere(fixed: list[Row], best: Row, known: Mapping[float | None, Row]) -> str:
    """The gains from other first steps."""
    others = [row for row in fixed if row is not best and row.first_step in known]
    gains = (f"{points(known[r.first_step].mean - r.mean)} from {r.first_step:g}" for r in others)
    return f", and spares the search for it: {join(list(gains))}" if others else ""


_SQUARE = paragraph(
    "The paper's four variants, by first step and by what its Box-ET is read as, which it does not",
    "define: V1 and V3 have the box, V2 and LBQ have ReLSG-ET. Fixed tails are those of ReLSG-ET",
    "with a strength of 0.5 that is not learned. The last column counts the pairs of all methods",
    "that the paper has too, at that first step and reading, that are in its order.",
)
_SQUARE_HEADINGS = (
    *("Box-ET read as", "first step", "V1 fixed", "V2 fixed", "V3 learned", "LBQ learned"),
    *("learned gains: box", "ReLSG-ET", "ReLSG-ET gains: fixed", "learned", "pairs in order"),
)


def _square(rows: list[Row], paper: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    known = paper["ablation"]
    yield "paper", "", *_gains({method: known[method] for method in SQUARE}), ""
    plain = [row for row in rows if row.papers]
    steps = sorted({row.first_step for row in plain if row.first_step})
    for box in (BOX, WIDE, TAILS):
        for step in steps:
            here = {
                row.method: row.mean
                for row in plain
                if row.first_step in (step, None) and row.box in (box, BOX)
                if row.method not in ("v1", "v3") or row.box == box
            }
            if "v1" in here or "v3" in here:
                yield box, f"{step:g}", *_gains(here), _ordered(here, known)


def _gains(ours: Mapping[str, float]) -> list[str]:
    """The four accuracies, and the four differences of neighbours."""
    pairs = ("v1", "v3"), ("v2", "lbq"), ("v1", "v2"), ("v3", "lbq")
    gains = [points(ours[b] - ours[a]) if a in ours and b in ours else "" for a, b in pairs]
    return [*(percent(ours.get(method)) for method in SQUARE), *gains]


def _ordered(ours: Mapping[str, float], papers: Mapping[str, float]) -> str:
    common = sorted((method for method in ours if method in papers), key=lambda m: papers[m])
    pairs = list(combinations(common, 2))
    return f"{sum(ours[low] < ours[high] for low, high in pairs)} of {len(pairs)}" if pairs else ""


def _budget(run: Run) -> tuple[str, ...]:
    """The settings that all rows of a table must share."""
    common = ("dataset", "epochs", "batch", "lr", "ema", "init", "refine_epochs", "sam_epochs")
    own = [c for c in run.changes if not c.startswith(("neuron.", "train.seed="))]
    return *(f"{key}={getattr(run, key)}" for key in common), *own


def _gamma(run: Run) -> str:
    """The range of the step over layers, if it is learned."""
    low, high = (run.ranges.get(key) for key in ("gamma_min", "gamma_max"))
    return "" if low is None or low == high else f"{low:.3f} to {high:.3f}"
