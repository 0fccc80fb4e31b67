# amaranth: UnusedElaboratable=no
"""EventMaker against events made bit by bit, and the cycle of each."""

from __future__ import annotations

import pytest
from core.scan.stage_work import RATES, SIZES, counted, full, halves, layouts, paired, spans, stream

from lbq_hw.core.scan.counted_events import CountedEventMaker, PairEventMaker
from lbq_hw.core.scan.event_maker import EventMaker
from lbq_hw.sim.models.scanner import golden, opened

PAIRED = [sizes | {"pairs": True} for sizes in SIZES if sizes["word"] > 8]
GIVEN = [(sizes, counts) for counts in (False, True) for sizes in SIZES]
GIVEN += [(sizes, True) for sizes in PAIRED]


def maker_work(sizes: dict, seed: int) -> tuple[list[dict], list[dict], list[int]]:
    """Words, their events, and how many events each word makes."""
    requests, words, parts = spans(sizes, seed)
    given = full(parts)
    expected = golden(requests, words, sizes)
    counts, level = [], None
    for entry in given:
        exponent = entry["exponent"] if entry["bits"] else 0
        nulls = 0 if level is None else max(0, level - exponent - 1)
        made = max(halves(entry["bits"])) if sizes.get("pairs") else entry["bits"].bit_count()
        made = 1 if not entry["bits"] or entry.get("identity") else made
        counts.append(nulls + made + (exponent if entry["end"] else 0))
        level = None if entry["end"] else exponent
    assert sum(counts) == len(expected)
    return given, expected, counts


def event_maker(sizes: dict, *, counts: bool) -> EventMaker:
    pairs = sizes.get("pairs", False)
    _, entry, event = layouts(sizes, counted=counts, pairs=pairs)
    kind = PairEventMaker if pairs else CountedEventMaker if counts else EventMaker
    return kind(entry=entry, event=event, granule=1)


def as_given(entries: list[dict], sizes: dict, *, counts: bool) -> list[dict]:
    """Words as the maker takes them."""
    if sizes.get("pairs"):
        return paired(entries)
    return counted(entries) if counts else entries


@pytest.mark.parametrize(("sizes", "counts"), GIVEN, ids=str)
@pytest.mark.parametrize("rates", RATES, ids=str)
def test_words_become_events_with_the_doublings_between_exponents(
    sizes: dict, rates: tuple[float, float], counts: bool
) -> None:
    given, expected, _ = maker_work(sizes, 5)
    given = as_given(given, sizes, counts=counts)
    _, taken, _ = stream(event_maker(sizes, counts=counts), None, [], given, rates)
    assert [opened(event) for event in taken.payloads] == expected


@pytest.mark.parametrize(("sizes", "counts"), GIVEN, ids=str)
def test_one_event_a_cycle_the_first_two_cycles_after_its_word(sizes: dict, counts: bool) -> None:
    given, expected, made = maker_work(sizes, 6)
    given = as_given(given, sizes, counts=counts)
    block = event_maker(sizes, counts=counts)
    driver, taken, _ = stream(block, None, [], given, (0.0, 0.0))
    first = driver.cycles[0]
    begins = [first + sum(made[:i]) for i in range(len(made))]
    assert driver.cycles == begins
    assert taken.cycles == list(range(first + 2, first + 2 + len(expected)))


@pytest.mark.parametrize("counts", [False, True], ids=["near", "counted"])
def test_an_identity_takes_its_lanes_from_its_lowest_bit_on(counts: bool) -> None:
    sizes = SIZES[1]
    word = {"bits": 0b1011 << 8, "lo": 8, "row": 7, "exponent": 0, "identity": 1}
    word |= {"count": 3} if counts else {}
    _, entry, event = layouts(sizes, counted=counts)
    kind = CountedEventMaker if counts else EventMaker
    block = kind(entry=entry, event=event, granule=8)
    _, taken, _ = stream(block, None, [], [word, word | {"end": 1}], (0.0, 0.0))
    event = {"row": 7, "mask": 0b1011, "clear": 1, "double": 0, "end": 0}
    assert taken.payloads == [event, event | {"clear": 0, "end": 1}]
