# amaranth: UnusedElaboratable=no
"""A row fetch against a model of its contract."""

from __future__ import annotations

import random
from typing import Any

import pytest
from core.harness import Bench
from core.streaming.windows import SEEDS, drawn, late, layer_and_paths

from lbq_hw.core.streaming.row_fetch import RowFetch
from lbq_hw.sim.ends import Hold, Store
from lbq_hw.streaming.records import StreamRegion


@pytest.mark.parametrize("rate", [0, 0.5])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_row_fetch_brings_the_bits_of_every_row(seed: int, rate: float) -> None:
    program, layer, paths, maps = drawn(seed)
    c, rows = program.config, list(program.image[StreamRegion.ROWS])
    source = random.Random(seed)
    given = [
        {
            "row": source.randrange(layer["rows_last"] + 1),
            "column": source.randrange(layer["columns_last"] + 1),
        }
        for _ in range(12)
    ]
    expected = []
    for place in given:
        for tile in range(layer["tiles_last"] + 1):
            for number, path in enumerate(paths):
                left = place["column"] * path["column_step"] + path["column_init"]
                for j in range(path["rows_last"] + 1):
                    row = place["row"] * path["row_step"] + path["row_init"] + j
                    inside = path["row_low"] <= row <= path["row_high"]
                    line = (maps[path["map"] + row] & path["mask"]) if inside else 0
                    width = path["window_last"] + 1
                    bits = [left + i >= 0 and line >> (left + i) & 1 for i in range(width)]
                    last = number == len(paths) - 1 and j == path["rows_last"]
                    expected.append(
                        {
                            "bits": sum(bit << i for i, bit in enumerate(bits)),
                            "base": rows[path["map"] + row] if inside else None,
                            "left": left,
                            "tap": path["tap"] + j * width,
                            "path": number,
                            "tile": tile,
                            "tile_row": tile * layer["tile_rows"],
                            "end": int(last),
                        }
                    )
    bench = Bench(RowFetch(c))
    block: Any = bench.block
    bench.add(Hold([(block.layer, layer), (block.paths, layer_and_paths(c, paths))]))
    bench.add(Store(block.maps, maps, 1))
    bench.add(Store(block.rows, rows, 1))
    bench.drive(block.i, given, stall=late(5, rate))
    taken = bench.monitor(block.o, len(expected), stall=late(6, rate))
    bench.run()
    for found, wanted in zip(taken.payloads, expected, strict=True):
        assert found == wanted | {
            "base": found["base"] if wanted["base"] is None else wanted["base"]
        }
    if not rate:
        assert taken.cycles == list(range(1, len(expected) + 1))
