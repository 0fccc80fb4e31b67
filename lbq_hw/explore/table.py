"""The table of an exploration on a terminal."""

from __future__ import annotations

from typing import Any

from rich import box
from rich.table import Table

from lbq_hw import units

_HEADINGS = ("board", "host", "cells", "BRAM", "core", "door", "clock", "Mbaud")
_PLACED = ("placed", "Fmax")


def table(found: dict[str, Any], *, every: bool) -> Table:
    """The front over all boards; with `every`, each board's front, the common one marked."""
    title = f"{found['model']}: images/s as a host sees them, and cells; * no board has better"
    lines = [line for line in found["points"] if line["front"] or (every and line["shown"])]
    placed = any(line["placed"] is not None for line in lines)
    made = Table(box=box.SIMPLE, title=title, pad_edge=False, padding=(0, 1, 0, 0))
    for heading in (*_HEADINGS, *(_PLACED if placed else ())):
        left = heading in ("board", "core", "door")
        made.add_column(heading, justify="left" if left else "right", no_wrap=True)
    for line in lines:
        cells = (placed_cells(line), placed_clock(line)) if placed else ()
        made.add_row(*_row(line), *cells)
    return made


def _row(line: dict[str, Any]) -> list[str]:
    core = "P{lanes} W{word} L{units} B{bits}".format(**line)
    return [
        f"{line['board']}{' *' if line['front'] else ''}",
        units.three_digits(1 / line["seconds"]),
        f"{line['luts']:,}",
        str(line["block_rams"]),
        core,
        line["door"],
        clock(line),
        f"{line['baud'] / 1e6:g}",
    ]


def clock(line: dict[str, Any]) -> str:
    """The clock of the core."""
    return units.megahertz(line["clock_hz"])


def placed_cells(line: dict[str, Any]) -> str:
    """Cells after place and route, and how far the estimate was off."""
    placed = line["placed"]
    if placed is None:
        return ""
    if placed["error"] is not None:
        return "no place"
    return f"{placed['luts']:,} ({100 * (line['luts'] / placed['luts'] - 1):+.1f} %)"


def placed_clock(line: dict[str, Any]) -> str:
    """The fastest clock after place and route, and whether the core's clock is missed."""
    placed = line["placed"]
    if placed is None or placed["error"] is not None:
        return ""
    return f"{placed['fmax_hz'] / 1e6:.1f}" + ("" if placed["met"] else " missed")
