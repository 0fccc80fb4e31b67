"""Stalls and plain payloads for the traffic of every testbench, in any simulator."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

from amaranth.lib import data

Stall = Callable[[], bool]
"""Called once per cycle: True if an end of a stream stays idle in this cycle."""


def never() -> bool:
    """No stall at all."""
    return False


def stalls(seed: int, rate: float) -> Stall:
    """Stall in about `rate` of the cycles, with long stretches of stalls and of none."""
    source = random.Random(seed)

    def spells() -> Iterator[bool]:
        while True:
            chance = min(0.95, rate * source.choice((0, 1, 2)))
            for _ in range(source.randrange(1, 20)):
                yield source.random() < chance

    return spells().__next__


def apart(cycles: int, stall: Stall = never) -> Stall:
    """Stalls of an end that acts at most once in `cycles` cycles."""
    left = 0

    def stalled() -> bool:
        nonlocal left
        if left:
            left -= 1
            return True
        if stall():
            return True
        left = cycles - 1
        return False

    return stalled


def plain(value: Any) -> Any:
    """A payload as integers: dicts for structs, lists for arrays; members of enums are kept."""
    if isinstance(value, data.Const):
        shape = value.shape()
        if isinstance(shape, data.StructLayout):
            return {name: plain(value[name]) for name, _ in shape}
        return [plain(value[i]) for i in range(len(value))]
    return value
