# amaranth: UnusedElaboratable=no
"""Scanner against a list of events made bit by bit, and its cycles against their recurrence."""

from __future__ import annotations

import random
import re
from itertools import pairwise

import pytest
from amaranth import Module, Signal
from amaranth.back import verilog
from amaranth.hdl import Elaboratable
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import connect
from core.harness import Bench

from lbq_hw.core.memory.planes import PlaneMemory
from lbq_hw.core.memory.spread import SpreadMemory
from lbq_hw.core.payload import ScanKind
from lbq_hw.core.scan.scanner import Scanner
from lbq_hw.core.scan.spread_scanner import PairScanner, SpreadScanner
from lbq_hw.sim.models.scanner import END, conv, golden, opened, pairs_of, random_work, spots
from lbq_hw.sim.models.traffic import never, stalls
from lbq_hw.sim.verilog import ports

LATENCY = Scanner.LATENCY

SIZES = [
    {"lanes": 4, "word": 8, "summary": 4, "words": 32, "rows": 64},
    {"lanes": 8, "word": 16, "summary": 8, "words": 64, "rows": 100, "word_queue": 3},
    {"lanes": 16, "word": 16, "summary": 1, "words": 24, "rows": 1 << 12},
    {"lanes": 16, "word": 32, "summary": 16, "words": 64, "rows": 512, "span_queue": 3},
    {"lanes": 64, "word": 64, "summary": 32, "words": 64, "rows": 1 << 16},
    {"lanes": 32, "word": 128, "summary": 8, "words": 64, "rows": 1 << 10, "word_queue": 5},
    {"lanes": 16, "word": 16, "summary": 8, "words": 64, "rows": 512, "exponent_bits": 2}
    | {"identities": False},
    {"lanes": 8, "word": 32, "summary": 4, "words": 64, "rows": 512, "identities": False},
    {"lanes": 8, "word": 16, "summary": 4, "words": 64, "rows": 512},
    {"lanes": 16, "word": 16, "summary": 8, "words": 64, "rows": 512, "far": True},
    {"lanes": 8, "word": 8, "summary": 4, "words": 32, "rows": 64, "far": True, "word_queue": 3},
    {"lanes": 16, "word": 16, "summary": 8, "words": 64, "rows": 512, "far": True, "pairs": True},
    {"lanes": 32, "word": 64, "summary": 4, "words": 64, "rows": 100, "far": True, "pairs": True}
    | {"word_queue": 4},
    {"lanes": 16, "word": 16, "summary": 4, "words": 32, "rows": 64, "far": True, "pairs": True}
    | {"identities": False},
]


def recurrence(requests: list[dict], words: list[int], sizes: dict) -> list[int]:
    """Cycle of each event where requests always wait and events are always taken.

    Each stage takes the next thing when it has arrived and the place it goes to is free; a queue
    of n has a place for the thing that comes n after the one just taken from it. Of the places for
    words the last is a register, which takes its word from the others.
    """
    span_queue = sizes.get("span_queue", 2)
    word_queue = sizes.get("word_queue", 17)
    far = sizes.get("far", False)
    accepted = flags_read = flags_left = -1
    asked: list[int] = []  # cycles in which requests reached the flags, if far
    word_issued = word_read = word_left = event_made = -1
    made_room: list[int] = []  # cycles in which words that are far left, or were dropped
    word_taken = -1
    span_taken: list[int] = []
    word_offered: list[int] = []
    events: list[int] = []
    level: int | None = None
    for request in requests:
        found = [] if request is END else spots(request, words, sizes)
        if far:
            accepted = max(accepted, asked[-2] if len(asked) > 1 else -1) + 1
            asked.append(max(accepted + 1, asked[-1] + 1 if asked else -1, flags_read))
            flags_read = max(asked[-1] + 1, flags_left)
            flags_left = flags_read + 1
        else:
            accepted = max(accepted + 1, flags_left)
            flags_left = accepted + 1
        if len(span_taken) >= span_queue:
            flags_left = max(flags_left, span_taken[-span_queue] + 1)
        if not found and not request["end"]:
            continue
        found = found or [[]]
        for number, places in enumerate(found):
            end = request["end"] and number == len(found) - 1
            word_issued = max(word_issued + 1, flags_left + 1, word_read)
            if far:
                if len(made_room) >= word_queue:
                    word_issued = max(word_issued, sorted(made_room)[-word_queue] + 1)
                word_left = word_issued + SpreadMemory.LATENCY + 4
            else:
                word_read = max(word_issued + 1, word_left)
                word_left = word_read + 1
                if len(word_offered) >= word_queue - 1:
                    word_left = max(word_left, word_offered[1 - word_queue] + 1)
            if not places and not end:
                made_room.append(word_left)
                continue
            word_offered.append(max(word_left + 1, word_taken))
            word_taken = max(word_offered[-1] + 1, event_made)
            made_room.append(word_taken + 1)
            exponent = request["exponent"] if places else 0
            count = max(0, level - exponent - 1) if level is not None else 0
            made = pairs_of(places) if sizes.get("pairs") else places
            count += len(made) if places and request["kind"] is ScanKind.CONV else 1
            count += exponent if end else 0
            level = None if end else exponent
            for _ in range(count):
                event_made = max(event_made + 1, word_taken + 1)
                events.append(event_made + 1)
        span_taken.append(word_issued)
    return events


