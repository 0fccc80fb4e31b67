# amaranth: UnusedElaboratable=no
"""Remembered frames against lbq_hw.audio."""

from __future__ import annotations

import numpy as np
from core.harness import Bench

from lbq_hw.audio import BANDS, GAP, LEVELS, ROWS, remembered
from lbq_hw.core.audio.history import History
from lbq_hw.sim.models.traffic import stalls


def test_rows_are_those_of_the_frames_before() -> None:
    """Beyond the end of the ring, and with frames from before the recording."""
    count, bands = GAP * ROWS + 4, len(BANDS)
    levels = np.random.default_rng(0).integers(0, LEVELS + 1, (1, count, bands), np.uint8)
    block = History()
    bench = Bench(block)
    items = [
        {"band": band, "level": int(level), "last": band == bands - 1}
        for frame in levels[0]
        for band, level in enumerate(frame)
    ]
    bench.drive(block.i, items, stall=stalls(1, 0.2))
    seen = bench.monitor(block.o, count * ROWS * bands, stall=stalls(2, 0.2))
    bench.run(limit=5 * count * ROWS * bands)
    found = np.array([item["level"] for item in seen.payloads]).reshape(count, ROWS, bands)
    np.testing.assert_array_equal(found, remembered(levels)[0])
    places = [(item["row"], item["column"], item["last"]) for item in seen.payloads]
    last = ROWS * bands - 1
    assert places == [(i // bands, i % bands, i == last) for i in range(last + 1)] * count
