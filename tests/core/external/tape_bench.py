"""The neighbours of a tape's reader: a memory that brings words, passes that take a while."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from amaranth import Cat, Value

from lbq_hw.chips.timing import ReaderTiming
from lbq_hw.config import CoreConfig, Profile
from lbq_hw.cycles.words import WordStream
from lbq_hw.isa import regions, tape
from lbq_hw.isa.regions import Region
from lbq_hw.isa.tape import TapeItem

CORE = CoreConfig(
    lanes=8, word=8, summary=8, units=2, planes=2, timesteps=2, plane_words=64, weight_rows=24,
    channels=16, logits=8, layers=4, paths=4, segments=8, runs=12, external=16,
    profile=Profile.SPREAD, partial_words=16, partial_bits=12,
)  # fmt: skip
"""A small core; not all of its memories have a power of two of entries."""
TIMINGS = (
    ReaderTiming(page_words=16, first=3, rest=1, refresh=4, interval=60),
    ReaderTiming(page_words=64, first=9, rest=0, refresh=7, interval=90),
    ReaderTiming(word_bits=32, page_words=8, first=1, rest=2, refresh=3, interval=40),
    ReaderTiming(word_bits=32, page_words=256, first=8, rest=2, refresh=10, interval=900),
)


def words_of(data: bytes, word_bits: int) -> list[int]:
    """Memory words of a tape."""
    size = word_bits // 8
    return [int.from_bytes(data[i : i + size], "little") for i in range(0, len(data), size)]


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


def random_items(source: random.Random, config: CoreConfig, passes: int) -> list[TapeItem]:
    """Items of a legal tape with this many passes."""
    slices, entries = regions.slices(config), regions.entries(config)
    items = []
    for done in range(passes):
        for _ in range(source.randint(0, 4)):
            region = source.choice(tape.WRITTEN)
            entry = source.randrange(entries[region])
            part = source.randrange(slices[region]) if region in regions.TABLES else 0
            room = (entries[region] - entry) * slices[region] - part
            count = min(source.choice([0, 1, 3, 20, 100]), room)
            if region not in regions.TABLES:
                count -= count % slices[region]
            address = regions.address(config, region, entry, part)
            payload = tuple(source.getrandbits(32) for _ in range(count))
            items.append(TapeItem(address=address, payload=payload, after=source.randint(0, done)))
        items.append(TapeItem(address=tape.PASS))
    return items


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
