"""A memory in Python behind a `MemoryPort`, whose words can be wrong."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from lbq_hw.sim.models.traffic import Stall, never, plain


class FakeMemory:
    """Answers the port of a block; `spoil` may change a word on its way out, given its address.

    Words that nobody wrote are 0.
    """

    def __init__(
        self,
        port: Any,
        *,
        spoil: Callable[[int, int], int] = lambda _address, word: word,
        empty: Any = None,
        stall: Stall = never,
    ) -> None:
        self.port, self.spoil, self.empty, self.stall = port, spoil, empty, stall
        self.samples = [port.access.valid, port.access.payload, port.words.ready]
        self.words: dict[int, int] = {}
        self.coming: deque[int] = deque()
        self.writes: list[int] = []
        self.reads: list[tuple[int, int]] = []
        self.takes, self.offers = False, False
        self.done = True

    def set(self, ctx: Any) -> None:
        self.takes = not self.coming and not self.stall()
        self.offers = self.offers or bool(self.coming and not self.stall())
        ctx.set(self.port.access.ready, self.takes)
        ctx.set(self.port.words.valid, self.offers)
        ctx.set(self.port.words.payload, self.coming[0] if self.offers else 0)
        if self.empty is not None:
            ctx.set(self.empty, not self.coming)

    def see(self, cycle: int, valid: int, payload: Any, ready: int) -> None:
        del cycle
        if self.offers and ready:
            self.coming.popleft()
            self.offers = False
        if not (valid and self.takes):
            return
        access = plain(payload)
        first, more = access["address"], access["more"]
        if access["write"]:
            self.words[first] = access["data"]
            self.writes.append(first)
        else:
            self.reads.append((first, more))
            for address in range(first, first + more + 1):
                self.coming.append(self.spoil(address, self.words.get(address, 0)))
