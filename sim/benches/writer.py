# amaranth: UnusedElaboratable=no
"""Writer against the address arithmetic of the activation memory."""

from __future__ import annotations

from typing import Any

import cocotb
from cocotb.triggers import RisingEdge

from lbq_hw.config import Profile
from lbq_hw.core.memory.writer import CompactWriter, Writer
from lbq_hw.sim.benches.harness import Bench, Settings, pack
from lbq_hw.sim.models.traffic import apart
from lbq_hw.sim.models.writer import build, decode, golden, random_planes

SHAPES: tuple[dict[str, Any], ...] = (
    {"lanes": 16, "word": 64, "planes": 5},
    {"lanes": 4, "word": 8, "planes": 1},
    {"lanes": 32, "word": 32, "planes": 2},
    {"lanes": 16, "word": 32, "planes": 3, "profile": Profile.COMPACT},
)


def block(shape: int) -> Writer:
    return build(**SHAPES[shape])


async def give_late(bench: Bench, planes: list[list[int]]) -> None:
    """Offer plane k of a taken payload k + 1 cycles later, and noise in all other cycles."""
    dut, shape = bench.dut, bench.block.planes.shape()
    left, now, age = list(planes), [], 0
    while True:
        await RisingEdge(dut.clk)
        age += 1
        if dut.i__valid.value:
            now, age = left.pop(0), 0
        values = [bench.random.getrandbits(shape.elem_shape) for _ in range(shape.length)]
        if age < len(now):
            values[age] = now[age]
        dut.planes.value = pack(shape, values)


@cocotb.test()
async def writes_of_random_planes(dut: Any) -> None:
    sizes = SHAPES[Settings.from_env().shape]
    lanes = sizes["lanes"]
    bench = await Bench.start(dut, build(**sizes))
    shape = {name: sizes[name] for name in ("lanes", "word", "planes")}
    layer, payloads = random_planes(bench.random, 60 * bench.settings.length, **shape)
    dut.layer.value = pack(bench.block.layer.shape(), layer)
    given = payloads
    if isinstance(bench.block, CompactWriter):
        given = [{name: each[name] for name in ("restart", "write")} for each in payloads]
        cocotb.start_soon(give_late(bench, [each["planes"] for each in payloads]))
    bench.drive("i", given, stall=apart(layer["planes"], bench.stalls(0.3)))
    bench.monitor("o", golden(layer, payloads, lanes), view=lambda write: decode(write, lanes))
    await bench.finish()
    assert not dut.busy.value
