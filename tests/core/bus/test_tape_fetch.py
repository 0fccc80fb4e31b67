# amaranth: UnusedElaboratable=no
"""Words of a tape come from a memory that takes its time, and none is lost at a stop."""

from __future__ import annotations

import random
from collections import deque
from typing import Any

import pytest
from core.harness import Bench

from lbq_hw.core.bus.tape_fetch import TapeFetch
from lbq_hw.sim.models.traffic import stalls

WAITS = 30


class SlowMemory:
    """Answers addresses in their order, after a random time, with 7 times the address."""

    def __init__(self, block: Any, slow: int) -> None:
        self.block, self.slow = block, slow
        self.samples = [block.address.valid, block.address.payload]
        self.done = True
        self.random = random.Random(1)
        self.coming: deque[tuple[int, int]] = deque()
        self.asked: list[int] = []
        self.cycle, self.ready, self.most = 0, False, 0

    def set(self, ctx: Any) -> None:
        self.ready = self.random.random() < 0.7 or not self.slow
        comes = bool(self.coming) and self.coming[0][0] <= self.cycle
        ctx.set(self.block.address.ready, self.ready)
        ctx.set(self.block.words.valid, comes)
        ctx.set(self.block.words.payload, self.coming.popleft()[1] if comes else 0)

    def see(self, cycle: int, valid: int, address: int) -> None:
        self.cycle = cycle + 1
        if valid and self.ready:
            self.asked.append(address)
            late = 1 + (self.random.randrange(WAITS) if self.slow else 0)
            self.coming.append((self.cycle + late, 7 * address & 0xFFFF))
        self.most = max(self.most, len(self.coming))


class TapeUser:
    """Runs twice: takes `count` words with stalls, then stops and takes what still comes."""

    def __init__(self, tape: Any, count: int) -> None:
        self.tape, self.count = tape, count
        self.samples = [tape.aligned, tape.words.valid, tape.words.payload]
        self.stall = stalls(3, 0.3)
        self.state, self.runs = "stop", 0
        self.words: list[list[int]] = []
        self.dropped = 0
        self.start = False

    @property
    def done(self) -> bool:
        return self.runs == 2 and self.state == "stop"

    def set(self, ctx: Any) -> None:
        self.ready = self.state == "stop" or not self.stall()
        ctx.set(self.tape.start, self.state == "start")
        ctx.set(self.tape.stop, self.state == "stop")
        ctx.set(self.tape.words.ready, self.ready)

    def see(self, cycle: int, aligned: int, valid: int, word: int) -> None:
        del cycle
        if self.state == "stop":
            self.dropped += valid
            if aligned and self.runs < 2:
                self.state = "start"
        elif self.state == "start":
            assert aligned
            self.words.append([])
            self.runs += 1
            self.state = "run"
        elif valid and self.ready:
            self.words[-1].append(word)
            if len(self.words[-1]) == self.count:
                self.state = "stop"


@pytest.mark.parametrize("slow", [0, 1])
def test_two_runs(slow: int) -> None:
    block = TapeFetch(word_bits=16, depth=9)
    bench = Bench(block)
    bench.hold((block.works, 1))
    memory = bench.add(SlowMemory(block, slow))
    user = bench.add(TapeUser(block.tape, 50))
    bench.run(extra=100)
    assert user.words == [[7 * at for at in range(50)]] * 2
    assert user.dropped > 0
    again = memory.asked.index(0, 1)
    assert memory.asked[:again] == list(range(again))
    assert memory.asked[again:] == list(range(len(memory.asked) - again))
    assert memory.most <= 9
    assert not memory.coming


def test_what_a_host_asks_is_answered_with_zero() -> None:
    block = TapeFetch(word_bits=32)
    bench = Bench(block)
    reads = [{"write": 0, "address": 5, "data": 0}, {"write": 1, "address": 5, "data": 9}]
    bench.drive(block.host.request, reads)
    monitor = bench.monitor(block.host.answer)
    bench.run(extra=5)
    assert monitor.payloads == [0]
