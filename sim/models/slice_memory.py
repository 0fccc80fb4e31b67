"""An external memory as the core's host reaches it, with any latency."""

from __future__ import annotations

import random
from typing import Any

from lbq_hw.sim.models.traffic import plain

WORDS_PER_SLICE = 2


class SliceMemory:
    """An end of a bench: takes requests, answers reads, and runs self-tests.

    `delays` draws the cycles before a request is taken, and the cycles from there to the answer, at
    least 1. A self-test takes `test_cycles` and overwrites the slices that it tests. It goes over
    the memory twice, so it counts each word of the `broken` slices twice.
    """

    def __init__(self, port: Any, words: dict[int, int], *, seed: int | None = None) -> None:
        self.port = port
        self.words = words
        self.source = random.Random(seed)
        self.random = seed is not None
        self.test_cycles = 9
        self.broken: set[int] = set()
        self.samples = [
            port.request.valid,
            port.request.payload,
            port.test_start,
            port.test_last,
            port.calibrate,
        ]
        self.done = True
        self.requests: list[tuple[int, int, int]] = []
        self.tests: list[tuple[int, int]] = []
        self.calibrations: list[int] = []
        self.ready = True
        self._left: int | None = None
        self._word = 0
        self._testing = 0
        self._differing = 0

    def set(self, ctx: Any) -> None:
        self.ready = self._left is None and (not self.random or self.source.random() < 0.4)
        answers = self._left == 0
        ctx.set(self.port.request.ready, self.ready)
        ctx.set(self.port.answer.valid, answers)
        ctx.set(self.port.answer.payload, self._word if answers else self.source.getrandbits(32))
        ctx.set(self.port.test_busy, self._testing > 0)
        ctx.set(self.port.test_differing, self._differing)

    def see(
        self, cycle: int, valid: int, payload: Any, start: int, last: int, calibrate: int
    ) -> None:
        if calibrate:
            self.calibrations.append(cycle)
        if self._left is not None:
            self._left = self._left - 1 if self._left else None
        self._testing = max(self._testing - 1, 0)
        if valid and self.ready:
            assert not self._testing, "a request while a self-test is under way"
            self._take(cycle, plain(payload))
        if start:
            assert not self._testing, "a self-test while one is under way"
            self.tests.append((cycle, last))
            self._testing = self.test_cycles
            self.words |= {address: address ^ 0xFFFFFFFF for address in range(last + 1)}
            self._differing = sum(2 * WORDS_PER_SLICE for address in self.broken if address <= last)

    def _take(self, cycle: int, request: dict[str, int]) -> None:
        address = request["address"]
        self.requests.append((cycle, address, request["write"]))
        if request["write"]:
            self.words[address] = request["data"]
        else:
            self._word = self.words.get(address, 0)
            self._left = self.source.randrange(6) if self.random else 0