def build(sizes: dict) -> Scanner:
    """The scanner of these sizes: "far" and "pairs" are other kinds."""
    kind = PairScanner if sizes.get("pairs") else SpreadScanner if sizes.get("far") else Scanner
    return kind(**{name: sizes[name] for name in sizes if name not in ("far", "pairs")})


class Fixture(Elaboratable):
    """A scanner and memories that hold the words and their flags from the start."""

    def __init__(self, words: list[int], sizes: dict) -> None:
        self.scanner = build(sizes)
        self.words = words
        self.sizes = sizes

    def elaborate(self, _platform):
        m = Module()
        summary = self.sizes["summary"]
        flags = [
            sum((word != 0) << i for i, word in enumerate(self.words[a : a + summary]))
            for a in range(0, len(self.words), summary)
        ]
        m.submodules.planes = planes = Memory(
            shape=self.sizes["word"], depth=len(self.words), init=self.words
        )
        m.submodules.flags = summaries = Memory(shape=summary, depth=len(flags), init=flags)
        m.submodules.scanner = self.scanner
        for port, memory in ((self.scanner.word, planes), (self.scanner.summary, summaries)):
            read = memory.read_port()
            m.d.comb += [read.addr.eq(port.addr), read.en.eq(port.en), port.data.eq(read.data)]
            if memory is planes and self.sizes.get("far"):
                late = [
                    Signal.like(read.data, name=f"late_{i}") for i in range(SpreadMemory.LATENCY)
                ]
                m.d.comb += [late[0].eq(read.data), port.data.eq(late[-1])]
                m.d.sync += [later.eq(sooner) for sooner, later in pairwise(late)]
        return m


def scan(
    requests: list[dict], words: list[int], sizes: dict, *, i_stall=never, o_stall=never
) -> tuple[list[dict], list[int], dict[str, list[int]]]:
    """Events, the cycle of each counted from the first request's, and the counted strobes."""
    fixture = Fixture(words, sizes)
    scanner = fixture.scanner
    bench = Bench(fixture)
    driver = bench.drive(scanner.i_request, requests, stall=i_stall)
    monitor = bench.monitor(scanner.o_event, len(golden(requests, words, sizes)), stall=o_stall)
    strobes = bench.probe(word_read=scanner.word_read, span_empty=scanner.span_empty)
    bench.run(extra=2 * LATENCY)
    events = [opened(event) for event in monitor.payloads]
    return events, [cycle - driver.cycles[0] for cycle in monitor.cycles], strobes


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize(
    "rates",
    [
        (0, 0),
        (0.4, 0.4),
        *(pytest.param(rates, marks=pytest.mark.slow) for rates in ((0.5, 0), (0, 0.5))),
    ],
    ids=str,
)
def test_random_requests_make_the_events_of_the_model(sizes: dict, rates: tuple) -> None:
    source = random.Random(f"{sizes} {rates}")
    requests, words = random_work(source, sizes)
    events, cycles, strobes = scan(
        requests, words, sizes, i_stall=stalls(1, rates[0]), o_stall=stalls(2, rates[1])
    )
    assert events == golden(requests, words, sizes)
    asked = [spots(request, words, sizes) for request in requests if request is not END]
    assert sum(strobes["word_read"]) == sum(len(found) for found in asked)
    assert sum(strobes["span_empty"]) == sum(not found for found in asked)
    if rates == (0, 0):
        assert cycles == recurrence(requests, words, sizes)


