# amaranth: UnusedElaboratable=no
"""Transfers of AXI4-Lite become requests, whatever the order of address and data."""

from __future__ import annotations

from typing import Any

import pytest
from core.bus.fake import FakeRequest
from core.harness import Bench

from lbq_hw.core.bus.axi4lite import Axi4LiteSlave
from lbq_hw.sim.models.traffic import stalls

SLVERR = 2


class Channel:
    """The ports of one channel as a stream."""

    def __init__(self, block: Any, name: str, payload: str) -> None:
        self.valid = getattr(block, f"{name}valid")
        self.ready = getattr(block, f"{name}ready")
        self.payload = getattr(block, payload)


@pytest.mark.parametrize("rate", [0.0, 0.5])
def test_writes_and_reads_at_once(rate: float) -> None:
    block = Axi4LiteSlave(address_bits=10)
    bench = Bench(block)
    bench.hold((block.wstrb, 15))
    behind = bench.add(FakeRequest(block.request, stall=stalls(1, rate)))
    written, read = range(2, 32), range(100, 130)
    bench.drive(Channel(block, "aw", "awaddr"), [4 * at for at in written], stall=stalls(2, rate))
    bench.drive(Channel(block, "w", "wdata"), [3 * at for at in written], stall=stalls(3, rate))
    bench.drive(Channel(block, "ar", "araddr"), [4 * at for at in read], stall=stalls(4, rate))
    responses = bench.monitor(Channel(block, "b", "bresp"), len(written), stall=stalls(5, rate))
    words = bench.monitor(Channel(block, "r", "rdata"), len(read), stall=stalls(6, rate))
    bench.run(extra=5)
    assert responses.payloads == [SLVERR * (at & 1) for at in written]
    assert words.payloads == [~at & 0xFFFF_FFFF for at in read]
    assert [one for one in behind.taken if one[0]] == [(1, at, 3 * at) for at in written]
    assert [one for one in behind.taken if not one[0]] == [(0, at, 0) for at in read]
    if not rate:  # they take turns
        kinds = [one[0] for one in behind.taken[:20]]
        assert sum(kinds) == 10


def test_a_write_of_some_bytes_is_refused() -> None:
    block = Axi4LiteSlave(address_bits=10)
    bench = Bench(block)
    bench.hold((block.wstrb, 3))
    behind = bench.add(FakeRequest(block.request))
    bench.drive(Channel(block, "aw", "awaddr"), [8])
    bench.drive(Channel(block, "w", "wdata"), [1])
    responses = bench.monitor(Channel(block, "b", "bresp"), 1)
    bench.run(extra=5)
    assert responses.payloads == [SLVERR]
    assert behind.taken == []
