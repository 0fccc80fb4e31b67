# amaranth: UnusedElaboratable=no
"""Pixels become the slices that the compiler's own code packs."""

from __future__ import annotations

import pytest
from core.harness import Bench
from core.pixels.pictures import LAYOUTS, expected, packed, pixels, random_picture

from lbq_hw.core.pixels.pixel_input import PixelInput
from lbq_hw.sim.models.traffic import stalls

RUNS = 2


@pytest.mark.parametrize("by_words", [False, True])
@pytest.mark.parametrize("name", LAYOUTS)
def test_the_slices_of_random_pictures(name: str, by_words: bool) -> None:
    shape = LAYOUTS[name]
    pictures = [random_picture(shape, seed) for seed in range(RUNS)]
    block = PixelInput(shape, word_bits=32)
    bench = Bench(block)
    bench.hold((block.by_words, by_words))
    each = [pixels(shape, picture) for picture in pictures]
    if by_words:
        words = [word for one in each for word in packed(shape, one, 32)]
        bench.drive(block.words, words, stall=stalls(1, 0.3))
    else:
        stream = [
            {"data": pixel, "first": number == 0}
            for one in each
            for number, pixel in enumerate(one)
        ]
        bench.drive(block.pixels, stream, stall=stalls(1, 0.3))
    wanted = [expected(shape, picture) for picture in pictures]
    monitor = bench.monitor(block.o, RUNS * len(wanted[0]), stall=stalls(2, 0.3))
    bench.run(extra=50)
    for number, slices in enumerate(wanted):
        came = monitor.payloads[number * len(slices) : (number + 1) * len(slices)]
        assert {one["address"]: one["data"] for one in came} == slices
        assert [one["last"] for one in came] == [0] * (len(slices) - 1) + [1]
    assert len(monitor.payloads) == RUNS * len(wanted[0])