@pytest.mark.parametrize("granule", [2, 8])
def test_an_identity_whose_places_are_multiples_of_a_granule(granule: int) -> None:
    sizes = {"lanes": 8, "word": 32, "summary": 4, "words": 16, "rows": 16, "granule": granule}
    source = random.Random(granule)
    requests, words = random_work(source, sizes)
    assert scan(requests, words, sizes)[0] == golden(requests, words, sizes)


SMALL = {"lanes": 8, "word": 8, "summary": 4, "words": 64, "rows": 256}


def last_cycle(requests: list[dict], words: list[int], *, far: bool = False) -> int:
    """Cycle of the last event, which the events themselves are checked to be right for."""
    words = words + [0] * (SMALL["words"] - len(words))
    events, cycles, _ = scan(requests, words, SMALL | {"far": far})
    assert events == golden(requests, words, SMALL)
    return cycles[-1]


@pytest.mark.parametrize("far", [False, True], ids=["near", "far"])
def test_a_dense_stream_takes_one_cycle_per_event(far: bool) -> None:
    requests = [conv(span=span, want=15) for span in range(4)] + [END]
    first = SpreadScanner.LATENCY if far else LATENCY
    assert last_cycle(requests, [0xFF] * 16, far=far) == first + 16 * 8 + 1 - 1


def test_words_with_one_bit_each_take_one_cycle_per_event() -> None:
    requests = [conv(span=span, want=15) for span in range(16)] + [END]
    assert last_cycle(requests, [1 << i % 8 for i in range(64)]) == LATENCY + 64 + 1 - 1


def test_requests_with_one_bit_each_take_one_cycle_per_event() -> None:
    requests = [conv(span=span % 16, want=1 << span % 4) for span in range(40)] + [END]
    assert last_cycle(requests, [0x10] * 64) == LATENCY + 40 + 1 - 1


@pytest.mark.parametrize("levels", [1, 3])
def test_the_end_of_a_step_goes_with_its_last_event(levels: int) -> None:
    step = [conv(span=0, want=15, exponent=level) for level in reversed(range(levels))]
    step[-1]["end"] = 1
    assert last_cycle(step * 5, [0x0F] * 4) == LATENCY + 5 * levels * 16 - 1


def test_a_last_event_above_exponent_0_is_followed_by_its_doublings() -> None:
    requests = [conv(span=0, want=1, exponent=3, end=1)] * 2
    assert last_cycle(requests, [1]) == LATENCY + 2 * (1 + 3) - 1


def test_steps_without_events_take_one_cycle_each() -> None:
    assert last_cycle([END] * 20, []) == LATENCY + 20 - 1


def test_zero_spans_take_one_cycle_each_where_nothing_hides_them() -> None:
    requests = [conv(span=1 + span % 8, want=15) for span in range(30)] + [END]
    assert last_cycle(requests, []) == LATENCY + 30


def beyond_its_bit(word: int) -> dict:
    """A request for a word, but for its lowest bit."""
    span, index = divmod(word, SMALL["summary"])
    return conv(span=span, want=1 << index, lo=1, lo_en=1, lo_at=index)


def test_words_with_no_bit_in_range_take_one_cycle_each_where_nothing_hides_them() -> None:
    requests = [*map(beyond_its_bit, range(40)), END]
    assert last_cycle(requests, [1] * 40) == LATENCY + 40


