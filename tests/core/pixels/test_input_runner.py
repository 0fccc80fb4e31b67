# amaranth: UnusedElaboratable=no
"""An input is written and run, as soon as its last slice has come."""

from __future__ import annotations

import pytest
from core.bus.fake import CONTROL, FakeCore
from core.harness import Bench, ones

from lbq_hw.core.pixels.input_runner import InputRunner
from lbq_hw.isa import regions
from lbq_hw.isa.regions import REGISTERS, Region
from lbq_hw.sim.models.traffic import stalls

STATUS = REGISTERS["status"].address
SLICES = [{"address": at, "data": 7 * at, "last": at == 13} for at in range(10, 14)]
INPUT = [(1, Region.PLANES << regions.SHIFT | one["address"], one["data"]) for one in SLICES]
RUN = [(1, CONTROL, 2), (1, CONTROL, 1), (0, STATUS, 0)]


@pytest.mark.parametrize("rate", [0.0, 0.4])
def test_inputs_are_run_one_after_the_other_and_errors_told(rate: float) -> None:
    block = InputRunner()
    bench = Bench(block)
    statuses = [2, 6, 2]
    core = bench.add(FakeCore(block, stall=stalls(1, rate), answer=lambda _: statuses.pop(0)))
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
