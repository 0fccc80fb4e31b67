"""Builds that place and route has finished: what the model of resources is fitted to."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from lbq_hw import boards, decode, families
from lbq_hw.boards import Board
from lbq_hw.config import CoreConfig
from lbq_hw.isa.door import Opening
from lbq_hw.tools import logs

MEASURED = Path(__file__).with_name("measured.json")


@cache
def measured() -> list[dict[str, Any]]:
    """The builds, as measured.json lists them; `former` are LUTs of logic that cores no longer
    have.
    """
    return _read(MEASURED)["builds"]


@dataclass(frozen=True)
class Met:
    """A clock that place and route met, with its seed and the digest of the netlist; the digest is
    empty if it was not kept.
    """

    clock_hz: float
    seed: int
    netlist: str = ""


def met(config: CoreConfig, board: Board) -> Met | None:
    """The clock that a build of exactly this core met on this board; None if it was not built.
    Place and route of the same netlist with the same options gives the same result. For another
    netlist of the same core, the seed says nothing.
    """
    for point in measured():
        if "clock_mhz" in point and _built(point) == (board.name, config):
            return Met(1e6 * point["clock_mhz"], point["seed"], point.get("netlist", ""))
    return None


def point(
    folder: Path,
    *,
    small: Callable[[dict[str, Any]], float],
    door: Callable[[Opening, Board], tuple[int, int]],
) -> dict[str, Any]:
    """A finished build as measured.json lists it.

    `small` gives the price of the memories that became logic, `door` the LUTs and block RAMs of a
    door, which do not belong to the core. ValueError for a user's own board, which the model could
    not find again.
    """
    core, placed = (_read(folder / name) for name in ("core.json", "place.json"))
    if core["board"] not in boards.names():
        raise ValueError(f"{folder} must be a build for a board that ships, not {core['board']!r}")
    board = boards.find(core["board"])
    cells = families.of(board).cells
    used = {resource.kind: resource.used for resource in logs.resources(placed, cells)}
    clocks = logs.timing(placed).clocks
    luts = block_rams = 0
    if core["opening"] is not None:
        luts, block_rams = door(decode.reader(Opening)(core["opening"], "opening"), board)
    found = {
        "board": core["board"],
        "config": core["config"],
        "luts": (used.get("LC") or used["LUT"]) - luts,
        "block_rams": used.get("EBR", 0) - block_rams,
        "fmax_mhz": round(min(clock.fmax_hz for clock in clocks) / 1e6, 1),
    }
    if all(clock.fmax_hz >= clock.target_hz for clock in clocks):
        found["clock_mhz"] = round(min(clock.target_hz for clock in clocks) / 1e6, 1)
        found["seed"] = _read(folder / "seeds.json")["seed"]
        found["netlist"] = logs.netlist_digest(folder / "netlist.json")
    found["small"] = small(found)
    return found


def add(
    folder: Path,
    *,
    small: Callable[[dict[str, Any]], float],
    door: Callable[[Opening, Board], tuple[int, int]],
) -> None:
    """Add a finished build to the measurements. It replaces a build of the same core and board. If
    the older config lacks a field, the field's default counts. `small` and `door` are those of
    `point`, which may raise ValueError.
    """
    new = point(folder, small=small, door=door)
    known = [other for other in measured() if _built(other) != _built(new)]
    known.append(new)
    known.sort(key=lambda other: (other["board"], other["config"]["lanes"], other["luts"]))
    text = json.dumps({"builds": known}, indent=1, sort_keys=True) + "\n"
    MEASURED.write_text(text, encoding="utf-8")
    measured.cache_clear()


def _read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


def _built(point: dict[str, Any]) -> tuple[str, CoreConfig]:
    """What was built for which board."""
    return point["board"], CoreConfig.from_dict(point["config"])
