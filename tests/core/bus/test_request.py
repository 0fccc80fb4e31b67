# amaranth: UnusedElaboratable=no
"""Writes of some bytes are refused, and reach nobody."""

from __future__ import annotations

import pytest
from core.bus.fake import FakeRequest, Requester
from core.harness import Bench

from lbq_hw.core.bus.request import WholeWords
from lbq_hw.sim.models.traffic import stalls

REQUESTS = [(1, 4, 10), (0, 6, 0), (1, 8, 11), (0, 7, 0)]


@pytest.mark.parametrize("partial", [0, 1])
def test_a_request_passes_unless_it_writes_bytes(partial: int) -> None:
    block = WholeWords(address_bits=8)
    bench = Bench(block)
    bench.hold((block.partial, partial))
    user = bench.add(Requester(block.i, REQUESTS, stall=stalls(1, 0.3)))
    behind = bench.add(FakeRequest(block.o, stall=stalls(2, 0.3)))
    bench.run(extra=5)
    reads = [(0, ~6 & 0xFFFF_FFFF), (1, 0)]
    assert user.answers == [(partial, 0), reads[0], (partial, 0), reads[1]]
    assert behind.taken == [one for one in REQUESTS if not (partial and one[0])]