def test_zeros_behind_dense_words_cost_no_cycle() -> None:
    words = [0xFF, 0, 0, 0xFF, *([0] * 12), *([1] * 8)]
    dense = conv(span=0, want=15)
    zeros = [conv(span=span, want=15) for span in (1, 2, 3)]
    dropped = map(beyond_its_bit, range(16, 24))
    requests = [dense, dense, *zeros, *dropped] * 6 + [END]
    assert last_cycle(requests, words) == LATENCY + 6 * 32 + 1 - 1


def test_exponents_fall_by_doublings_alone_where_bits_are_missing() -> None:
    requests = [
        conv(span=0, want=1, exponent=5),
        conv(span=1, want=1, exponent=4),
        conv(span=0, want=1, exponent=2),
        END,
        END,
    ]
    words = [1, 0, 0, 0, 0, 0, 0, 0] + [0] * 56
    events, cycles, _ = scan(requests, words, SMALL)
    flags = [(event["clear"], event["double"], event["end"], event["mask"]) for event in events]
    assert flags == [
        (1, 0, 0, 255),
        (0, 1, 0, 0),
        (0, 1, 0, 0),
        (0, 1, 0, 255),
        (0, 1, 0, 0),
        (0, 1, 1, 0),
        (1, 0, 1, 0),
    ]
    # The third request is the next to make events, and it came two cycles after the first.
    assert cycles == [LATENCY, *range(LATENCY + 2, LATENCY + 8)]


def test_the_scanner_reads_what_was_written_to_the_plane_memory() -> None:
    sizes = {"words": 64, "word": 16, "summary": 8}
    memory = PlaneMemory(**sizes, granule=8)
    scanner = Scanner(**sizes, lanes=8, rows=64)
    m = Module()
    m.submodules.memory = memory
    m.submodules.scanner = scanner
    connect(m, memory.word, scanner.word)
    connect(m, memory.summary, scanner.summary)
    source = random.Random(3)
    all_sizes = dict(sizes, lanes=8, rows=64)
    requests, words = random_work(source, all_sizes)
    bench = Bench(m)
    bench.drive(
        memory.i_write,
        [{"addr": a, "data": word, "enable": 3, "first": 1} for a, word in enumerate(words)],
    )
    written = iter([True] * (len(words) + 2))
    bench.drive(scanner.i_request, requests, stall=lambda: next(written, False))
    expected = golden(requests, words, all_sizes)
    monitor = bench.monitor(scanner.o_event, len(expected), stall=stalls(5, 0.2))
    bench.script({"host": memory.host.en}, [])
    bench.run()
    events = [
        dict(event, row=event["row"] if event["mask"] else None) for event in monitor.payloads
    ]
    assert events == expected


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"lanes": "8"}, TypeError, "lanes must be an integer, not '8'"),
        ({"lanes": 6}, ValueError, "lanes must be a power of two, not 6"),
        ({"lanes": 16}, ValueError, "lanes must be at most the 8 bits of a word, not 16"),
        ({"word": 4}, ValueError, "word must be at least 8, not 4"),
        ({"summary": 0}, ValueError, "summary must be at least 1, not 0"),
        ({"words": 66}, ValueError, "words must be a multiple of summary (4), not 66"),
        ({"rows": True}, TypeError, "rows must be an integer, not True"),
        ({"granule": 16}, ValueError, "granule must be at most the 8 bits of a word, not 16"),
        ({"span_queue": 1}, ValueError, "span_queue must be at least 2, not 1"),
        ({"word_queue": 1}, ValueError, "word_queue must be at least 3, not 1"),
    ],
)
def test_a_wrong_size_is_refused(change: dict, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=f"^{re.escape(text)}$"):
        Scanner(**SMALL | change)


def test_the_scanner_converts_to_verilog(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AMARANTH_USE_YOSYS", "builtin")
    scanner = Scanner(**SMALL)
    text = verilog.convert(scanner, ports=ports(scanner))
    assert "output o_event__valid" in text
