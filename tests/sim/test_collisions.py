# amaranth: UnusedElaboratable=no
"""Whole networks where reads that collide with writes give inverted data; the inversion itself."""

from __future__ import annotations

import pytest
from amaranth.lib import memory
from amaranth.sim import Simulator
from simulators import CACHE, NARROW, WIDE, Shape, bench, drawn, needs_verilator, shared_core

from lbq_hw.compiler import compile_network
from lbq_hw.core.accelerator import accelerator
from lbq_hw.sim.check import check
from lbq_hw.sim.collisions import colliding, convert_colliding
from lbq_hw.sim.drawn.networks import random_images
from lbq_hw.sim.verilator import BENCH, TOP, Verilated, build_bench


@pytest.mark.parametrize("careless", [False, True])
def test_only_a_read_of_the_word_that_is_written_is_inverted(careless: bool) -> None:
    attrs = {"no_rw_check": 1} if careless else {}
    rows = memory.Memory(shape=8, depth=4, init=[1, 2, 3, 4], attrs=attrs)
    read, other, write = rows.read_port(), rows.read_port(), rows.write_port()
    steps = [  # address read or none, address written or none, what is seen a cycle later
        (0, None, 1),
        (1, 1, 2 ^ 0xFF if careless else 2),  # a collision
        (None, 1, 2 ^ 0xFF if careless else 2),  # what was read stays
        (1, None, 0x77),
        (2, 3, 3),
        (3, None, 0x77),
    ]
    seen, beside = [], []

    async def testbench(ctx) -> None:
        ctx.set(other.addr, 3)
        for wanted, written, _ in steps:
            ctx.set(read.en, wanted is not None)
            ctx.set(read.addr, wanted or 0)
            ctx.set(write.en, written is not None)
            ctx.set(write.addr, written or 0)
            ctx.set(write.data, 0x77)
            await ctx.tick()
            seen.append(ctx.get(read.data))
            beside.append(ctx.get(other.data))

    simulator = Simulator(colliding(rows))
    simulator.add_clock(1e-6)
    simulator.add_testbench(testbench)
    simulator.run()
    assert seen == [data for _, _, data in steps]
    assert beside == [4, 4, 4, 4, 4 ^ 0xFF if careless else 4, 0x77]


@needs_verilator
@pytest.mark.slow
@pytest.mark.parametrize("shape", [NARROW, WIDE], ids=str)
def test_networks_are_the_same_to_the_cycle_where_colliding_reads_are_inverted(
    shape: Shape,
) -> None:
    config = shared_core(shape)
    text, wrapped = convert_colliding(accelerator(config)(config), name=TOP)
    assert wrapped > 12
    programs = (bench(config), build_bench(text, BENCH, top=TOP, cache=CACHE))
    reports = []
    for program in programs:
        found = []
        with Verilated(program) as core:
            for seed in range(10):
                network = drawn(seed, config.lanes)
                images = random_images(network, 1, seed)
                outcome = check(network, compile_network(network, config), core, images)
                assert outcome.difference is None, f"seed {seed}: {outcome.difference}"
                report = outcome.report()
                found.append((report["cycles"], report["layers"]))
        reports.append(found)
    assert reports[0] == reports[1]
