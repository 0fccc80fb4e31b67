# amaranth: UnusedElaboratable=no
"""LaneArray of every profile against sums in Python's integers."""

from __future__ import annotations

from typing import Any

import cocotb

from lbq_hw.core.lanes.lane_array import LaneArray
from lbq_hw.core.lanes.spread_lanes import SpreadLanes
from lbq_hw.sim.benches.harness import Bench, Settings, pack
from lbq_hw.sim.models.lanes import (
    Pairs,
    Tape,
    golden,
    golden_pairs,
    in_pairs,
    random_events,
    random_weights,
)

SHAPES: tuple[tuple[type[LaneArray], dict[str, Any]], ...] = (
    (LaneArray, {"lanes": 8, "rows": 16, "weight_bits": 8, "acc_bits": 22}),
    (LaneArray, {"lanes": 4, "rows": 5, "weight_bits": 2, "acc_bits": 8}),
    (LaneArray, {"lanes": 64, "rows": 128, "weight_bits": 4, "acc_bits": 20}),
    (SpreadLanes, {"lanes": 8, "rows": 1700, "weight_bits": 4, "acc_bits": 20}),
    (SpreadLanes, {"lanes": 32, "rows": 16, "weight_bits": 3, "acc_bits": 16}),
    (Tape, {"lanes": 48, "rows": 8, "weight_bits": 8, "acc_bits": 20}),
    (Pairs, {"lanes": 16, "rows": 30, "weight_bits": 2, "acc_bits": 20}),
    (Pairs, {"lanes": 48, "rows": 8, "weight_bits": 4, "acc_bits": 20}),
)


def block(shape: int) -> LaneArray:
    kind, sizes = SHAPES[shape]
    return kind(**sizes)


@cocotb.test()
async def sums_of_random_events(dut: Any) -> None:
    kind, sizes = SHAPES[Settings.from_env().shape]
    shape = {name: sizes[name] for name in ("lanes", "rows")}
    bench = await Bench.start(dut, kind(**sizes))
    weights = random_weights(bench.random, **shape, weight_bits=sizes["weight_bits"])
    port = bench.block.weights
    dut.weights__en.value = (1 << len(port.en)) - 1
    for row, values in enumerate(weights):
        dut.weights__addr.value = row
        dut.weights__data.value = pack(port.data.shape(), values)
        await bench.cycles(1)
    dut.weights__en.value = 0
    events = random_events(bench.random, 60 * bench.settings.length, **shape)
    expected = golden(events, weights, sizes["acc_bits"])
    if kind is Pairs:
        events = in_pairs(bench.random, events, sizes["rows"])
        expected = golden_pairs(events, weights, sizes["acc_bits"])
    bench.drive("i_event", events, stall=bench.stalls(0.3))
    bench.permit("room", stall=bench.stalls(0.3))
    bench.monitor("o_sum", expected)
    await bench.finish()
    assert not dut.busy.value
