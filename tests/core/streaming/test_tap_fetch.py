# amaranth: UnusedElaboratable=no
"""A tap fetch against a model of its contract."""

from __future__ import annotations

import random
from typing import Any

import pytest
from core.harness import Bench
from core.streaming.windows import SEEDS, Fields, drawn, late, layer_and_paths

from lbq_hw.core.streaming.tap_fetch import TapFetch
from lbq_hw.sim.ends import Hold, Store
from lbq_hw.streaming.records import StreamRegion


@pytest.mark.parametrize("rate", [0, 0.5])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_tap_fetch_brings_the_words_of_every_pixel(seed: int, rate: float) -> None:
    program, layer, paths, _ = drawn(seed)
    c, taps = program.config, list(program.image[StreamRegion.TAPS])
    source = random.Random(seed)
    levels = [source.randrange(1 << c.lanes) for _ in range(c.level_words)]
    given, expected, cycles = [], [], 0
    for _ in range(30):
        number = source.randrange(len(paths))
        path, tile = paths[number], source.randrange(layer["tiles_last"] + 1)
        width = path["window_last"] + 1
        row = {
            "bits": source.randrange(1 << width) * source.randrange(2),
            "base": 0,
            "left": source.randrange(2),
            "tap": path["tap"],
            "path": number,
            "tile": tile,
            "tile_row": tile * layer["tile_rows"],
            "end": source.randrange(2),
        }
        given.append(row)
        found = []
        for i in (i for i in range(width) if row["bits"] >> i & 1):
            entry = taps[row["tap"] + i]
            planes = path["planes_last"] + 1
            for word in [tile] if path["identity"] else range(path["words_last"] + 1):
                for plane in range(planes):
                    at = (row["left"] + i) * path["pixel"] + word * planes + plane
                    first = (entry >> 1) + row["tile_row"]
                    found.append(
                        {
                            "word": levels[at % len(levels)] * (entry & 1),
                            "row": first + (0 if path["identity"] else word * c.lanes),
                            "shift": plane + path["exponent"],
                            "identity": path["identity"],
                            "end": 0,
                        }
                    )
        if row["end"]:
            found = found or [{"word": 0, "row": None, "shift": None, "identity": None}]
            found[-1]["end"] = 1
        expected += found
        cycles += max(1, len(found))
    bench = Bench(TapFetch(c))
    block: Any = bench.block
    bench.add(Hold([(block.paths, layer_and_paths(c, paths))]))
    bench.add(Store(block.levels, levels, 1))
    bench.add(Store(block.taps, taps, 1))
    driver = bench.drive(block.i, given, stall=late(7, rate))
    taken = bench.monitor(block.o, len(expected), stall=late(8, rate))
    bench.run()
    for found, wanted in zip(taken.payloads, expected, strict=True):
        assert all(found[name] == value for name, value in wanted.items() if value is not None)
    if not rate:
        assert driver.cycles[-1] == cycles - max(1, len(found_of_last(given, expected)))


def found_of_last(given: list[Fields], expected: list[Any]) -> list[Any]:
    """Words of the last row that was given."""
    bits, end = given[-1]["bits"], given[-1]["end"]
    if not bits:
        return expected[-1:] if end else []
    count = 0
    for item in reversed(expected):
        if item["end"] and count:
            break
        count += 1
    return expected[-count:]
