"""Items and passes in time, on a memory whose timing is easy to reckon."""

from __future__ import annotations

import pytest

from lbq_hw.chips.timing import ReaderTiming
from lbq_hw.cycles.schedule import Item, OrderError, Schedule

EASY = ReaderTiming(
    word_bits=32, page_words=1 << 20, fifo_pages=2, first=0, rest=0, refresh=1, interval=1 << 30
)


def test_a_pass_begins_two_cycles_after_its_item() -> None:
    schedule = Schedule(EASY)
    schedule.run(100)
    assert schedule.ends == [4 + 2 + 100]  # slices in 1, 2, 4, then the effect
    assert schedule.waited == 6


def test_an_item_is_read_behind_the_pass_that_it_does_not_touch() -> None:
    schedule = Schedule(EASY)
    schedule.run(100)
    schedule.write(Item(slices=10))  # head in 6, 7; payload and CRC in 9..19; over in 21
    assert schedule.cycle == 21
    schedule.run(50)
    assert schedule.ends == [106, 156]
    assert schedule.waited == 6


def test_an_item_waits_for_the_pass_that_reads_what_it_writes() -> None:
    schedule = Schedule(EASY)
    schedule.run(100)
    schedule.write(Item(slices=10, after=1))  # its payload begins in 107
    assert schedule.cycle == 107 + 10 + 2
    schedule.run(50)
    assert schedule.waited == 6 + (119 + 3 + 2 - 106)


def test_an_inference_is_done_with_its_last_pass_or_with_end() -> None:
    for cycles, done in ((100, 106 + 1), (3, 6 + 3 + 2 + 1)):
        schedule = Schedule(EASY)
        schedule.run(cycles)
        assert schedule.finish() == done


def test_an_item_that_waits_for_a_later_pass_is_refused() -> None:
    schedule = Schedule(EASY)
    schedule.run(100)
    with pytest.raises(
        OrderError,
        match=r"^an item waits for pass 1, but only 1 passes come before it on the tape$",
    ):
        schedule.write(Item(slices=1, after=2))


def test_a_word_of_16_bits_is_half_a_slice() -> None:
    narrow = Schedule(
        ReaderTiming(page_words=1 << 20, first=0, rest=0, refresh=1, interval=1 << 30)
    )
    narrow.run(100)
    assert narrow.ends == [7 + 2 + 100]  # words in 1..4, 6, 7
