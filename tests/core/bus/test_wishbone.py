# amaranth: UnusedElaboratable=no
"""Classic cycles of Wishbone become requests."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest
from core.bus.fake import FakeRequest
from core.harness import Bench

from lbq_hw.core.bus.wishbone import WishboneSlave
from lbq_hw.sim.models.traffic import Stall, stalls


class Master:
    """One cycle after the other: (we, adr, data, sel)."""

    def __init__(self, block: Any, cycles: list[tuple[int, int, int, int]], stall: Stall) -> None:
        self.block, self.stall, self.left = block, stall, deque(cycles)
        self.samples = [block.ack, block.err, block.datrd]
        self.answers: list[tuple[int, int]] = []
        self.active = False

    @property
    def done(self) -> bool:
        return not self.left

    def set(self, ctx: Any) -> None:
        if self.left and not self.active and not self.stall():
            for name, value in zip(("we", "adr", "datwr", "sel"), self.left[0], strict=True):
                ctx.set(getattr(self.block, name), value)
            self.active = True
        ctx.set(self.block.cyc, self.active)
        ctx.set(self.block.stb, self.active)

    def see(self, cycle: int, ack: int, err: int, data: int) -> None:
        del cycle
        assert not (ack and err)
        assert self.active or not (ack or err)
        if ack or err:
            we, *_ = self.left.popleft()
            self.answers.append((err, 0 if we or err else data))
            self.active = False


@pytest.mark.parametrize("rate", [0.0, 0.4])
def test_reads_and_writes(rate: float) -> None:
    block = WishboneSlave(address_bits=10)
    bench = Bench(block)
    cycles = [(1, 2, 77, 15), (0, 4, 0, 15), (0, 5, 0, 15), (1, 7, 1, 15), (1, 6, 5, 7),
              (0, 8, 0, 1)]  # fmt: skip
    behind = bench.add(FakeRequest(block.request, stall=stalls(1, rate)))
    master = bench.add(Master(block, cycles, stalls(2, rate)))
    bench.run(extra=5)
    inverted = [~at & 0xFFFF_FFFF for at in (4, 8)]
    assert master.answers == [(0, 0), (0, inverted[0]), (1, 0), (1, 0), (1, 0), (0, inverted[1])]
    assert behind.taken == [(1, 2, 77), (0, 4, 0), (0, 5, 0), (1, 7, 1), (0, 8, 0)]
