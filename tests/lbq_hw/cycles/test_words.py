"""The word stream against its automaton, stepped cycle by cycle."""

from __future__ import annotations

import random

import pytest

from lbq_hw import chips
from lbq_hw.chips.timing import (
    ReaderTiming,
    default_timing,
    reader_timing,
)
from lbq_hw.cycles.words import WordStream

ULX3S = default_timing(16)


def stepped(timing: ReaderTiming, wanted: list[tuple[int, int]]) -> list[int]:
    """Cycles in which each group of words (earliest cycle, count) has been taken."""
    queue = [start for start, count in wanted for start in [start] * count]
    taken, stored, reserved, arrivals = [], 0, 0, set[int]()
    pages, pending, busy, cycle = 0, 0, 0, 0
    needed = -(-len(queue) // timing.page_words)
    while len(taken) < len(queue):
        if cycle and (cycle + timing.elapsed) % timing.interval == 0:
            pending += 1
        if cycle >= busy:
            if pending:
                pending -= 1
                busy = cycle + timing.refresh
            elif pages < needed and reserved < timing.fifo_pages * timing.page_words:
                pages += 1
                reserved += timing.page_words
                first = cycle + timing.first
                arrivals |= set(range(first, first + timing.page_words))
                busy = first + timing.page_words + timing.rest
        stored += cycle in arrivals
        earliest = max(queue[len(taken)], taken[-1] + 1 if taken else 0)
        if stored and cycle >= earliest:
            stored -= 1
            taken.append(cycle)
            if len(taken) % timing.page_words == 0:
                reserved -= timing.page_words  # the room of a page counts as a whole
        cycle += 1
    ends, place = [], 0
    for _, count in wanted:
        place += count
        ends.append(taken[place - 1])
    return ends


@pytest.mark.parametrize("seed", range(40))
def test_words_are_taken_when_the_stepped_automaton_takes_them(seed: int) -> None:
    draw = random.Random(seed)
    timing = ReaderTiming(
        page_words=draw.choice([4, 16, 32]),
        fifo_pages=draw.choice([1, 2, 3]),
        first=(first := draw.randint(1, 9)),
        rest=draw.randint(-first, 3),
        refresh=draw.randint(1, 10),
        interval=draw.randint(40, 90),
        elapsed=draw.randint(0, 39),
    )
    start, wanted = 0, []
    for _ in range(30):
        start += draw.choice([0, 0, 5, 200])
        wanted.append((start, draw.randint(1, 40)))
    stream, cycle, found = WordStream(timing), 0, []
    for earliest, count in wanted:
        found.append(stream.take(max(cycle, earliest), count))
        cycle = found[-1] + 1
    assert found == stepped(timing, wanted)


def test_a_copy_of_a_stream_goes_its_own_way() -> None:
    stream = WordStream(ULX3S)
    stream.take(0, 2000)
    copy = stream.copy()
    assert copy.take(5000, 600) != stream.take(9000, 600)


def test_words_of_16_bits_come_at_nearly_one_per_cycle() -> None:
    words = 512 * 1000
    assert words / WordStream(ULX3S).take(0, words) == pytest.approx(ULX3S.rate, rel=1e-3)
    assert 0.98 < ULX3S.rate < 0.985


def test_the_timing_of_a_chip_follows_from_its_cycles() -> None:
    assert default_timing(16) == reader_timing(chips.ULX3S, 80_000_000)
    assert default_timing(32) == reader_timing(chips.TANG_NANO_20K, 60_000_000)
    assert reader_timing(chips.ULX3S, 80_000_000) == ReaderTiming(
        word_bits=16, page_words=512, first=19, rest=-15, refresh=6, interval=624, elapsed=7
    )
    slow = reader_timing(chips.ULX3S, 133_000_000)
    assert (slow.first, slow.rest, slow.refresh) == (3 + 3 + 14, -14, 10)


def test_numbers_that_no_memory_has_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^word_bits must be 16 or 32, not 8$"):
        ReaderTiming(word_bits=8)
    with pytest.raises(ValueError, match=r"^interval must be at least 1, not 0$"):
        ReaderTiming(interval=0)
    with pytest.raises(ValueError, match=r"^rest must be at least -8, not -9$"):
        ReaderTiming(rest=-9)
    with pytest.raises(ValueError, match=r"^elapsed must be less than interval, not 600$"):
        ReaderTiming(elapsed=600)
