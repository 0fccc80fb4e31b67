"""The cost of the ablation's neurons: additions and activity, from runs that were analyzed."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import mean
from typing import Any

from lbq_hw.markdown import table
from tools.results import ablation
from tools.results.store import Results
from tools.results.text import millions

FIGURE = "activity.svg"
PRODUCTS = ("ann", "quantized-ann")
"""Methods that multiply, and so have no additions to count."""


def rows(results: Results) -> list[tuple[ablation.Row, list[Mapping[str, Any]]]]:
    """The rows of the ablation that have analyzed runs, with the facts of each run."""
    names = {id(run): name for runs in results.ablations.values() for name, run in runs.items()}
    found = []
    for row in ablation.dots_of(results):
        known = [results.levels[n] for n in (names[id(r)] for r in row.runs) if n in results.levels]
        if known:
            found.append((row, known))
    return found


def section(results: Results) -> str:
    """A table of means over the analyzed runs of each row, including padding taps. The ANNs follow,
    with their accuracy alone.
    """
    lines: list[tuple[str, ...]] = []
    for row, found in rows(results):
        unary, sparse = (mean(f[key] for f in found) for key in ("acs_unary", "acs_bit_sparse"))
        active = mean(f["summary"]["active_ratio"] for f in found)
        facts = f"{active:.3f}", millions(unary), millions(sparse)
        lines.append((*_named(row), *facts))
    for row in ablation.dots_of(results):
        if row.method in PRODUCTS:
            lines.append((*_named(row), "", "", ""))
    headings = ("", "first step", "accuracy, %", "active", "unary ACs, M", "bit-sparse ACs, M")
    return table(headings, lines)


def _named(row: ablation.Row) -> tuple[str, str, str]:
    return row.label, f"{row.first_step:g}" if row.first_step else "", f"{row.mean:.2f}"


def facts(results: Results) -> list[dict[str, Any]]:
    """The data of the figure: the active ratio of each layer, by row."""
    return [
        {
            "row": row.label,
            "layers": [layer["name"] for layer in found[0]["layers"]],
            "active": [
                mean(values)
                for values in zip(
                    *([layer["active_ratio"] for layer in f["layers"]] for f in found), strict=True
                )
            ],
        }
        for row, found in rows(results)
    ]
