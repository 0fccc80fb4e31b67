# amaranth: UnusedElaboratable=no
"""RowMemory in its portable form and in the RAMs of an iCE40 UltraPlus, both in Icarus."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
from amaranth import Fragment
from amaranth.back import verilog

from lbq_hw import families
from lbq_hw.core.memory.rows import RowMemory
from lbq_hw.sim.verilog import ports

ULTRAPLUS = "iCE40UP5K"
SIZES = [
    {"rows": 300, "lanes": 8, "weight_bits": 8},
    {"rows": 64, "lanes": 16, "weight_bits": 4},
    {"rows": 50, "lanes": 8, "weight_bits": 6},
    {"rows": 17, "lanes": 4, "weight_bits": 3},
    {"rows": 20_000, "lanes": 4, "weight_bits": 8},
]
BENCH = """
module bench;
    reg clk = 0, rst = 0, read_en;
    reg [{addr}:0] read_addr, write_addr;
    reg [{data}:0] write_data;
    reg [{en}:0] write_en;
    wire [{data}:0] read_data;
    integer file, count;
    top dut(.clk(clk), .rst(rst), .read__en(read_en), .read__addr(read_addr),
            .read__data(read_data), .write__en(write_en), .write__addr(write_addr),
            .write__data(write_data));
    initial begin
        file = $fopen("steps.txt", "r");
        while ($fscanf(file, "%h %h %h %h %h\\n", read_en, read_addr, write_en, write_addr,
                       write_data) == 5) begin
            #1 clk = 1;
            #1 clk = 0;
            $display("%h", read_data);
        end
        $finish;
    end
endmodule
"""


def convert(sizes: dict, device: str | None) -> str:
    memory = RowMemory(**sizes)
    fragment = Fragment.get(memory, SimpleNamespace(device=device))
    return verilog.convert(fragment, name="top", ports=ports(memory), strip_internal_attrs=True)


def random_steps(source: random.Random, *, rows: int, lanes: int, weight_bits: int) -> list[dict]:
    """Writes of some lanes, then reads, idle cycles and writes in any order, at few rows."""
    spots = [0, rows - 1, rows // 2, *(source.randrange(rows) for _ in range(5))]
    steps = [{"write": -1, "row": row} for row in spots]
    for _ in range(300):
        kind = source.choice(("read", "read", "idle", "write"))
        step = {kind: 1, "row": source.choice(spots)}
        if kind == "write":
            step["write"] = source.getrandbits(lanes)
        steps.append(step)
    for step in steps:
        step["data"] = source.getrandbits(lanes * weight_bits)
    return steps


def golden(steps: list[dict], *, lanes: int, weight_bits: int) -> list[int | None]:
    """Data after every step; None where they are anything."""
    rows: dict[int, int] = {}
    shown: int | None = None
    found = []
    for step in steps:
        if step.get("write", 0):
            shown = None
            for lane in range(lanes):
                if step["write"] >> lane & 1:
                    mask = ((1 << weight_bits) - 1) << lane * weight_bits
                    rows[step["row"]] = rows.get(step["row"], 0) & ~mask | step["data"] & mask
        elif "read" in step:
            shown = rows[step["row"]]
        found.append(shown)
    return found


@pytest.mark.skipif(shutil.which("iverilog") is None, reason="needs iverilog: apt install iverilog")
@pytest.mark.parametrize("device", [ULTRAPLUS, None])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_both_forms_are_read_as_written(
    sizes: dict, device: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AMARANTH_USE_YOSYS", "builtin")
    text = convert(sizes, device)
    assert ("SB_SPRAM256KA" in text) == (device == ULTRAPLUS)
    width, lanes = sizes["lanes"] * sizes["weight_bits"], sizes["lanes"]
    steps = random_steps(random.Random(3), **sizes)
    lines = [
        f"{int('read' in step):x} {step['row']:x} {step.get('write', 0) % (1 << lanes):x} "
        f"{step['row']:x} {step['data']:x}\n"
        for step in steps
    ]
    (tmp_path / "steps.txt").write_text("".join(lines))
    bench = BENCH.format(addr=(sizes["rows"] - 1).bit_length() - 1, data=width - 1, en=lanes - 1)
    (tmp_path / "bench.v").write_text(text + bench)
    model = Path(__file__).with_name("spram.v")
    build = ["iverilog", "-g2012", "-o", "bench", "bench.v", str(model), "-s", "bench"]
    subprocess.run(build, cwd=tmp_path, check=True)
    done = subprocess.run(["vvp", "-n", "bench"], cwd=tmp_path, check=True, capture_output=True)
    shown = done.stdout.decode().split()
    expected = golden(steps, lanes=lanes, weight_bits=sizes["weight_bits"])
    assert len(shown) == len(expected)
    for found, data in zip(shown, expected, strict=True):
        assert data is None or found == f"{data:0{-(-width // 4)}x}"


def test_rows_that_the_rams_cannot_hold_take_the_portable_form(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AMARANTH_USE_YOSYS", "builtin")
    text = convert({"rows": 64, "lanes": 16, "weight_bits": 8}, ULTRAPLUS)
    assert "SB_SPRAM256KA" not in text


def test_what_the_rams_cannot_be_given_is_refused() -> None:
    family = families.find("ice40")
    assert family.baked(SimpleNamespace(device="iCE40HX8K"))
    assert not family.baked(SimpleNamespace(device=ULTRAPLUS))
    memory = RowMemory(rows=4, lanes=4, weight_bits=8, init=[1])
    text = "weights must be loaded on a iCE40UP5K, not baked in"
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        Fragment.get(memory, SimpleNamespace(device=ULTRAPLUS))


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"rows": 0}, ValueError, "rows must be at least 1, not 0"),
        ({"lanes": 2.0}, TypeError, "lanes must be an integer, not 2.0"),
        ({"weight_bits": 0}, ValueError, "weight_bits must be at least 1, not 0"),
    ],
)
def test_sizes_that_make_no_sense_are_refused(change: dict, error: type, text: str) -> None:
    with pytest.raises(error, match=f"^{re.escape(text)}$"):
        RowMemory(**{"rows": 8, "lanes": 4, "weight_bits": 8} | change)
