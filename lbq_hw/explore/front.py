"""The Pareto front: cores that no other core beats in time and in cells at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from lbq_hw import boards
from lbq_hw.explore.points import Point

Item = TypeVar("Item")


def front(points: Iterable[Item], key: Callable[[Item], tuple[float, float]]) -> list[Item]:
    """Points that no other point equals or beats in both parts of their `key`, sorted by its first
    part. Of points with equal keys, the first one stays.
    """
    found: list[Item] = []
    least = float("inf")
    for point in sorted(points, key=key):  # stable: equal keys keep their order
        if key(point)[1] < least:
            found.append(point)
            least = key(point)[1]
    return found


def costs(point: Point) -> tuple[float, float]:
    """Time and cells, of which both should be small."""
    return point.seconds, point.luts


def of_all(points: Iterable[Point]) -> list[Point]:
    """The front over all boards. Where boards are equal, the one with the smallest FPGA stays."""
    return front(sorted(points, key=lambda p: (boards.find(p.board).luts, p.board)), costs)


def equals(point: Point, points: Iterable[Point]) -> list[str]:
    """Names of other boards that have a point of equal time and cells."""
    names = {other.board for other in points if costs(other) == costs(point)}
    return sorted(names - {point.board})
