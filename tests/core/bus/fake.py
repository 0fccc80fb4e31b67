"""Both sides of the core's port and of a request, as ends of a bench."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from lbq_hw.isa.regions import REGISTERS
from lbq_hw.sim.models.traffic import Stall, never

CONTROL = REGISTERS["control"].address
Request = tuple[int, int, int]
"""Whether it writes, its address, its data."""


class FakePort:
    """Takes requests as `HostPort` does, and answers reads; `taken` has what came."""

    def __init__(
        self, port: Any, *, stall: Stall = never, answer: Callable[[int], int] = lambda addr: ~addr
    ) -> None:
        self.port, self.stall, self.answer = port, stall, answer
        self.samples = [port.valid, port.write, port.addr, port.w_data]
        self.done = True
        self.taken: list[Request] = []
        self.looked = self.ready = False
        self.pending: Request | None = None
        self.answers: deque[int] = deque()
        self.answering = False

    def set(self, ctx: Any) -> None:
        self.answering = bool(self.answers) and not self.stall()
        self.ready = self.looked and not self.answers and not self.stall()
        ctx.set(self.port.ready, self.ready)
        ctx.set(self.port.r_valid, self.answering)
        ctx.set(self.port.r_data, self.answers[0] if self.answering else 0x0BAD)

    def see(self, cycle: int, valid: int, write: int, addr: int, data: int) -> None:
        del cycle
        request = (write, addr, data if write else 0)
        assert self.pending in (None, request if valid else None), "a request was withdrawn"
        if self.answering:
            self.answers.popleft()
        if self.ready:
            self.taken.append(request)
            if not write:
                self.answers.append(self.answer(addr) & 0xFFFF_FFFF)
        self.pending = request if valid and not self.ready else None
        self.looked = bool(valid) and not self.ready


class FakeCore(FakePort):
    """As `FakePort`, a core that runs for some cycles after each start, in which nobody may ask."""

    def __init__(self, block: Any, *, cycles: int = 20, **options: Any) -> None:
        super().__init__(block.port, **options)
        self.busy, self.cycles, self.left, self.runs = block.busy, cycles, 0, 0

    def set(self, ctx: Any) -> None:
        super().set(ctx)
        ctx.set(self.busy, self.left > 0)

    def see(self, cycle: int, valid: int, write: int, addr: int, data: int) -> None:
        super().see(cycle, valid, write, addr, data)
        self.left = max(0, self.left - 1)
        assert not (self.ready and self.left), "the core was asked while it ran"
        if self.ready and (write, addr, data) == (1, CONTROL, 1):
            self.left, self.runs = self.cycles, self.runs + 1


class Requester:
    """Asks one request after the other; `answers` has (refused, data of a read)."""

    def __init__(self, port: Any, requests: Iterable[Request], *, stall: Stall = never) -> None:
        self.port, self.stall = port, stall
        self.left = deque(requests)
        self.samples = [port.ack, port.r_data, port.refused]
        self.answers: list[tuple[int, int]] = []
        self.valid = False

    @property
    def done(self) -> bool:
        return not self.left

    def set(self, ctx: Any) -> None:
        if self.left and not self.valid and not self.stall():
            write, addr, data = self.left[0]
            ctx.set(self.port.write, write)
            ctx.set(self.port.addr, addr)
            ctx.set(self.port.w_data, data)
            self.valid = True
        ctx.set(self.port.valid, self.valid)

    def see(self, cycle: int, ack: int, data: int, refused: int) -> None:
        del cycle
        assert self.valid or not ack, "nothing was asked"
        if ack:
            write, _, _ = self.left.popleft()
            self.answers.append((refused, 0 if write or refused else data))
            self.valid = False


class FakeRequest:
    """Answers the requests of a bus: reads with the inverted address, refuses odd addresses."""

    def __init__(self, port: Any, *, stall: Stall = never) -> None:
        self.port, self.stall = port, stall
        self.samples = [port.valid, port.write, port.addr, port.w_data]
        self.done = True
        self.taken: list[Request] = []
        self.seen: Request | None = None
        self.acked = False

    def set(self, ctx: Any) -> None:
        self.acked = self.seen is not None and not self.stall()
        addr = self.seen[1] if self.seen else 0
        ctx.set(self.port.ack, self.acked)
        ctx.set(self.port.refused, self.acked and addr & 1)
        ctx.set(self.port.r_data, ~addr & 0xFFFF_FFFF if self.acked else 0x0BAD)

    def see(self, cycle: int, valid: int, write: int, addr: int, data: int) -> None:
        del cycle
        request = (write, addr, data if write else 0)
        assert self.seen in (None, request if valid else None), "a request was withdrawn"
        if self.acked:
            self.taken.append(request)
        self.seen = request if valid and not self.acked else None
