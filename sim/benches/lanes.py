# amaranth: UnusedElaboratable=no
"""LaneArray against sums in Python's integers."""

from __future__ import annotations

from typing import Any

import cocotb

from lbq_hw.core.lanes.lane_array import LaneArray
from lbq_hw.sim.benches.harness import Bench, Settings, pack
from lbq_hw.sim.models.lanes import golden, random_events, random_weights

SHAPES: tuple[dict[str, Any], ...] = (
    {"lanes": 8, "rows": 16, "weight_bits": 8, "acc_bits": 22},
    {"lanes": 4, "rows": 5, "weight_bits": 2, "acc_bits": 8},
    {"lanes": 64, "rows": 128, "weight_bits": 4, "acc_bits": 20},
)


def block(shape: int) -> LaneArray:
    return LaneArray(**SHAPES[shape])


@cocotb.test()
async def sums_of_random_events(dut: Any) -> None:
    sizes = SHAPES[Settings.from_env().shape]
    shape = {name: sizes[name] for name in ("lanes", "rows")}
    bench = await Bench.start(dut, LaneArray(**sizes))
    weights = random_weights(bench.random, **shape, weight_bits=sizes["weight_bits"])
    dut.weights__en.value = (1 << sizes["lanes"]) - 1
    for row, values in enumerate(weights):
        dut.weights__addr.value = row
        dut.weights__data.value = pack(bench.block.weights.data.shape(), values)
        await bench.cycles(1)
    dut.weights__en.value = 0
    events = random_events(bench.random, 60 * bench.settings.length, **shape)
    bench.drive("i_event", events, stall=bench.stalls(0.3))
    expected = golden(events, weights, sizes["acc_bits"])
    bench.permit("room", stall=bench.stalls(0.3))
    bench.monitor("o_sum", expected)
    await bench.finish()
    assert not dut.busy.value
