# amaranth: UnusedElaboratable=no
"""Walker of every profile against a walk of the same tables by products, `sim.models.walks`."""

from __future__ import annotations

from typing import Any

import cocotb
from cocotb.triggers import RisingEdge

from lbq_hw import isa
from lbq_hw.config import Profile
from lbq_hw.core.walk.walker import Walker
from lbq_hw.sim.benches.harness import Bench, Settings, unpack
from lbq_hw.sim.benches.scoreboard import Scoreboard
from lbq_hw.sim.models import programs
from lbq_hw.sim.models.programs import SMALL, Tables, draw_tables, slices, without_rest
from lbq_hw.sim.models.walks import walk

SHAPES = (
    *programs.SHAPES,
    SMALL.with_(profile=Profile.COMPACT),
    SMALL.with_(profile=Profile.SPREAD),
    SMALL.with_external(partial_words=128 * SMALL.groups),
)


def block(shape: int) -> Walker:
    return Walker(SHAPES[shape])


@cocotb.test()
async def requests_and_steps_of_random_tables(dut: Any) -> None:
    config = SHAPES[Settings.from_env().shape]
    bench = await Bench.start(dut, Walker(config))
    tables = draw_tables(config, cocotb.RANDOM_SEED, most=500 * bench.settings.length)
    expected = walk(config, tables)
    await load(bench, tables)
    bench.monitor(
        "o_request",
        expected.requests,
        stall=bench.stalls(0.3),
        view=lambda request: without_rest([request])[0],
    )
    bench.monitor("o_step", expected.steps, stall=bench.stalls(0.3))
    layers = bench.expect("o_layer_info", expected.layers)
    end = bench.expect("end", [(isa.Error.NONE.value, 0)])
    end.put(await walked(bench, layers))
    await bench.finish()


@cocotb.test()
async def an_illegal_layer_is_told_and_nothing_is_asked(dut: Any) -> None:
    config = SHAPES[Settings.from_env().shape]
    bench = await Bench.start(dut, Walker(config))
    tables = draw_tables(config, cocotb.RANDOM_SEED)
    reserved = isa.LAYER.slots(config)["reserved"]
    await load(bench, tables | {"layers": [tables["layers"][0] | 1 << reserved.offset]})
    for name in ("o_request", "o_step"):
        bench.monitor(name, [])
    end = bench.expect("end", [(isa.Error.LAYER.value, 0)])
    end.put(await walked(bench))
    await bench.finish()


async def load(bench: Bench, tables: Tables) -> None:
    await bench.until(bench.drive("i_record", slices(bench.block.config, tables)))


async def walked(bench: Bench, layers: Scoreboard | None = None) -> tuple[int, int]:
    """Start, answer every barrier after a while, and wait for the end: its error and where.

    `layers` is told the LayerInfo at the end of each layer.
    """
    dut, stall = bench.dut, bench.stalls(0.5)
    dut.i_start.value = 1
    await bench.cycles(1)
    dut.i_start.value = 0
    await bench.cycles(1)
    shape, resume = bench.block.o_layer_info.shape(), False
    while True:
        done, layer_done = bool(dut.o_done.value), bool(dut.layer_done.value)
        if layers is not None and (done or (layer_done and resume)):
            layers.put(unpack(shape, int(dut.o_layer_info.value)))
        if done:
            break
        resume = layer_done and not stall()
        dut.i_resume.value = int(resume)
        await RisingEdge(dut.clk)
    return int(dut.o_error.value), int(dut.o_error_at.value)
