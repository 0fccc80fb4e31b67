# amaranth: UnusedElaboratable=no
"""The stages that read, each alone: what it drops, what it makes, and in which cycle."""

from __future__ import annotations

import pytest
from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.memory import ReadPort
from amaranth.lib.stream import Signature as Stream
from amaranth.lib.wiring import In, Out
from core.harness import Bench, ones
from core.scan.stage_work import (
    ALONE,
    RATES,
    SIZES,
    counted,
    flagged,
    full,
    layouts,
    paired,
    spans,
    stream,
    work,
)

from lbq_hw.config import address_bits
from lbq_hw.core.memory.spread import SpreadMemory
from lbq_hw.core.payload import ScanKind
from lbq_hw.core.scan.fetch import FlagFetch, WordFetch
from lbq_hw.core.scan.spread_fetch import SpreadWordFetch
from lbq_hw.core.stream.queue import Queue
from lbq_hw.sim.models.scanner import END
from lbq_hw.sim.models.traffic import stalls

QUEUED = 2  # cycles that a word is in an empty queue
FAR = SpreadMemory.LATENCY


def without_rest(requests: list[dict]) -> list[dict]:
    return [END if request["kind"] is ScanKind.END else request for request in requests]


def flag_fetch(sizes: dict, *, late: bool = False) -> FlagFetch:
    spans = address_bits(sizes["words"] // sizes["summary"])
    port = ReadPort.Signature(addr_width=spans, shape=sizes["summary"])
    return FlagFetch(request=layouts(sizes)[0], port=port, registers=int(late))


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
    requests, _, flags = work(sizes, 4)
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


def word_fetch(sizes: dict) -> WordFetch:
    request, entry, _ = layouts(sizes)
    port = ReadPort.Signature(addr_width=address_bits(sizes["words"]), shape=sizes["word"])
    return WordFetch(request=request, entry=entry, port=port)


class Queued(wiring.Component):
    """Words of a memory that is far, and a queue that has room for some of them."""

    def __init__(self, sizes: dict, room: int, *, pairs: bool = False) -> None:
        request, entry, _ = layouts(sizes, counted=True, pairs=pairs)
        port = ReadPort.Signature(addr_width=address_bits(sizes["words"]), shape=sizes["word"])
        self.fetch = SpreadWordFetch(
            request=request, entry=entry, port=port, latency=FAR, room=room
        )
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
    late = 1 if room is None else FAR
    _, taken, reads = stream(block, block.word, words, requests, rates, late=late)
    expected = full(parts) if room is None else counted(full(parts))
    assert without_rows_of_ends(taken.payloads) == without_rows_of_ends(expected)
    assert len(reads.reads) == sum(len(part) for part in parts if part != [ALONE])


@pytest.mark.parametrize("sizes", [sizes for sizes in SIZES if sizes["word"] > 8], ids=str)
@pytest.mark.parametrize("rates", RATES, ids=str)
def test_even_and_odd_bits_of_words_are_counted_apart(
    sizes: dict, rates: tuple[float, float]
) -> None:
    requests, words, parts = spans(sizes, 6)
    block = Queued(sizes, 17, pairs=True)
    _, taken, _ = stream(block, block.word, words, requests, rates, late=FAR)
    expected = paired(full(parts))
    assert without_rows_of_ends(taken.payloads) == without_rows_of_ends(expected)


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("far", [False, True], ids=["near", "far"])
def test_one_word_a_cycle_each_offered_two_cycles_after_it_is_chosen_or_later_if_far(
    sizes: dict, far: bool
) -> None:
    requests, words, parts = spans(sizes, 4)
    block = Queued(sizes, 17) if far else word_fetch(sizes)
    late = FAR if far else 1
    driver, taken, reads = stream(block, block.word, words, requests, (0.0, 0.0), late=late)
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
    block = SpreadWordFetch(request=request, entry=entry, port=port, latency=FAR, room=room)
    bench = Bench(block)
    bench.store(block.word, words, late=FAR)
    bench.drive(block.i, requests[:1] * 2 + requests)
    offered = bench.probe(valid=block.o.valid)["valid"]
    with pytest.raises(AssertionError, match="not done after 200 cycles"):
        bench.run(limit=200)
    assert sum(offered) == room
    assert len(full(parts)) > room
