"""Items and passes in time, on a memory whose timing is easy to reckon."""

from __future__ import annotations

import pytest

from lbq_hw.external.reader import ReaderTiming
from lbq_hw.external.schedule import Item, OrderError, Schedule

EASY = ReaderTiming(
    word_bits=32, page_words=1 << 20, fifo_pages=2, first=0, rest=0, refresh=1, interval=1 << 30
)


def test_a_pass_begins_two_cycles_after_its_item() -> None:
    schedule = Schedule(EASY)
    schedule.run(100)
    assert schedule.ends == [2 + 2 + 100]  # slices 0, 1, 2, then the effect
    assert schedule.waited == 4


def test_an_item_is_read_behind_the_pass_that_it_does_not_touch() -> None:
    schedule = Schedule(EASY)
    schedule.run(100)
    schedule.write(Item(slices=10))  # head in 4, 5; payload and CRC in 7..17; over in 19
    assert schedule.cycle == 19
    schedule.run(50)
    assert schedule.ends == [104, 154]
    assert schedule.waited == 4


def test_an_item_waits_for_the_pass_that_reads_what_it_writes() -> None:
    schedule = Schedule(EASY)
    schedule.run(100)
    schedule.write(Item(slices=10, after=1))  # its payload begins in 105
    assert schedule.cycle == 105 + 10 + 2
    schedule.run(50)
    assert schedule.waited == 4 + (117 + 2 + 2 - 104)


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
    assert narrow.ends == [5 + 2 + 100]
