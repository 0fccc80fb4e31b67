# amaranth: UnusedElaboratable=no
"""Words become words of another width, bit by bit the same, one granule per cycle."""

from __future__ import annotations

import random
from math import gcd

import pytest
from core.harness import Bench

from lbq_hw.core.pixels.gearbox import Gearbox
from lbq_hw.sim.models.traffic import stalls

WIDTHS = [(32, 4), (32, 24), (8, 24), (32, 32), (8, 3)]


@pytest.mark.parametrize(("before", "behind"), WIDTHS)
def test_the_same_bits(before: int, behind: int) -> None:
    count = 2 * behind
    whole = random.Random(1).getrandbits(count * before)
    words = [whole >> before * at & (1 << before) - 1 for at in range(count)]
    wanted = count * before // behind
    block = Gearbox(i_bits=before, o_bits=behind)
    bench = Bench(block)
    bench.drive(block.i, words, stall=stalls(1, 0.3))
    monitor = bench.monitor(block.o, wanted, stall=stalls(2, 0.3))
    bench.run()
    assert monitor.payloads == [whole >> behind * at & (1 << behind) - 1 for at in range(wanted)]


@pytest.mark.parametrize(("before", "behind"), WIDTHS)
def test_a_granule_per_cycle_and_one_cycle_per_word_on_each_side(before: int, behind: int) -> None:
    block = Gearbox(i_bits=before, o_bits=behind)
    bench = Bench(block)
    count, granule = 2 * behind, gcd(before, behind)
    bench.drive(block.i, [0] * count)
    monitor = bench.monitor(block.o, count * before // behind)
    bench.run()
    pairs = zip(monitor.cycles, monitor.cycles[1:], strict=False)
    assert {b - a for a, b in pairs} <= set(range(1, behind // granule + 2 + -(-behind // before)))


def test_a_width_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^i_bits must be at least 1, not 0$"):
        Gearbox(i_bits=0, o_bits=8)
