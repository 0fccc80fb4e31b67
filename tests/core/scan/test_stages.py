# amaranth: UnusedElaboratable=no
"""The stages of the scanner, each alone: what it drops, what it makes, and in which cycle."""

from __future__ import annotations

import random
from typing import Any

import pytest
from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.memory import ReadPort
from amaranth.lib.stream import Signature as Stream
from amaranth.lib.wiring import In, Out
from core.harness import Bench, ones

from lbq_hw.config import address_bits
from lbq_hw.core.memory.queue import Queue
from lbq_hw.core.memory.spread import SpreadMemory
from lbq_hw.core.payload import Event, ScanKind, ScanRequest
from lbq_hw.core.scan.stages import EventMaker, FlagFetch, Word, WordFetch
from sim.models.scanner import END, golden, random_step, random_words
from sim.models.traffic import never, stalls

SIZES = [
    {"lanes": 4, "word": 8, "summary": 4, "words": 32, "rows": 64},
    {"lanes": 8, "word": 16, "summary": 8, "words": 64, "rows": 100},
    {"lanes": 16, "word": 16, "summary": 1, "words": 24, "rows": 1 << 12},
    {"lanes": 8, "word": 16, "summary": 4, "words": 64, "rows": 512, "exponent_bits": 2}
    | {"identities": False, "stacks": False},
]
QUEUED = 2  # cycles that a word is in an empty queue
FAR = SpreadMemory.LATENCY
ALONE = {"bits": 0, "exponent": 1, "end": 1, "many": 0}
"""A `Word` that is the end of a step and no more."""
RATES = [(0.0, 0.0), (0.5, 0.0), (0.0, 0.5), (0.4, 0.4)]


