# amaranth: UnusedElaboratable=no
"""Writer against the address arithmetic of the activation memory."""

from __future__ import annotations

from typing import Any

import cocotb

from lbq_hw.core.memory.writer import Writer
from sim.benches.harness import Bench, Settings, pack
from sim.models.traffic import apart
from sim.models.writer import build, decode, golden, random_planes

SHAPES = (
    {"lanes": 16, "word": 64, "planes": 5},
    {"lanes": 4, "word": 8, "planes": 1},
    {"lanes": 32, "word": 32, "planes": 2},
)


def block(shape: int) -> Writer:
    return build(**SHAPES[shape])


@cocotb.test()
async def writes_of_random_planes(dut: Any) -> None:
    sizes = SHAPES[Settings.from_env().shape]
    lanes = sizes["lanes"]
    bench = await Bench.start(dut, build(**sizes))
    layer, payloads = random_planes(bench.random, 60 * bench.settings.length, **sizes)
    dut.layer.value = pack(bench.block.layer.shape(), layer)
    bench.drive("i", payloads, stall=apart(layer["planes"], bench.stalls(0.3)))
    bench.monitor("o", golden(layer, payloads, lanes), view=lambda write: decode(write, lanes))
    await bench.finish()
    assert not dut.busy.value
