# amaranth: UnusedElaboratable=no
"""The whole core at its port, as far as it needs no other simulator than Amaranth's."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from amaranth import Module, Signal
from amaranth.sim import Simulator

from lbq_hw import golden
from lbq_hw.compiler import Program, compile_network
from lbq_hw.config import CoreConfig
from lbq_hw.core.accelerator import Accelerator, TapeAccelerator, accelerator
from lbq_hw.core.payload import Event, PairEvent
from lbq_hw.isa import regions
from lbq_hw.isa.record import SLICE
from lbq_hw.isa.regions import Region
from lbq_hw.network import INPUT
from lbq_hw.sim.collisions import colliding
from lbq_hw.sim.drawn.cores import random_core
from lbq_hw.sim.drawn.networks import random_images, random_network

CONTROL, STATUS = (regions.REGISTERS[name].address for name in ("control", "status"))
LIMIT = 5000  # cycles


async def access(ctx: Any, port: Any, address: int, word: int | None = None) -> int:
    """Write a word, or read one."""
    ctx.set(port.valid, 1)
    ctx.set(port.addr, address)
    ctx.set(port.write, word is not None)
    ctx.set(port.w_data, word or 0)
    await ctx.tick().until(port.ready)
    ctx.set(port.valid, 0)
    while word is None and not ctx.get(port.r_valid):
        await ctx.tick()
    return ctx.get(port.r_data)


def run(core: Accelerator, program: Program, image: np.ndarray) -> np.ndarray:
    """Logits of an image, without loading anything else."""
    config, logits = core.config, []

    async def host(ctx: Any) -> None:
        base = program.tensors[INPUT].base
        for entry, slices in enumerate(program.load_image(image).tolist(), base):
            for part, word in enumerate(slices):
                address = regions.address(config, Region.PLANES, entry, part)
                await access(ctx, core.port, address, word)
        await access(ctx, core.port, CONTROL, 1)
        for _ in range(LIMIT):
            await ctx.tick()
            if not ctx.get(core.busy):
                break
        assert await access(ctx, core.port, STATUS) == 2
        for entry in range(program.logit_words):
            word = await access(ctx, core.port, regions.address(config, Region.LOGITS, entry))
            logits.append(word - (word >> 31 << 32))

    simulator = Simulator(colliding(core))
    simulator.add_clock(1e-6)
    simulator.add_testbench(host)
    simulator.run()
    return program.logits(np.array(logits))


@pytest.mark.parametrize("seed", [0, 3])
def test_a_core_with_an_image_runs_without_a_load(seed: int) -> None:
    network = random_network(seed, timesteps=1 + seed % 2, layers=1)
    program = compile_network(network, random_core(network, seed))
    core = accelerator(program.config)(program.config, image=program.image())
    [image] = random_images(network, 1, seed)
    expected = golden.run(network, image[None]).logits[0]
    assert np.array_equal(run(core, program, image), expected)


def test_an_image_has_what_a_load_writes() -> None:
    network = random_network(1, layers=1)
    program = compile_network(network, random_core(network, 1))
    image, config = program.image(), program.config
    part = config.weight_bits * regions.weight_slice_lanes(config)
    for region, slices in program.contents.slices().items():
        size = part if region == Region.WEIGHTS else SLICE
        wanted = [[row >> size * i & (1 << size) - 1 for i in range(slices.shape[1])]
                  for row in image[region]]  # fmt: skip
        assert slices.tolist() == wanted


@pytest.mark.parametrize(
    ("image", "text"),
    [
        ({Region.PLANES: [1]}, "an image must be of tables, weights or parameters, not "
         "<Region.PLANES: 7>"),
        ({Region.RUNS: [0] * 257}, "the image of RUNS must have at most 256 entries, not 257"),
    ],
)  # fmt: skip
def test_an_image_that_does_not_fit_is_refused(image: dict, text: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        Accelerator(CoreConfig(), image=image)


@pytest.mark.parametrize("pairs", [0, 1])
def test_an_event_with_a_row_beyond_the_weights_is_noticed(pairs: int) -> None:
    config = CoreConfig().with_external(weight_rows=20, pairs=pairs)
    sizes = {"lanes": 16, "row_bits": config.weight_address_bits, "masks": True}
    event = Signal((PairEvent if pairs else Event)(**sizes))
    told, m = Signal(), Module()
    m.d.comb += told.eq(event.shape().beyond(event, config.weight_rows))
    noticed = []

    async def look(ctx: Any) -> None:
        for row in range(32):
            if pairs:
                other = [9, 10][row % 3 % 2]  # of the row that is not added
                halves = [other, row // 2] if row % 2 else [row // 2, other]
                ctx.set(event, {"rows": halves, "adds": 1 << row % 2, "mask": 1})
            else:
                ctx.set(event, {"row": row, "mask": 1})
            await ctx.delay(1e-9)
            noticed.append(ctx.get(told))

    simulator = Simulator(m)
    simulator.add_testbench(look)
    simulator.run()
    assert noticed == [row >= 20 for row in range(32)]


def test_a_core_with_external_memory_has_its_program_on_a_tape() -> None:
    config = CoreConfig().with_external()
    assert [accelerator(c) for c in (CoreConfig(), config)] == [Accelerator, TapeAccelerator]
    text = "a core with external memory must have its program on a tape, not in an image"
    with pytest.raises(ValueError, match=f"^{text}$"):
        TapeAccelerator(config, image={Region.RUNS: [0]})
