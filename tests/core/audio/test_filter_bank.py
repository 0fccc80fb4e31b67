# amaranth: UnusedElaboratable=no
"""The filter bank in hardware against the integers of lbq_hw.audio."""

from __future__ import annotations

import random

import numpy as np
import pytest
from core.harness import Bench

from lbq_hw.audio import BANDS, FRAME, RATE, FilterBank
from lbq_hw.core.audio.filter_bank import FilterBank as Block
from lbq_hw.sim.models.traffic import stalls

LOUD = 2**15 - 1


def noise(height: int, frames: int) -> list[int]:
    source = random.Random(height)
    return [source.randint(-height - 1, height) for _ in range(frames * FRAME)]


def tone(hertz: float) -> list[int]:
    """As loud as can be: the sign of a sine."""
    times = np.arange(2 * FRAME) / RATE
    return np.where(np.sin(2 * np.pi * hertz * times) >= 0, LOUD, -LOUD - 1).tolist()


@pytest.mark.parametrize(
    "samples",
    [
        pytest.param(noise(LOUD, 1), id="loud"),
        pytest.param(noise(LOUD, 1) + noise(60, 2), id="quiet", marks=pytest.mark.slow),
        pytest.param([0] * FRAME, id="silence", marks=pytest.mark.slow),
        pytest.param(tone(BANDS[0].centre), id="low", marks=pytest.mark.slow),
        pytest.param(tone(BANDS[-1].centre), id="high", marks=pytest.mark.slow),
        pytest.param([LOUD, -LOUD - 1] + [0] * 190, id="click", marks=pytest.mark.slow),
    ],
)
def test_levels_are_those_of_the_integers(samples: list[int]) -> None:
    expected = FilterBank().levels(np.array([samples]))[0]
    block = Block()
    bench = Bench(block)
    taken = bench.drive(block.i, samples, stall=stalls(1, 0.3))
    seen = bench.monitor(block.o, expected.size, stall=stalls(2, 0.3))
    bench.run(limit=400 * len(samples))
    levels = np.array([item["level"] for item in seen.payloads]).reshape(expected.shape)
    np.testing.assert_array_equal(levels, expected)
    frames, bands = expected.shape
    assert [item["band"] for item in seen.payloads] == [*range(bands)] * frames
    assert [item["last"] for item in seen.payloads] == ([0] * (bands - 1) + [1]) * frames
    # 7 MHz are enough.
    assert np.diff(taken.cycles).max() <= 7_000_000 // RATE
