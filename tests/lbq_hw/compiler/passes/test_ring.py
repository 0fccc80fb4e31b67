"""Tables that are filled round and round: reuse, waits, and what is too large."""

from __future__ import annotations

import random

import pytest

from lbq_hw.compiler.passes.ring import FullError, Ring


def test_entries_wait_for_the_last_pass_that_reads_what_they_replace() -> None:
    ring = Ring("runs", 4)
    assert ring.put("a", 3, 0) == (0, 0)
    assert ring.put("b", 2, 1) == (0, 1)  # does not fit behind: begins anew, over what pass 0 reads
    assert ring.put("c", 2, 2) == (2, 1)
    assert ring.put("d", 1, 3) == (0, 2)


def test_what_is_still_there_is_not_written_again() -> None:
    ring = Ring("runs", 4)
    ring.put("a", 2, 0)
    assert ring.put("a", 2, 5) == (0, None)
    ring.put("b", 2, 6)
    assert ring.put("c", 1, 7) == (0, 6)
    assert ring.put("a", 2, 8) == (1, 7)  # half of it was lost


def test_more_than_the_table_has_is_refused() -> None:
    with pytest.raises(FullError, match=r"^runs must be at least 5$"):
        Ring("runs", 4).put("a", 5, 0)


@pytest.mark.parametrize("seed", range(20))
def test_contents_are_where_the_ring_says(seed: int) -> None:
    draw, ring = random.Random(seed), Ring("runs", 12)
    table, reader = [""] * 12, [-1] * 12
    for number in range(200):
        key = draw.choice("abcdefgh")
        count = 1 + ord(key) % 5
        first, after = ring.put(key, count, number)
        if after is not None:
            assert after == max(reader[first : first + count]) + 1
            table[first : first + count] = [key] * count
        assert table[first : first + count] == [key] * count
        reader[first : first + count] = [number] * count


def test_a_copy_goes_its_own_way() -> None:
    ring = Ring("runs", 4)
    copy = ring.copy()
    ring.put("a", 2, 0)
    assert copy.put("b", 2, 0) == (0, 0)
    assert ring.put("a", 2, 1) == (0, None)
