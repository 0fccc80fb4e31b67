# amaranth: UnusedElaboratable=no
"""PlaneMemory against a list of words and flags."""

from __future__ import annotations

import random
import re

import pytest
from amaranth.back import verilog
from core.harness import Bench

from lbq_hw.core.memory.planes import PlaneMemory, SpreadPlanes
from lbq_hw.core.memory.spread import SpreadMemory
from lbq_hw.sim.models.planes import golden, random_writes
from lbq_hw.sim.models.traffic import stalls
from lbq_hw.sim.verilog import ports

SIZES = [
    {"words": 8, "word": 8, "summary": 4, "granule": 4},
    {"words": 24, "word": 16, "summary": 8, "granule": 8},
    {"words": 64, "word": 64, "summary": 32, "granule": 8},
    {"words": 128, "word": 128, "summary": 16, "granule": 8},
    {"words": 4, "word": 8, "summary": 4, "granule": 8},
    {"words": 6, "word": 8, "summary": 1, "granule": 8},
]


def read_back(memory: PlaneMemory, steps: list[dict], **drive) -> dict[str, list[int]]:
    """Run writes, then read ports step by step; data as they were in every cycle."""
    bench = Bench(memory)
    ports = {"word": memory.word, "summary": memory.summary, "host": memory.host}
    signals = {
        f"{name}_{member}": getattr(port, member)
        for name, port in ports.items()
        for member in ("addr", "en")
    }
    bench.script(signals, steps)
    if drive:
        bench.drive(memory.i_write, drive["writes"], stall=drive["stall"])
    history = bench.probe(**{name: port.data for name, port in ports.items()})
    bench.run(extra=1)
    return history


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("rate", [0.0, 0.4])
@pytest.mark.parametrize("far", [False, True], ids=["near", "far"])
def test_random_writes_leave_the_words_and_flags_of_the_model(
    sizes: dict, rate: float, far: bool
) -> None:
    source = random.Random(str(sizes))
    part = {name: sizes[name] for name in ("words", "word", "granule")}
    writes = list(random_writes(source, 200, **part))
    words, flags = golden(writes, **part)
    wait = 900
    summary = sizes["summary"]
    reads = [
        {"word_addr": a, "word_en": 1, "summary_addr": a // summary, "summary_en": 1}
        for a in range(sizes["words"])
    ]
    steps = [{}] * wait + reads + [{}] * SpreadMemory.LATENCY
    kind = SpreadPlanes if far else PlaneMemory
    history = read_back(kind(**sizes), steps, writes=writes, stall=stalls(1, rate))
    there = wait + (SpreadMemory.LATENCY if far else 1)
    assert history["word"][there:][: len(reads)] == words
    packed = [
        sum(flag << i for i, flag in enumerate(flags[a // summary * summary :][:summary]))
        for a in range(sizes["words"])
    ]
    assert history["summary"][wait + 1 :][: len(reads)] == packed


@pytest.mark.parametrize("far", [False, True], ids=["near", "far"])
def test_writes_to_one_summary_word_follow_each_other_without_a_gap(far: bool) -> None:
    kind = SpreadPlanes if far else PlaneMemory
    memory = kind(words=16, word=8, summary=8, granule=8)
    writes = [
        {"addr": 0, "data": 1, "enable": 1, "first": 1},
        {"addr": 1, "data": 2, "enable": 1, "first": 0},
        {"addr": 0, "data": 0, "enable": 1, "first": 1},
        {"addr": 9, "data": 3, "enable": 1, "first": 1},
        {"addr": 2, "data": 3, "enable": 1, "first": 1},
        {"addr": 3, "data": 3, "enable": 0, "first": 1},
    ]
    steps = [{"summary_addr": 0, "summary_en": 1}] * 10
    history = read_back(memory, steps, writes=writes, stall=lambda: False)
    # Written in cycles 0 to 5, seen by reads two cycles later, whose data come a cycle after them;
    # if far, by reads three cycles later.
    assert history["summary"][far : 10 + far] == [
        0,
        0,
        0,
        0b01,
        0b11,
        0b10,
        0b10,
        0b110,
        0b110,
        0b110,
    ]


@pytest.mark.parametrize("far", [False, True], ids=["near", "far"])
def test_a_word_is_seen_by_a_read_in_the_cycle_after_its_write(far: bool) -> None:
    kind = SpreadPlanes if far else PlaneMemory
    memory = kind(words=8, word=16, summary=8, granule=8)
    writes = [
        {"addr": 5, "data": 0x1234, "enable": 3, "first": 1},
        {"addr": 5, "data": 0xABCD, "enable": 2, "first": 0},
    ]
    wait = iter([False, True, False])
    steps = [{}, {"word_addr": 5, "word_en": 1}, {}, {"word_addr": 5, "word_en": 1}, {}, {}, {}]
    history = read_back(memory, steps, writes=writes, stall=lambda: next(wait))
    late = SpreadMemory.LATENCY - 1 if far else 0
    assert history["word"][late : late + 5] == [0, 0, 0x1234, 0x1234, 0xAB34]


def test_read_data_stay_until_the_next_enabled_read_of_either_port() -> None:
    memory = PlaneMemory(words=8, word=8, summary=8, granule=8)
    writes = [{"addr": a, "data": 16 + a, "enable": 1, "first": 1} for a in range(8)]
    steps = [{}] * 10 + [
        {"word_addr": 3, "word_en": 1},
        {"word_addr": 4},
        {"host_addr": 5},
        {"word_addr": 4, "host_addr": 6, "host_en": 1},
        {"host_addr": 7, "host_en": 1},
        {},
    ]
    history = read_back(memory, steps, writes=writes, stall=lambda: False)
    assert history["word"][11:17] == [19, 19, 19, 22, 23, 23]
    assert history["host"][11:17] == [19, 19, 19, 22, 23, 23]


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"words": 2.5}, TypeError, "words must be an integer, not 2.5"),
        ({"words": 0}, ValueError, "words must be at least 1, not 0"),
        ({"words": 12}, ValueError, "words must be a multiple of summary (8), not 12"),
        ({"word": 24}, ValueError, "word must be a power of two, not 24"),
        ({"word": 4}, ValueError, "word must be at least 8, not 4"),
        ({"summary": 6}, ValueError, "summary must be a power of two, not 6"),
        ({"granule": 3}, ValueError, "granule must be a power of two, not 3"),
        ({"granule": 32}, ValueError, "granule must be at most the 16 bits of a word, not 32"),
    ],
)
def test_a_wrong_size_is_refused(change: dict, error: type[Exception], text: str) -> None:
    sizes = {"words": 16, "word": 16, "summary": 8, "granule": 8}
    with pytest.raises(error, match=f"^{re.escape(text)}$"):
        PlaneMemory(**sizes | change)


def test_the_memory_converts_to_verilog(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AMARANTH_USE_YOSYS", "builtin")
    memory = PlaneMemory(words=64, word=64, summary=16, granule=8)
    text = verilog.convert(memory, ports=ports(memory))
    assert "output [15:0] summary__data" in text
