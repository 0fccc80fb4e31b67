"""How far the model can be trusted: it estimates each measured build from all other builds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lbq_hw import boards
from lbq_hw.config import CoreConfig
from lbq_hw.resources import model


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """A build, and its estimate by a model that was fitted without it. `fmax_mhz` is None if this
    build has no measured clock, or no other build of its series has.
    """

    board: str
    lanes: int
    luts: int
    luts_seen: int
    fmax_mhz: float | None
    fmax_seen: float | None

    @property
    def luts_error(self) -> float:
        """Relative error of the estimated LUTs."""
        return self.luts / self.luts_seen - 1

    @property
    def fmax_error(self) -> float | None:
        """Relative error of the estimated clock."""
        if self.fmax_mhz is None or self.fmax_seen is None:
            return None
        return self.fmax_mhz / self.fmax_seen - 1


def left_out(points: Sequence[Mapping[str, Any]]) -> list[LeftOut]:
    """Every build, estimated from the others."""
    return [
        _estimated(point, [*points[:number], *points[number + 1 :]])
        for number, point in enumerate(points)
    ]


def worst(errors: Sequence[float]) -> tuple[float, float, int]:
    """The mean and the largest of the errors, and how many are within 10 %."""
    sizes = [abs(error) for error in errors]
    return sum(sizes) / len(sizes), max(sizes), sum(size <= 0.1 for size in sizes)


def _estimated(point: Mapping[str, Any], others: Sequence[Mapping[str, Any]]) -> LeftOut:
    board, config = boards.find(point["board"]), CoreConfig.from_dict(point["config"])
    near = [other for other in others if boards.find(other["board"]).family == board.family]
    small = point["small"] if "small" in point else model.small_of(point)
    period = model.fitted_period(
        [o for o in others if model.series_of(boards.find(o["board"])) == model.series_of(board)]
    )
    timed = period is not None and point["fmax_mhz"]
    return LeftOut(
        board=board.name,
        lanes=config.lanes,
        luts=model.luts_by(model.fitted_luts(near or others), config, small),
        luts_seen=point["luts"] - point.get("former", 0),
        fmax_mhz=model.fmax_by(period, config) / 1e6 if timed and period is not None else None,
        fmax_seen=point["fmax_mhz"],
    )
