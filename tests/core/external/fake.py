"""A memory in Python behind a `MemoryPort`, whose words can be wrong."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from sim.models.traffic import Stall, never, plain


class FakeMemory:
    """Answers the port of a block; `spoil` may change a word on its way out, given its address."""

    def __init__(
        self,
        port: Any,
        *,
        spoil: Callable[[int, int], int] = lambda _address, word: word,
        idle: Any = None,
        stall: Stall = never,
    ) -> None:
        self.port, self.spoil, self.idle, self.stall = port, spoil, idle, stall
        self.samples = [
            *(port.write.valid, port.write.payload),
            *(port.read.valid, port.read.payload, port.words.ready),
        ]
        self.words: dict[int, int] = {}
        self.coming: deque[int] = deque()
        self.writes: list[int] = []
        self.reads: list[tuple[int, int]] = []
        self.takes, self.offers = False, False
        self.done = True

    def set(self, ctx: Any) -> None:
        self.takes = not self.coming and not self.stall()
        self.offers = self.offers or bool(self.coming and not self.stall())
        ctx.set(self.port.write.ready, self.takes)
        ctx.set(self.port.read.ready, self.takes)
        ctx.set(self.port.words.valid, self.offers)
        ctx.set(self.port.words.payload, self.coming[0] if self.offers else 0)
        if self.idle is not None:
            ctx.set(self.idle, not self.coming)

    def see(self, cycle: int, writes: int, write: Any, reads: int, read: Any, ready: int) -> None:
        del cycle
        if self.offers and ready:
            self.coming.popleft()
            self.offers = False
        if writes and self.takes:
            word = plain(write)
            self.words[word["address"]] = word["data"]
            self.writes.append(word["address"])
        if reads and self.takes:
            request = plain(read)
            self.reads.append((request["address"], request["more"]))
            for address in range(request["address"], request["address"] + request["more"] + 1):
                self.coming.append(self.spoil(address, self.words[address]))
