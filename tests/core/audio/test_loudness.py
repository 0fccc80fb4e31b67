# amaranth: UnusedElaboratable=no
"""Levels below the ceiling, from energies of any size."""

from __future__ import annotations

import random

import numpy as np
import pytest
from core.harness import Bench

from lbq_hw.audio import BANDS, FilterBank
from lbq_hw.audio.filter_bank import FALL, FLOOR, LEVELS
from lbq_hw.core.audio.loudness import Loudness
from lbq_hw.sim.models.traffic import never, stalls


def levels(frames: list[list[int]], *, stall: float = 0.0) -> list[list[int]]:
    """What the block makes of the energies of some frames."""
    block = Loudness()
    bench = Bench(block)
    bands = len(BANDS)
    items = [
        {"band": band, "energy": energy, "last": band == bands - 1}
        for frame in frames
        for band, energy in enumerate(frame)
    ]
    bench.drive(block.i, items, stall=stalls(1, stall) if stall else never)
    seen = bench.monitor(block.o, len(items), stall=stalls(2, stall) if stall else never)
    bench.run(limit=60 * len(items))
    assert [item["band"] for item in seen.payloads] == [*range(bands)] * len(frames)
    assert [item["last"] for item in seen.payloads] == ([0] * (bands - 1) + [1]) * len(frames)
    found = [item["level"] for item in seen.payloads]
    return [found[i : i + bands] for i in range(0, len(found), bands)]


@pytest.mark.parametrize("seed", range(2))
def test_levels_are_those_of_the_integers(seed: int) -> None:
    source = random.Random(seed)
    largest = len(Loudness().i.payload.energy)
    frames = []
    for _ in range(12):
        bits = source.randint(0, largest)  # so that the ceiling rises and falls
        frames.append([source.getrandbits(source.randint(0, bits)) for _ in BANDS])
    bank = FilterBank()
    expected = [bank.below_ceiling(np.array([frame]))[0].tolist() for frame in frames]
    assert levels(frames, stall=0.4) == expected


def test_the_ceiling_falls_one_level_in_some_frames_down_to_the_floor() -> None:
    """A band 2 half octaves above the floor, then one at the floor."""
    at_floor = [(1 << FLOOR // 2) << band.gain for band in BANDS]
    loud = [energy << 1 for energy in at_floor]
    silent = [0] * len(BANDS)
    seen = levels([silent, loud, *[at_floor] * (2 * FALL + 1)])
    assert seen[0] == silent
    # The ceiling counts in parts of a level, rounded down: the first frame takes one away.
    assert [frame[0] for frame in seen[1:]] == [
        LEVELS,
        *[LEVELS - 1] * FALL,
        *[LEVELS] * (FALL + 1),
    ]
