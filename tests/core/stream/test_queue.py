# amaranth: UnusedElaboratable=no
"""Queues against the FIFOs of Amaranth."""

import random

import pytest
from amaranth import Module
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.sim import Simulator
from core.harness import Bench

from lbq_hw.config import CoreConfig
from lbq_hw.core.stream.queue import Queue, ShortQueue
from lbq_hw.sim.collisions import colliding


@pytest.mark.parametrize("depth", [3, 4, 5, 17])
def test_every_cycle_is_that_of_the_fifo_of_amaranth(depth: int) -> None:
    m = Module()
    m.submodules.queue = queue = Queue(8, depth=depth)
    m.submodules.fifo = fifo = SyncFIFOBuffered(width=8, depth=depth)
    source = random.Random(depth)

    async def bench(ctx):
        passed = full = 0
        for cycle in range(2000):
            if cycle % 50 == 0:
                puts, gets = source.choice(((1, 1), (0.9, 0.3), (0.3, 0.9), (1, 0), (0, 1)))
            put, get = source.random() < puts, source.random() < gets
            item = source.randrange(256)
            for signal, value in (
                (queue.i.valid, put), (fifo.w_en, put), (queue.i.payload, item),
                (fifo.w_data, item), (queue.o.ready, get), (fifo.r_en, get),
            ):  # fmt: skip
                ctx.set(signal, value)
            assert ctx.get(queue.i.ready) == ctx.get(fifo.w_rdy), cycle
            assert ctx.get(queue.o.valid) == ctx.get(fifo.r_rdy), cycle
            if ctx.get(queue.o.valid):
                assert ctx.get(queue.o.payload) == ctx.get(fifo.r_data), cycle
                passed += get
            full += put and not ctx.get(queue.i.ready)
            await ctx.tick()
        assert passed > 500
        assert full > 50

    simulator = Simulator(colliding(m))
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


@pytest.mark.parametrize(
    ("kind", "depth", "latency"),
    [(Queue, 3, 2), (Queue, 17, 2), (ShortQueue, 2, 1), (ShortQueue, 3, 1)],
)
def test_items_are_offered_after_the_latency_one_per_cycle(
    kind: type, depth: int, latency: int
) -> None:
    queue = kind(8, depth=depth)
    bench = Bench(queue)
    driver = bench.drive(queue.i, range(40))
    taken = bench.monitor(queue.o, 40)
    bench.run()
    assert taken.payloads == list(range(40))
    assert driver.cycles == list(range(40))
    assert taken.cycles == list(range(latency, 40 + latency))


@pytest.mark.parametrize(
    ("kind", "depth"), [(Queue, 3), (Queue, 4), (Queue, 17), (ShortQueue, 2), (ShortQueue, 5)]
)
def test_as_many_items_wait_as_stated(kind: type, depth: int) -> None:
    queue = kind(8, depth=depth)
    bench = Bench(queue)
    held = iter([True] * 30)
    driver = bench.drive(queue.i, range(depth + 2))
    bench.monitor(queue.o, depth + 2, stall=lambda: next(held, False))
    bench.run()
    assert sum(cycle < 30 for cycle in driver.cycles) == depth


def test_a_queue_that_would_not_pass_one_item_per_cycle_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^depth must be at least 3, not 2$"):
        Queue(8, depth=2)
    with pytest.raises(ValueError, match=r"^fifo_depth must be between 3 and 4096, not 2$"):
        CoreConfig(fifo_depth=2)
