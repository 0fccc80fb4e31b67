"""Benches in Amaranth's own simulator."""

from __future__ import annotations

from typing import Any

from amaranth.sim import Simulator

from lbq_hw.sim import ends
from lbq_hw.sim.collisions import colliding
from lbq_hw.sim.ends import Driver, Monitor, ones, settling
from lbq_hw.sim.models.traffic import Stall, never, plain

__all__ = ["Bench", "Driver", "ones", "plain", "settling"]


class Bench(ends.Bench):
    """One simulation of one block: add its ends, then `run` until all of them are done.

    Reads that collide with writes give inverted data, see `sim.collisions`.
    """

    def __init__(self, block: Any) -> None:
        super().__init__(block)
        self.simulator = Simulator(colliding(block))
        self.simulator.add_clock(1e-6)
        self.cycles = 0

    def monitor(self, port: Any, count: int | None = None, *, stall: Stall = never) -> Monitor:
        """Empty a stream; done after `count` payloads, which are kept with their cycles."""
        return self.add(Monitor(port, count, stall))

    def run(self, *, limit: int = 20_000, extra: int = 0) -> None:
        """Tick until every end is done, then `extra` cycles; fail after `limit` cycles."""

        async def testbench(ctx: Any) -> None:
            samples = [sample for end in self.ends for sample in end.samples]
            left = extra
            while left >= 0:
                for end in self.ends:
                    end.set(ctx)
                _, _, *values = await ctx.tick().sample(*samples)
                for end in self.ends:
                    count = len(end.samples)
                    end.see(self.cycles, *values[:count])
                    del values[:count]
                self.cycles += 1
                if all(end.done for end in self.ends):
                    left -= 1
                assert self.cycles <= limit, f"not done after {limit} cycles"

        self.simulator.add_testbench(testbench)
        self.simulator.run()
