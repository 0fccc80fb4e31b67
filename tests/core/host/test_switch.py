# amaranth: UnusedElaboratable=no
"""Two users of one port take turns, and each gets its own answers."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import pytest
from core.bus.fake import FakePort, Request
from core.harness import Bench

from lbq_hw.core.host.switch import PortSwitch
from lbq_hw.sim.models.traffic import Stall, stalls


class User:
    """One request after the other, and the answers to reads."""

    def __init__(self, port: Any, requests: Iterable[Request], stall: Stall) -> None:
        self.port, self.stall = port, stall
        self.left = deque(requests)
        self.samples = [port.ready, port.r_valid, port.r_data]
        self.answers: list[int] = []
        self.valid = self.waits = False

    @property
    def done(self) -> bool:
        return not self.left and not self.waits

    def set(self, ctx: Any) -> None:
        if self.left and not self.valid and not self.waits and not self.stall():
            for name, value in zip(("write", "addr", "w_data"), self.left[0], strict=True):
                ctx.set(getattr(self.port, name), value)
            self.valid = True
        ctx.set(self.port.valid, self.valid)

    def see(self, cycle: int, ready: int, r_valid: int, r_data: int) -> None:
        del cycle
        assert self.waits or not r_valid, "an answer came that was the other's"
        if r_valid:
            self.answers.append(r_data)
            self.waits = False
        if self.valid and ready:
            self.valid = False
            self.waits = not self.left.popleft()[0]


@pytest.mark.parametrize("rate", [0.0, 0.4])
def test_requests_of_two_users(rate: float) -> None:
    block = PortSwitch()
    bench = Bench(block)
    each = [[(n % 3 == 0, 1000 * user + n, n) for n in range(40)] for user in (1, 2)]
    port = bench.add(FakePort(block.port, stall=stalls(1, rate)))
    users = [
        bench.add(User(side, requests, stalls(2 + n, rate)))
        for n, (side, requests) in enumerate(zip((block.first, block.second), each, strict=True))
    ]
    bench.run()
    for user, requests in zip(users, each, strict=True):
        first = requests[0][1]
        came = [one for one in port.taken if first <= one[1] < first + 40]
        assert came == [(write, at, data if write else 0) for write, at, data in requests]
        reads = [at for write, at, _ in requests if not write]
        assert user.answers == [~at & 0xFFFF_FFFF for at in reads]
    if not rate:  # both wait at once, so that they take turns
        owners = [at // 1000 for _, at, _ in port.taken]
        assert all(a != b for a, b in pairwise(owners[:60]))
