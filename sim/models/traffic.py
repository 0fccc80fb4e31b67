"""What the traffic of every testbench needs, in any simulator: stalls and plain payloads."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

from amaranth.lib import data

Stall = Callable[[], bool]
"""Asked once a cycle: True where an end of a stream stays idle for that cycle."""


def never() -> bool:
    """No stall at all."""
    return False


def stalls(seed: int, rate: float) -> Stall:
    """Stall about `rate` of the cycles, in spells: bursts and droughts, not only noise."""
    source = random.Random(seed)

    def spells() -> Iterator[bool]:
        while True:
            chance = min(0.95, rate * source.choice((0, 1, 2)))
            for _ in range(source.randrange(1, 20)):
                yield source.random() < chance

    return spells().__next__


def apart(cycles: int, stall: Stall = never) -> Stall:
    """Stalls of an end that acts every so many cycles at most."""
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
    """A payload as integers: dicts for structs, lists for arrays, members of enums as they are."""
    if isinstance(value, data.Const):
        shape = value.shape()
        if isinstance(shape, data.StructLayout):
            return {name: plain(value[name]) for name, _ in shape}
        return [plain(value[i]) for i in range(len(value))]
    return value
