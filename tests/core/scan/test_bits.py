# amaranth: UnusedElaboratable=no
"""What is found out about bits, for every value of a byte and some of a word."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from amaranth import Module, Signal
from amaranth.sim import Simulator

from lbq_hw.core.scan.bits import at_least, count_byte, encode, take_lowest

WIDE = 32


def found(make: Callable, width: int, values: list[int]) -> list[int]:
    """What `make` finds for each value, in a circuit without registers."""
    m, given = Module(), Signal(width)
    value = make(m, given)
    shown = Signal(len(value))
    m.d.comb += shown.eq(value)
    seen = []

    async def look(ctx) -> None:
        for bits in values:
            ctx.set(given, bits)
            seen.append(ctx.get(shown))

    simulator = Simulator(m)
    simulator.add_testbench(look)
    simulator.run()
    return seen


def values(width: int) -> list[int]:
    """All values of a byte or less; of a wider word some, with few bits and with many."""
    if width <= 8:
        return list(range(1 << width))
    source = random.Random(width)
    some = [sum(1 << bit for bit in source.sample(range(width), n)) for n in range(width + 1)]
    return [*some, *(1 << bit for bit in range(width))]


@pytest.mark.parametrize("width", [1, 2, 8, WIDE])
def test_the_lowest_bit_is_taken_and_the_others_are_left(width: int) -> None:
    given = values(width)
    lowest = [bits & -bits for bits in given]
    rest = [bits & bits - 1 if bits else 0 for bits in given]
    assert found(lambda _, bits: take_lowest(bits)[0], width, given) == lowest
    assert found(lambda _, bits: take_lowest(bits)[1], width, given) == rest


@pytest.mark.parametrize("width", [1, 2, 8, WIDE])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_at_least_so_many_bits_are_set(width: int, count: int) -> None:
    given = values(width)
    expected = [int(bits.bit_count() >= count) for bits in given]
    assert found(lambda m, bits: at_least(m, count, bits), width, given) == expected


def test_the_bits_of_a_byte_are_counted() -> None:
    given = values(8)
    counts = [bits.bit_count() for bits in given]
    assert found(lambda _, bits: count_byte(bits), 8, given) == counts


@pytest.mark.parametrize("width", [2, 8, 12, WIDE])
def test_the_one_bit_that_is_set_has_a_number(width: int) -> None:
    given = [1 << bit for bit in range(width)]
    assert found(lambda _, bits: encode(bits), width, given) == list(range(width))
