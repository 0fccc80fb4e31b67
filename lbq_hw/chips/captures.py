"""How every board with external memory samples its words: the eye, the clock edge, its margins.

``python -m lbq_hw.chips`` prints the table of docs/external-memory.md.
"""

from __future__ import annotations

from typing import Any

from lbq_hw import boards, resources
from lbq_hw.chips.eye import DRIFT, Sampling, fastest
from lbq_hw.markdown import table

HEADINGS = (
    "board", "clock, MHz", "eye, fastest board", "eye, slowest board", "edges that pass",
    "taken at", "margin early", "margin late", "good up to, MHz",
)  # fmt: skip


def facts() -> list[dict[str, Any]]:
    """One JSON-able row per board and clock: its usual one, and those it was built for.

    Times are in ps after the edge that launches a word; the edges are those that pass with the
    fastest and with the slowest pads and wires of the board.
    """
    return [_row(name, clock_hz) for name in boards.names() for clock_hz in _clocks(name)]


def _clocks(name: str) -> list[int]:
    board = boards.find(name)
    if board.chip is None:
        return []
    built = {
        round(1e6 * point["clock_mhz"])
        for point in resources.measured()
        if point["board"] == name and point["config"].get("external") and "clock_mhz" in point
    }
    return sorted({board.target_hz} | built)


def _row(name: str, clock_hz: int) -> dict[str, Any]:
    chip = boards.find(name).chip
    assert chip is not None
    sampling = Sampling(chip=chip, clock_hz=clock_hz)
    eyes = [sampling.eye(delay) for delay in (chip.delay_least, chip.delay_most)]
    return {
        "board": name,
        "clock_hz": clock_hz,
        "eyes": [[eye.begin, eye.end] for eye in eyes],
        "edges": [[sampling.time(n) for n in sampling.passing(eye)] for eye in eyes],
        "taken": sampling.time(sampling.nominal_count),
        "early": sampling.early,
        "late": sampling.late,
        "drift": DRIFT,
        "survives": sampling.survives,
        "good_hz": fastest(chip) * 10**6,
    }


def markdown() -> str:
    """The table of docs/external-memory.md; times are in ns."""
    rows = [
        [
            f"`{row['board']}`",
            f"{row['clock_hz'] / 1e6:g}",
            *(f"{_ns(begin)} to {_ns(end)}" for begin, end in row["eyes"]),
            "; ".join(" and ".join(map(_ns, edges)) for edges in row["edges"]),
            *(_ns(row[name]) for name in ("taken", "early", "late")),
            f"{row['good_hz'] / 1e6:g}",
        ]
        for row in facts()
    ]
    return table(HEADINGS, rows)


def _ns(time: float) -> str:
    return f"{time / 1000:.1f}"
