"""The results of an exploration: estimates, fronts, and placed cores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lbq_hw import boards, decode
from lbq_hw.compiler import Program
from lbq_hw.compiler.draft import draft
from lbq_hw.config import CoreConfig
from lbq_hw.explore.front import costs, equals, of_all
from lbq_hw.explore.points import Placed, Point, best
from lbq_hw.host.estimate import traffic
from lbq_hw.isa.door import Opening
from lbq_hw.network import Network
from lbq_hw.sizing import door


def facts(
    network: Network,
    points: Sequence[Point],
    placed: Mapping[str, list[Placed]],
    *,
    accuracy: float | None,
    remark: str,
) -> dict[str, Any]:
    """One object for JSON, the table and the page; `placed` are results by the id of a point. Of
    boards that are equal by estimate, one is `shown`, and others only where they were placed.
    """
    ahead = {point.id for point in of_all(points)}
    ordered = sorted(points, key=lambda p: (*costs(p), boards.find(p.board).luts, p.board))
    firsts = {costs(point): point.id for point in reversed(ordered)}
    lines = [
        point.facts()
        | {
            "id": point.id,
            "front": point.id in ahead,
            "also": equals(point, points),
            "shown": firsts[costs(point)] == point.id or point.id in placed,
            "price": _price(point.board),
            "placed": _placed(network, point, placed.get(point.id, [])),
        }
        for point in ordered
    ]
    return {
        "model": network.name,
        "weight_bits": network.weight_bits,
        "accuracy": accuracy,
        "activity": remark,
        "points": lines,
    }


def _price(name: str) -> dict[str, Any] | None:
    """The price in a board's file."""
    return boards.find(name).facts()["price"]


def _placed(network: Network, point: Point, seeds: list[Placed]) -> dict[str, Any] | None:
    """The best seed of a point, with the time of an image by the cycles that the model of the core
    counts, or else by the estimate; None if it was not placed.
    """
    if not seeds:
        return None
    found = best(seeds)
    if found is None:
        return {"error": seeds[0].error, "seeds": {}}
    cycles = found.cycles or point.core["cycles"]
    return {
        "error": None,
        "seed": found.seed,
        "seeds": {str(one.seed): one.fmax_hz for one in seeds if one.error is None},
        "luts": found.luts,
        "block_rams": found.block_rams,
        "fmax_hz": found.fmax_hz,
        "met": found.fmax_hz >= point.clock_hz,
        "cycles": found.cycles,
        "seconds": seen(network, point, cycles),
    }


def seen(network: Network, point: Point, cycles: float) -> float:
    """Seconds from image to image at the host, if an image takes so many cycles."""
    config = CoreConfig.from_dict(point.core["config"])
    given = point.core["opening"]
    opening = None if given is None else decode.reader(Opening)(given, "opening")
    program = Program.of(draft(network, config), config, b"")
    line = door.line_of(boards.find(point.board), point.clock_hz)
    made = traffic(program, pace=line.pace(opening, clock_hz=point.clock_hz, cycles=cycles))
    return line.seconds(made, cycles / point.clock_hz)