def layouts(sizes: dict, *, counted: bool = False) -> tuple[ScanRequest, Word, Event]:
    word, row_bits = sizes["word"], address_bits(sizes["rows"])
    span_bits = address_bits(sizes["words"] // sizes["summary"])
    exponent_bits, identities = sizes.get("exponent_bits", 5), sizes.get("identities", True)
    request = ScanRequest(
        word=word,
        summary=sizes["summary"],
        span_bits=span_bits,
        row_bits=row_bits,
        exponent_bits=exponent_bits,
        stacks=sizes.get("stacks", True),
    )
    entry = Word(
        word=word,
        row_bits=row_bits,
        exponent_bits=exponent_bits,
        identities=identities,
        counted=counted,
    )
    return request, entry, Event(lanes=sizes["lanes"], row_bits=row_bits, masks=identities)


def work(sizes: dict, seed: int) -> tuple[list[dict], list[int], list[int]]:
    """Requests, words, and a summary word per span."""
    source = random.Random(seed)
    words, summary = random_words(source, sizes), sizes["summary"]
    requests = [request for _ in range(12) for request in random_step(source, sizes)]
    flags = [
        sum((word != 0) << i for i, word in enumerate(words[span : span + summary]))
        for span in range(0, len(words), summary)
    ]
    return requests, words, flags


def stream(
    block: Any, port: Any, store: list[int], payloads: list[dict], rates: tuple[float, float]
) -> tuple[Any, Any, Any]:
    """Drive a stage: its driver, its monitor and, if it has a memory, the memory."""
    bench = Bench(block)
    late = FAR if isinstance(block, Queued) else 1
    reads = None if port is None else bench.store(port, store, late=late)
    i_stall, o_stall = (stalls(seed, rate) if rate else never for seed, rate in enumerate(rates))
    driver = bench.drive(block.i, payloads, stall=i_stall)
    taken = bench.monitor(block.o, stall=o_stall)
    bench.run(extra=200)
    return driver, taken, reads


def flagged(requests: list[dict], flags: list[int]) -> list[dict]:
    """Requests with the wanted words that are not zero; one without is END or None."""
    found = []
    for request in requests:
        want = 0 if request is END else request["want"] & flags[request["span"]]
        kept = END if request["end"] else None
        found.append(dict(request, want=want) if want else kept)
    return found


def without_rest(requests: list[dict]) -> list[dict]:
    return [END if request["kind"] is ScanKind.END else request for request in requests]


def flag_fetch(sizes: dict, *, late: bool = False) -> FlagFetch:
    spans = address_bits(sizes["words"] // sizes["summary"])
    port = ReadPort.Signature(addr_width=spans, shape=sizes["summary"])
    return FlagFetch(request=layouts(sizes)[0], port=port, late=late)


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("rates", RATES, ids=str)
@pytest.mark.parametrize("late", [False, True], ids=["soon", "late"])
def test_requests_keep_the_words_with_a_flag_and_those_without_are_dropped(
    sizes: dict, rates: tuple[float, float], late: bool
) -> None:
    requests, _, flags = work(sizes, 1)
    expected = flagged(requests, flags)
    block = flag_fetch(sizes, late=late)
    driver, taken, reads = stream(block, block.summary, flags, requests, rates)
    assert without_rest(taken.payloads) == [item for item in expected if item is not None]
    # A summary word is read with its request, and none for an end.
    asked = [(cycle, request["span"]) for cycle, request in
             zip(driver.cycles, requests, strict=True) if request is not END]  # fmt: skip
    assert reads.reads == asked


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("late", [False, True], ids=["soon", "late"])
def test_one_request_per_cycle_each_offered_in_the_next_or_told_to_be_empty(
    sizes: dict, late: bool
) -> None:
    requests, _, flags = work(sizes, 2)
    kept = [item is not None for item in flagged(requests, flags)]
    block = flag_fetch(sizes, late=late)
    bench = Bench(block)
    bench.store(block.summary, flags)
    driver = bench.drive(block.i, requests)
    taken = bench.monitor(block.o)
    seen = bench.probe(empty=block.empty)
    bench.run(extra=3)
    first = driver.cycles[0]
    assert driver.cycles == list(range(first, first + len(requests)))
    there = first + 1 + late
    assert taken.cycles == [there + i for i, keep in enumerate(kept) if keep]
    found = zip(requests, flagged(requests, flags), strict=True)
    empty = [request is not END and item in (END, None) for request, item in found]
    assert ones(seen["empty"]) == [there + i for i, one in enumerate(empty) if one]
    assert not all(kept)
    assert sum(empty) > kept.count(False)


def test_a_request_is_dropped_only_while_there_is_room_behind() -> None:
    sizes = SIZES[0]
    requests, _, flags = work(sizes, 2)
    found = zip(requests, flagged(requests, flags), strict=True)
    empty = [request is not END and item in (END, None) for request, item in found]
    block = flag_fetch(sizes)
    bench = Bench(block)
    bench.store(block.summary, flags)
    driver = bench.drive(block.i, requests, stall=stalls(1, 0.4))
    bench.monitor(block.o, stall=stalls(2, 0.6))
    seen = bench.probe(empty=block.empty, ready=block.o.ready)
    bench.run(extra=60)
    dropped = [cycle for cycle, one in zip(driver.cycles, empty, strict=True) if one]
    free = ones(seen["ready"])
    told = [next(c for c in free if c > cycle) for cycle in dropped]
    assert ones(seen["empty"]) == told
    assert told != [cycle + 1 for cycle in dropped]


def entries(request: dict, words: list[int], sizes: dict) -> list[dict]:
    """A `Word` for each word that a request wants, with no bits where none is in range.

    The last one of a step has its end.
    """
    if request is END:
        return [dict(ALONE)]
    identity = request["kind"] is ScanKind.IDENTITY
    found = []
    for index in range(sizes["summary"]):
        if not request["want"] >> index & 1:
            continue
        low, high = 0, sizes["word"] - 1
        every = identity or request.get("stacked")
        if every or (request["lo_en"] and request["lo_at"] == index):
            low = request["lo"]
        if every or (request["hi_en"] and request["hi_at"] == index):
            high = request["hi"]
        word = words[request["span"] * sizes["summary"] + index]
        kept = sum(1 << bit for bit in range(low, high + 1) if word >> bit & 1)
        inc = request.get("inc", sizes["word"].bit_length() - 1)
        row = request["row"] + (0 if identity else index << inc)
        lanes = {"lo": request["lo"], "identity": int(identity)}
        end = request["end"] and not request["want"] >> index + 1
        many = (not identity and kept.bit_count() > 1) or (kept and end and request["exponent"])
        found.append(
            {
                "bits": kept,
                "row": row % (1 << address_bits(sizes["rows"])),
                "exponent": request["exponent"] if kept else 1,
                "end": int(end),
                "many": int(bool(many)),
            }
            | (lanes if sizes.get("identities", True) else {})
        )
    return found


def word_fetch(sizes: dict) -> WordFetch:
    request, entry, _ = layouts(sizes)
    port = ReadPort.Signature(addr_width=address_bits(sizes["words"]), shape=sizes["word"])
    return WordFetch(request=request, entry=entry, port=port)


class Queued(wiring.Component):
    """Words of a memory that is far, and a queue that has room for some of them."""

    def __init__(self, sizes: dict, room: int) -> None:
        request, entry, _ = layouts(sizes, counted=True)
        port = ReadPort.Signature(addr_width=address_bits(sizes["words"]), shape=sizes["word"])
        self.fetch = WordFetch(request=request, entry=entry, port=port, far=FAR, room=room)
        self.queue = Queue(entry, depth=room)
        super().__init__(
            {
                "i": In(Stream(request)),
                "o": Out(Stream(entry)),
                "word": In(port),
            }
        )

    def elaborate(self, _platform):
        m = Module()
        m.submodules.fetch, m.submodules.queue = fetch, queue = self.fetch, self.queue
        wiring.connect(m, wiring.flipped(self.i), fetch.i)
        wiring.connect(m, queue.o, wiring.flipped(self.o))
        wiring.connect(m, wiring.flipped(self.word), fetch.word)
        m.d.comb += [
            queue.i.valid.eq(fetch.o.valid),
            queue.i.payload.eq(fetch.o.payload),
            fetch.left.eq(self.o.valid & self.o.ready),
        ]
        return m


def spans(sizes: dict, seed: int) -> tuple[list[dict], list[int], list[list[dict]]]:
    """Requests as they come to the words, the words, and the entries of each request."""
    requests, words, flags = work(sizes, seed)
    left = [request for request in flagged(requests, flags) if request is not None]
    return left, words, [entries(request, words, sizes) for request in left]


def full(parts: list[list[dict]]) -> list[dict]:
    return [entry for part in parts for entry in part if entry["end"] or entry["bits"]]


def counted(entries: list[dict]) -> list[dict]:
    """The same, each with the number of its bits."""
    return [entry | {"count": entry["bits"].bit_count()} for entry in entries]


def without_rows_of_ends(entries: list[dict]) -> list[dict]:
    """An end alone has no row, and no place."""
    return [
        {name: entry[name] for name in ALONE} if not entry["bits"] else entry for entry in entries
    ]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("rates", RATES, ids=str)
@pytest.mark.parametrize("room", [None, 3, 17])
def test_words_are_cut_to_their_range_and_those_with_nothing_in_it_dropped(
    sizes: dict, rates: tuple[float, float], room: int | None
) -> None:
    requests, words, parts = spans(sizes, 3)
    block = word_fetch(sizes) if room is None else Queued(sizes, room)
    _, taken, reads = stream(block, block.word, words, requests, rates)
    expected = full(parts) if room is None else counted(full(parts))
    assert without_rows_of_ends(taken.payloads) == without_rows_of_ends(expected)
    assert len(reads.reads) == sum(len(part) for part in parts if part != [ALONE])


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("far", [False, True], ids=["near", "far"])
def test_one_word_a_cycle_each_offered_two_cycles_after_it_is_chosen_or_later_if_far(
    sizes: dict, far: bool
) -> None:
    requests, words, parts = spans(sizes, 4)
    block = Queued(sizes, 17) if far else word_fetch(sizes)
    driver, taken, reads = stream(block, block.word, words, requests, (0.0, 0.0))
    cycle, last, offered, asked = driver.cycles[0] - (len(parts[0]) - 1), [], [], []
    later = FAR + 4 + QUEUED if far else 2
    for part in parts:
        for entry in part:
            asked += [] if entry == ALONE else [cycle + far]
            offered += [cycle + later] if entry["end"] or entry["bits"] else []
            cycle += 1
        last.append(cycle - 1)
    assert [at for at, _ in reads.reads] == asked
    assert driver.cycles == last
    assert taken.cycles == offered


@pytest.mark.parametrize("room", [1, 4])
def test_no_more_words_are_asked_for_than_there_is_room_for(room: int) -> None:
    requests, words, parts = spans(SIZES[0], 5)
    request, entry, _ = layouts(SIZES[0], counted=True)
    port = ReadPort.Signature(addr_width=address_bits(SIZES[0]["words"]), shape=8)
    block = WordFetch(request=request, entry=entry, port=port, far=FAR, room=room)
    bench = Bench(block)
    bench.store(block.word, words, late=FAR)
    bench.drive(block.i, requests[:1] * 2 + requests)
    offered = bench.probe(valid=block.o.valid)["valid"]
    with pytest.raises(AssertionError, match="not done after 200 cycles"):
        bench.run(limit=200)
    assert sum(offered) == room
    assert len(full(parts)) > room


def maker_work(sizes: dict, seed: int) -> tuple[list[dict], list[dict], list[int]]:
    """Words, their events, and how many events each word makes."""
    requests, words, parts = spans(sizes, seed)
    given = full(parts)
    expected = golden(requests, words, sizes)
    counts, level = [], None
    for entry in given:
        exponent = entry["exponent"] if entry["bits"] else 0
        nulls = 0 if level is None else max(0, level - exponent - 1)
        made = 1 if not entry["bits"] or entry.get("identity") else entry["bits"].bit_count()
        counts.append(nulls + made + (exponent if entry["end"] else 0))
        level = None if entry["end"] else exponent
    assert sum(counts) == len(expected)
    return given, expected, counts


def event_maker(sizes: dict, *, counts: bool) -> EventMaker:
    _, entry, event = layouts(sizes, counted=counts)
    return EventMaker(entry=entry, event=event, granule=1)


def without_rows(events: list[dict]) -> list[dict]:
    """An event without a lane has no row."""
    return [dict(event, row=event["row"] if event["mask"] else None) for event in events]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("rates", RATES, ids=str)
@pytest.mark.parametrize("counts", [False, True], ids=["near", "counted"])
def test_words_become_events_with_the_doublings_between_exponents(
    sizes: dict, rates: tuple[float, float], counts: bool
) -> None:
    given, expected, _ = maker_work(sizes, 5)
    given = counted(given) if counts else given
    _, taken, _ = stream(event_maker(sizes, counts=counts), None, [], given, rates)
    assert without_rows(taken.payloads) == expected


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("counts", [False, True], ids=["near", "counted"])
def test_one_event_a_cycle_the_first_two_cycles_after_its_word(sizes: dict, counts: bool) -> None:
    given, expected, made = maker_work(sizes, 6)
    given = counted(given) if counts else given
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
    block = EventMaker(entry=entry, event=event, granule=8)
    _, taken, _ = stream(block, None, [], [word, word | {"end": 1}], (0.0, 0.0))
    event = {"row": 7, "mask": 0b1011, "clear": 1, "double": 0, "end": 0}
    assert taken.payloads == [event, event | {"clear": 0, "end": 1}]
