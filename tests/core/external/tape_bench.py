"""The neighbours of a tape's reader: a memory that brings words, passes that take a while."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from amaranth import Cat, Value

from lbq_hw.chips.timing import ReaderTiming
from lbq_hw.cycles.words import WordStream
from lbq_hw.isa import regions, tape
from lbq_hw.isa.regions import Region
from lbq_hw.isa.tape import TapeItem
from lbq_hw.sim.models.tapes import CORE, random_items, words_of

__all__ = [
    "CORE",
    "TIMINGS",
    "Memory",
    "Walks",
    "Writes",
    "expected_words",
    "random_items",
    "words_of",
    "write",
]
TIMINGS = (
    ReaderTiming(page_words=16, first=3, rest=1, refresh=4, interval=60),
    ReaderTiming(page_words=64, first=9, rest=0, refresh=7, interval=90),
    ReaderTiming(word_bits=32, page_words=8, first=1, rest=2, refresh=3, interval=40),
    ReaderTiming(word_bits=32, page_words=256, first=8, rest=2, refresh=10, interval=900),
)


class Memory:
    """The controller of docs/external-memory.md, stepped cycle by cycle; behind the data it reads
    on from its beginning."""

    def __init__(self, stream: Any, start: Any, words: Sequence[int], timing: ReaderTiming) -> None:
        self.stream, self.words, self.timing = stream, words, timing
        self.samples = [stream.ready, start]
        self.done = True
        self.taken: list[int] = []
        self._restart()

    def _restart(self) -> None:
        self.age = self.busy = self.pages = self.stored = self.reserved = self.pending = 0
        self.arrivals: set[int] = set()
        self.taken = []

    def set(self, ctx: Any) -> None:
        ctx.set(self.stream.valid, self.stored > 0)
        ctx.set(self.stream.payload, self.words[len(self.taken) % len(self.words)])

    def see(self, cycle: int, ready: int, start: int) -> None:
        del cycle
        if start:
            self._restart()
        self._decide()
        if ready and self.stored:
            self.taken.append(self.age)
            self.stored -= 1
            if len(self.taken) % self.timing.page_words == 0:
                self.reserved -= 1
        self.age += 1
        self.stored += self.age in self.arrivals

    def _decide(self) -> None:
        timing = self.timing
        if self.age and self.age % timing.interval == 0:
            self.pending += 1
        if self.age < self.busy:
            return
        if self.pending:
            self.pending -= 1
            self.busy = self.age + timing.refresh
        elif self.reserved < timing.fifo_pages:
            self.reserved += 1
            first = self.age + timing.first
            self.arrivals |= set(range(first, first + timing.page_words))
            self.busy = first + timing.page_words + timing.rest


class Walks:
    """A walker whose passes take given numbers of cycles, the last of them being the last pass."""

    def __init__(self, block: Any, durations: Sequence[int]) -> None:
        self.block, self.durations = block, durations
        self.samples = [block.begin, block.finished, block.error, block.error_at, block.stop]
        self.begins: list[int] = []
        self.now = -1
        self.rests = 0
        self.error: tuple[int, int] | None = None
        self.finished: int | None = None

    @property
    def done(self) -> bool:
        return self.finished is not None

    def set(self, ctx: Any) -> None:
        self.now += 1
        resting = bool(self.begins) and self.now >= self.rests
        last = len(self.begins) == len(self.durations)
        ctx.set(self.block.paused, resting and not last)
        ctx.set(self.block.over, resting and last)
        ctx.set(self.block.idle, not self.begins or resting)

    def see(self, cycle: int, begin: int, finished: int, error: int, at: int, stop: int) -> None:
        if stop:
            self.rests = min(self.rests, cycle + 5)
        if begin:
            self.begins.append(cycle)
            self.rests = cycle + self.durations[len(self.begins) - 1]
        if finished and self.finished is None:
            self.finished, self.error = cycle, (error, at)


class Writes:
    """What a block writes: records, rows and parameters, each with its cycle."""

    def __init__(self, block: Any) -> None:
        self.done = True
        records, weights, params = block.records, block.weights, block.params
        self.samples = [
            records.valid, Cat(Value.cast(records.payload)), weights.en, weights.addr,
            Value.cast(weights.data), params.en, params.addr, Value.cast(params.data),
        ]  # fmt: skip
        self.found: list[tuple[int, str, int, int]] = []
        self.shape = records.payload.shape()

    def set(self, ctx: Any) -> None:
        """Drive nothing."""

    def see(self, cycle: int, *seen: int) -> None:
        valid, record, row, row_at, row_value, param, param_at, param_value = seen
        if valid:
            given = self.shape.from_bits(record)
            self.found.append((cycle, given.table.name, given.address, given.data))
        if row:
            self.found.append((cycle, "WEIGHTS", row_at, row_value))
        if param:
            self.found.append((cycle, f"PARAMS {param:x}", param_at, param_value))


def write(region: Region, entry: int, part: int, count: int, after: int = 0) -> TapeItem:
    """An item of `CORE`, which may be illegal."""
    part_bits = (regions.slices(CORE)[region] - 1).bit_length()
    address = region << regions.SHIFT | entry << part_bits | part
    return TapeItem(address=address, payload=tuple(range(count)), after=after)


def expected_words(
    items: Sequence[TapeItem], durations: Sequence[int], timing: ReaderTiming
) -> tuple[list[int], list[int], int]:
    """The document in cycles, word by word: when each is taken, when passes begin, when all ends.

    `items` with HEAD and END.
    """
    stream, each = WordStream(timing), timing.words_per_slice
    cycle, taken, begins, ends = 1, [], [], []

    def take(count: int) -> None:
        nonlocal cycle
        for _ in range(count * each):
            taken.append(stream.take(cycle, 1))
            cycle = taken[-1] + 1

    for item in items:
        take(2)
        cycle += 1
        if item.after:
            cycle = max(cycle, ends[item.after - 1] + 1)
        take(len(item.payload) + 1)
        cycle += 1
        if item.address == tape.PASS:
            begins.append(max(cycle, ends[-1] if ends else 0))
            ends.append(begins[-1] + durations[len(ends)])
    return taken, begins, max(cycle, ends[-1])
