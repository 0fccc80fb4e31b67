"""Link and UART with a ledger: what was written can be read, and so can the log of all writes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from simulators import CACHE, needs_verilator

from lbq_hw.host.line import SerialTransport
from lbq_hw.sim import noise_link
from lbq_hw.sim.ledger import CELLS, COUNT, ENTRIES, LOG

pytestmark = needs_verilator


@pytest.fixture
def host() -> Iterator[SerialTransport]:
    with noise_link.stepped(noise_link.build(cache=CACHE)) as port:
        yield port.transport()


def test_writes_are_in_the_memory_and_in_the_log(host: SerialTransport) -> None:
    assert host.read(COUNT, 1) == [0]
    host.write(0x0ABCDE08, [5, 6])
    host.write(0xF00000FF, [7])
    assert host.read(8, 2) == [5, 6]
    assert host.read(0x10000000 + CELLS - 1, 1) == [7]
    assert host.read(COUNT, 1) == [3]
    assert host.read(LOG, 6) == [0x0ABCDE08, 5, 0x0ABCDE09, 6, 0xF00000FF, 7]


def test_the_log_has_the_latest_writes(host: SerialTransport) -> None:
    host.write(0, range(ENTRIES + 2))
    assert host.read(COUNT, 1) == [ENTRIES + 2]
    assert host.read(LOG, 6) == [ENTRIES, ENTRIES, ENTRIES + 1, ENTRIES + 1, 2, 2]
