# amaranth: UnusedElaboratable=no
"""An input is written and run, as soon as its last slice has come."""

from __future__ import annotations

from typing import Any

import pytest
from core.bus.fake import FakePort
from core.harness import Bench, ones

from lbq_hw.core.pixels.input_runner import InputRunner
from lbq_hw.isa import regions
from lbq_hw.isa.regions import REGISTERS, Region
from lbq_hw.sim.models.traffic import stalls

CONTROL, STATUS = REGISTERS["control"].address, REGISTERS["status"].address
SLICES = [{"address": at, "data": 7 * at, "last": at == 13} for at in range(10, 14)]
INPUT = [(1, Region.PLANES << regions.SHIFT | one["address"], one["data"]) for one in SLICES]
RUN = [(1, CONTROL, 2), (1, CONTROL, 1), (0, STATUS, 0)]


class Core(FakePort):
    """Runs for a while after each start; `statuses` are what its runs end with."""

    def __init__(self, block: Any, statuses: list[int], rate: float) -> None:
        super().__init__(block.port, stall=stalls(1, rate), answer=lambda _: statuses.pop(0))
        self.busy, self.left = block.busy, 0

    def set(self, ctx: Any) -> None:
        super().set(ctx)
        ctx.set(self.busy, self.left > 0)

    def see(self, cycle: int, valid: int, write: int, addr: int, data: int) -> None:
        super().see(cycle, valid, write, addr, data)
        self.left = max(0, self.left - 1)
        assert not (self.ready and self.left), "the core was asked while it ran"
        if self.ready and (write, addr, data) == (1, CONTROL, 1):
            self.left = 20


@pytest.mark.parametrize("rate", [0.0, 0.4])
def test_inputs_are_run_one_after_the_other_and_errors_told(rate: float) -> None:
    block = InputRunner()
    bench = Bench(block)
    core = bench.add(Core(block, [2, 6, 2], rate))
    bench.drive(block.i, SLICES * 3, stall=stalls(2, rate))
    seen = bench.probe(
        done=block.done, failed=block.failed, active=block.active, feeding=block.feeding
    )
    bench.run(extra=120)
    assert core.taken == [*INPUT, *RUN] * 3
    first, second, third = ones(seen["done"])
    assert ones(seen["failed"]) == list(range(second + 1, third + 1))
    assert all(seen["active"][at] and not seen["active"][at + 1] for at in (first, second, third))
    assert not any(a & f for a, f in zip(seen["active"], seen["feeding"], strict=True))
