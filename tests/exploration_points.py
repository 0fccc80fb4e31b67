"""Points of an exploration, without sizing anything."""

from __future__ import annotations

from lbq_hw.config import CoreConfig
from lbq_hw.explore.points import Point


def point(
    *, board: str = "icebreaker", seconds: float = 1e-3, luts: int = 5000, lanes: int = 8
) -> Point:
    """A point whose core has no door and computes half of the time."""
    core = {
        "config": CoreConfig(lanes=lanes).to_dict(),
        "clock_hz": 30_000_000,
        "opening": None,
        "cycles": 15e6 * seconds,
    }
    return Point(
        model="digits",
        board=board,
        clock_hz=30_000_000,
        baud=1_000_000,
        luts=luts,
        block_rams=20,
        seconds=seconds,
        core_seconds=seconds / 2,
        core=core,
    )
