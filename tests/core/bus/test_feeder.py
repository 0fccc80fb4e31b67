# amaranth: UnusedElaboratable=no
"""An input is written, run and read back, without a host."""

from __future__ import annotations

from typing import Any

import pytest
from core.bus.fake import CONTROL, FakeCore
from core.harness import Bench

from lbq_hw.config import CoreConfig
from lbq_hw.core.bus.feeder import Feeder
from lbq_hw.isa import regions
from lbq_hw.isa.regions import REGISTERS, Region
from lbq_hw.sim.models.traffic import stalls

CONFIG = CoreConfig(membrane_bits=40)
STATUS = REGISTERS["status"].address
PLANES, LOGITS = Region.PLANES << regions.SHIFT, Region.LOGITS << regions.SHIFT
SLICES = [{"address": at, "data": 7 * at, "last": at == 13} for at in range(10, 14)]
ENTRIES = [0, 16, 1]


class Core(FakeCore):
    """`status` is what its runs end with."""

    def __init__(self, block: Any, status: int, rate: float) -> None:
        super().__init__(block, stall=stalls(1, rate), answer=self.value)
        self.status = status

    def value(self, addr: int) -> int:
        return self.status if addr == STATUS else addr


def play(*, status: int, by_host: int, rate: float) -> tuple[Core, Any, dict[str, list[int]]]:
    block = Feeder(CONFIG, logits=ENTRIES)
    bench = Bench(block)
    core = bench.add(Core(block, status, rate))
    bench.drive(block.i, [*SLICES, *SLICES], stall=stalls(2, rate))
    bench.hold((block.by_host, by_host))
    monitor = bench.monitor(block.o, None, stall=stalls(3, rate))
    history = bench.probe(done=block.done, failed=block.failed, active=block.active)
    bench.run(extra=300)
    return core, monitor, history


WRITES = [(1, PLANES | one["address"], one["data"]) for one in SLICES]
RUN = [(1, CONTROL, 2), (1, CONTROL, 1), (0, STATUS, 0)]
PLACES = [LOGITS | 2 * entry + part for entry in ENTRIES for part in (0, 1)]


@pytest.mark.parametrize("rate", [0.0, 0.4])
def test_an_input_after_the_other(rate: float) -> None:
    core, monitor, history = play(status=2, by_host=0, rate=rate)
    assert core.taken == [*WRITES, *RUN, *((0, place, 0) for place in PLACES)] * 2
    assert [one["data"] for one in monitor.payloads] == PLACES * 2
    assert [one["last"] for one in monitor.payloads] == [0, 0, 0, 0, 0, 1] * 2
    assert sum(history["done"]) == 2
    assert not any(history["failed"])
    assert any(history["active"])


@pytest.mark.parametrize(("status", "by_host"), [(6, 0), (2, 1)])
def test_no_logits_after_an_error_or_for_a_host(status: int, by_host: int) -> None:
    core, monitor, history = play(status=status, by_host=by_host, rate=0.3)
    assert core.taken == [*WRITES, *RUN] * 2
    assert monitor.payloads == []
    assert history["failed"][-1] == (status >> 2)
