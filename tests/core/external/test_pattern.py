"""Words of the pattern, in Python and in logic."""

from __future__ import annotations

import random

import pytest
from amaranth import Module, Signal
from amaranth.sim import Simulator

from lbq_hw.core.external.pattern import compute, pattern


@pytest.mark.parametrize("bits", [16, 32])
def test_logic_gives_the_words_of_the_function(bits: int) -> None:
    m = Module()
    address, word = Signal(24), Signal(bits)
    m.d.comb += word.eq(pattern(address, bits))
    source = random.Random(1)

    async def bench(ctx):
        for value in [0, 1, 2, *(source.randrange(1 << 24) for _ in range(100))]:
            ctx.set(address, value)
            assert ctx.get(word) == compute(value, bits)

    simulator = Simulator(m)
    simulator.add_testbench(bench)
    simulator.run()


def test_words_of_a_block_differ_and_a_wrong_bit_of_an_address_shows() -> None:
    words = [compute(address, 16) for address in range(0x30000, 0x40000)]
    assert len(set(words)) == 65_536
    for even, odd in zip(words[::2], words[1::2], strict=True):
        assert even ^ odd == 0xFFFF
    for bit in range(24):
        assert compute(0x123456, 16) != compute(0x123456 ^ 1 << bit, 16)
    assert compute(5, 32) == compute(5, 16) | (compute(5, 16) ^ 0xFFFF) << 16
