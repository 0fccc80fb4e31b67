# amaranth: UnusedElaboratable=no
"""Energies of bands against the integers of lbq_hw.audio."""

from __future__ import annotations

import random

import numpy as np
from core.harness import Bench

from lbq_hw.audio import FRAME, FilterBank
from lbq_hw.core.audio.resonators import Resonators
from lbq_hw.sim.models.traffic import stalls


def test_energies_are_those_of_the_integers_and_wait_until_they_are_taken() -> None:
    source = random.Random(0)
    samples = [
        source.choice([-(2**15), 2**15 - 1, source.randint(-300, 300)]) for _ in range(FRAME)
    ]
    block = Resonators()
    bench = Bench(block)
    taken = bench.drive(block.i, samples)
    expected = FilterBank().energies(np.array([samples]))[0].tolist()
    seen = bench.monitor(block.o, len(expected), stall=stalls(1, 0.8))
    bench.run(limit=20_000)
    assert [item["energy"] for item in seen.payloads] == expected
    # 14 cycles for each of 16 bands, and one for the sample itself.
    assert set(np.diff(taken.cycles)) == {225}
