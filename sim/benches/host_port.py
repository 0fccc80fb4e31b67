# amaranth: UnusedElaboratable=no
"""HostPort of every profile against a model of its registers and of what it passes on."""

from __future__ import annotations

from typing import Any

import cocotb
from cocotb.triggers import RisingEdge

from lbq_hw.config import Profile
from lbq_hw.core.host.port import HostPort
from lbq_hw.core.timing import timing
from lbq_hw.core.variants import host_port
from lbq_hw.isa import regions
from lbq_hw.isa.regions import COUNTERS
from lbq_hw.sim.benches.harness import Bench, Settings, pack, unpack
from lbq_hw.sim.benches.port import Port
from lbq_hw.sim.benches.scoreboard import Scoreboard
from lbq_hw.sim.models.host import PASSES, Finish, HostModel, Read, Write, random_steps
from lbq_hw.sim.models.programs import SMALL
from lbq_hw.sim.models.slice_memory import SliceMemory

SHAPES = (
    SMALL.with_(word=64, membrane_bits=40),
    SMALL,
    SMALL.with_(lanes=32, word=32, channels=64, logits=32),
    SMALL.with_(profile=Profile.COMPACT),
    SMALL.with_(profile=Profile.SPREAD),
    SMALL.with_external(),
)
LAYER = 3


def block(shape: int) -> HostPort:
    return host_port(SHAPES[shape])(SHAPES[shape])


@cocotb.test()
async def random_requests_and_runs(dut: Any) -> None:
    config = SHAPES[Settings.from_env().shape]
    bench = await start(dut)
    source, units = bench.random, config.units
    planes = [source.getrandbits(config.word) for _ in range(config.plane_words)]
    half = 1 << config.membrane_bits - 1
    logits = [source.randrange(-half, half) for _ in range(config.logits)]
    groups = [logits[at : at + units] for at in range(0, config.logits, units)]
    model = HostModel(config=config, planes=planes, logits=logits, layer=LAYER)
    steps = random_steps(source, config, 200 * bench.settings.length)
    for step in steps:
        model.take(step)

    dut.layer.value = LAYER
    shape = bench.block.logits.data.shape()
    bench.store("planes", planes, late=timing(config).plane_read)
    bench.store("logits", [pack(shape, group) for group in groups])
    bench.monitor("plane_write", model.passed["plane_write"])
    memory: dict[int, int] = {}
    if config.external:
        seed = bench.random.getrandbits(32)
        bench.add(SliceMemory(bench.block.host_memory, memory, seed=seed))
    else:
        bench.monitor("records", model.passed["records"])
        for name in ("weights", "params"):
            cocotb.start_soon(watch_writes(bench, name, bench.expect(name, model.passed[name])))
    answers = bench.expect("answers", model.answers)
    port = Port(dut, stall=bench.stalls(0.2))
    for step in steps:
        match step:
            case Write(address=address, data=data):
                await port.write(address, [data])
            case Read(address=address):
                answers.put((await port.read(address, 1))[0])
            case Finish(error=error, at=at):
                await bench.cycles(2)  # not in the cycle of `start`
                dut.walk_error.value, dut.walk_error_at.value = error.value, at
                dut.finished.value = 1
                await bench.cycles(1)
                dut.finished.value = 0
    if config.external:
        bench.expect("memory", [model.memory]).put(memory)
    await bench.finish()


@cocotb.test()
async def ticks_are_counted_from_the_second_cycle_of_busy_on(dut: Any) -> None:
    bench = await start(dut)
    port = Port(dut)
    shape = bench.block.ticks.shape()
    counts = dict.fromkeys(COUNTERS, 0)

    async def tick() -> None:
        ticks = dict.fromkeys(COUNTERS, 0)
        while True:
            await RisingEdge(dut.clk)
            for name in COUNTERS:
                counts[name] += ticks[name] and int(dut.busy.value) & ~int(dut.start.value)
            ticks = {name: bench.random.randrange(2) for name in COUNTERS}
            dut.ticks.value = pack(shape, ticks)

    cocotb.start_soon(tick())
    await bench.cycles(5)
    await port.write(regions.REGISTERS["control"].address, [1])
    await bench.cycles(100 * bench.settings.length)
    dut.finished.value = 1
    await bench.cycles(1)
    dut.finished.value = 0
    await bench.cycles(5)
    found = {name: (await port.read(regions.REGISTERS[name].address, 1))[0] for name in COUNTERS}
    bench.expect("counters", [counts]).put(found)
    await bench.finish()


async def start(dut: Any) -> Bench:
    """An external memory, if the core has one, is calibrated."""
    config = SHAPES[Settings.from_env().shape]
    bench = await Bench.start(dut, host_port(config)(config))
    if config.external:
        dut.calibrated.value, dut.aligned.value, dut.passes.value = 1, 1, PASSES
    return bench


async def watch_writes(bench: Bench, name: str, board: Scoreboard) -> None:
    """Pass on the writes at a write port, by address and the values that are enabled."""
    dut, shape = bench.dut, getattr(bench.block, name).data.shape()
    enable, address, data = (getattr(dut, f"{name}__{part}") for part in ("en", "addr", "data"))
    while True:
        await RisingEdge(dut.clk)
        if enabled := int(enable.value):
            values = enumerate(unpack(shape, int(data.value)))
            chosen = {index: value for index, value in values if enabled >> index & 1}
            board.put({"addr": int(address.value), "data": chosen})
