# amaranth: UnusedElaboratable=no
"""Lanes against a model of their contract."""

from __future__ import annotations

import random
from typing import Any

import pytest
from core.harness import Bench, Driver
from core.streaming.words import config, events_of, words

from lbq_hw.core.streaming.lanes import StreamLanes
from lbq_hw.sim.ends import Script
from lbq_hw.sim.models.traffic import never, stalls


@pytest.mark.parametrize("identities", [0, 1])
@pytest.mark.parametrize("rate", [0, 0.5])
def test_lanes_add_shifted_weights_up_to_the_end_of_a_tile(identities: int, rate: float) -> None:
    c = config(identities)
    source, half = random.Random(4), 1 << (c.weight_bits - 1)
    table = [[source.randrange(-half, half) for _ in range(c.lanes)] for _ in range(c.weight_rows)]
    given = [e for word in words(c, 30, 5) for e in events_of(c, word | {"shift": 0})]
    bench = Bench(StreamLanes(c))
    block: Any = bench.block
    mask = (1 << c.weight_bits) - 1
    rows = [sum((w & mask) << c.weight_bits * i for i, w in enumerate(row)) for row in table]
    writes = [{"addr": i, "data": row, "en": 1} for i, row in enumerate(rows)]
    port = block.weights
    bench.add(Script({"addr": port.addr, "data": port.data, "en": port.en}, writes))
    wait = iter([True] * len(rows))
    late = stalls(6, rate) if rate else never
    bench.add(Driver(block.i, given, lambda: next(wait, False) or late()))
    expected, sums = [], [0] * c.lanes
    for event in given:
        lanes = event["mask"] if c.identities else event["mask"] * ((1 << c.lanes) - 1)
        for i in range(c.lanes):
            sums[i] += table[event["row"]][i] * (lanes >> i & 1)
        if event["end"]:
            expected.append(sums)
            sums = [0] * c.lanes
    taken = bench.monitor(block.o, len(expected), stall=stalls(7, rate) if rate else never)
    bench.run()
    assert taken.payloads == expected
