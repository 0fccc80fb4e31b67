# amaranth: UnusedElaboratable=no
"""A visit finder against a model of its contract."""

from __future__ import annotations

import random
from typing import Any

import pytest
from core.harness import Bench
from core.streaming.windows import SEEDS, drawn, late, layer_and_paths

from lbq_hw.core.streaming.finder import VisitFinder
from lbq_hw.sim.ends import Hold, Script, Store


@pytest.mark.parametrize("rate", [0, 0.5])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_finder_offers_what_windows_and_the_hot_map_reach(seed: int, rate: float) -> None:
    program, layer, paths, maps = drawn(seed)
    layer, c = layer | {"always": 0, "readout": 0}, program.config
    source = random.Random(seed)
    hot = [source.randrange(1 << c.columns) & source.randrange(1 << c.columns) for _ in maps]
    bench = Bench(VisitFinder(c))
    block: Any = bench.block
    bench.add(Hold([(block.layer, layer), (block.paths, layer_and_paths(c, paths))]))
    bench.add(Script({"start": block.start}, [{"start": 1}]))
    bench.add(Store(block.maps, maps, 1))
    bench.add(Store(block.hot, hot, 1))
    expected, cycles = [], 0
    for y in range(layer["rows_last"] + 1):
        found, taken = hot[layer["map"] + y], 1
        if layer["leaks"] and y == 0:
            found |= 1  # the patrol is at row 0, column 0
        for path in paths:
            top = y * path["row_step"] + path["row_init"]
            rows = range(top, top + path["rows_last"] + 1)
            seen = [maps[path["map"] + r] for r in rows if path["row_low"] <= r <= path["row_high"]]
            joined = 0
            for bits in seen:
                joined |= bits
            taken += len(rows) + 1
            taken += max(path["left"], path["right"]) + 1 if joined else 0
            for x in range(layer["columns_last"] + 1):
                at = x * path["column_step"]
                near = range(max(0, at - path["left"]), at + path["right"] + 1)
                found |= any(joined >> n & 1 for n in near) << x
        columns = [x for x in range(layer["columns_last"] + 1) if found >> x & 1]
        ends = y == layer["rows_last"]
        row = [{"column": x, "real": 1, "row_end": 0, "layer_end": 0} for x in columns]
        row = row or [{"column": 0, "real": 0, "row_end": 0, "layer_end": 0}]
        row[-1] |= {"row_end": 1, "layer_end": int(ends)}
        expected += [(y, mark) for mark in row]
        cycles += taken + len(row)
    visits = bench.monitor(block.o, len(expected), stall=late(3, rate))
    bench.run()
    assert visits.payloads == [{"row": y, "mark": mark} for y, mark in expected]
    if not rate:
        assert visits.cycles[-1] == cycles
