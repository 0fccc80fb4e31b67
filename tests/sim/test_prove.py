"""Netlists from bitstreams, and the cells that they are made of, in a four-state simulator."""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
import tarfile
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lbq_hw import bitstream, boards
from lbq_hw.bitstream import BitsError, Files, MissingError, ecp5_structure
from lbq_hw.bitstream.base import look_up
from lbq_hw.sim import prove
from tests.lbq_hw.bitstream.make import WORDS

GOLDEN = Path(__file__).parents[1] / "lbq_hw" / "bitstream"
needs_icarus = pytest.mark.skipif(
    shutil.which("iverilog") is None, reason="needs iverilog: apt install iverilog"
)
needs_icebox = pytest.mark.skipif(
    shutil.which("icebox_vlog") is None, reason="needs icebox: apt install fpga-icestorm"
)
START, SETTLE, EDGES = 4000, 12, 300


def slow(*values: int) -> Any:
    """A case that CI leaves out."""
    return pytest.param(*values, marks=pytest.mark.slow)


def run(folder: Path, *texts: str) -> list[str]:
    """Lines that a bench of these texts prints."""
    (folder / "bench.v").write_text("".join(texts), encoding="utf-8")
    build = ["iverilog", "-g2012", "-s", "bench", "-o", "bench", "bench.v"]
    subprocess.run(build, cwd=folder, check=True)
    done = subprocess.run(
        ["vvp", "-n", "bench"], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout.splitlines()


@needs_icarus
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("icebreaker", marks=needs_icebox),
        pytest.param("ice40-hx8k", marks=needs_icebox),
        "ulx3s-12f",
        "tang-nano-9k",
    ],
)
def test_a_netlist_says_what_its_block_ram_holds(name: str, tmp_path: Path) -> None:
    """At each edge of the line the design gives the next bit of its memory: pins, PLL, reset, block
    RAM and logic are those of the golden bitstream, and no bit is unknown.
    """
    with tarfile.open(GOLDEN / f"{name}.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    board = boards.find(name)
    files = bitstream.files(tmp_path, board)
    chip = bitstream.netlist(files, board, tmp_path).verilog
    bench = f"""
module bench;
    reg clk = 0, rx = 1;
    wire tx;
    chip chip (.{board.clock}_0__io(clk), .uart_0__rx__io(rx), .uart_0__tx__io(tx));
    always #5 clk = !clk;
    integer i;
    initial begin
        repeat ({START}) @(negedge clk);
        for (i = 0; i < {EDGES}; i = i + 1) begin
            $display("%b", tx);
            rx = !rx;
            repeat ({SETTLE}) @(negedge clk);
        end
        $finish;
    end
endmodule
"""
    cells = prove.cells(board.family)
    said = "".join(line for line in run(tmp_path, chip, cells, bench) if line in ("0", "1", "x"))
    # The line is high when reset ends, which is the first edge.
    wanted = "".join(str(WORDS[at >> 4] >> (at & 15) & 1) for at in range(1, EDGES + 1))
    assert said == wanted


def memory_bench(cell: str, ports: str, steps: list[dict[str, int]], out: str) -> str:
    """A bench that sets ports before each clock edge and prints an output after it."""
    names = sorted({name for step in steps for name in step})
    sets = [
        "".join(f"{name} = {value}; " for name, value in step.items()) + "#5 clk = 1; #5 clk = 0; "
        f'$display("%h", {out});'
        for step in steps
    ]
    registers = "".join(f"    reg [31:0] {name} = 0;\n" for name in names)
    return (
        f"module bench;\n    reg clk = 0;\n{registers}    wire [31:0] {out};\n"
        f"    {cell} ({ports});\n"
        "    initial begin\n" + "\n".join(sets) + "\n    end\nendmodule\n"
    )


@needs_icarus
@pytest.mark.parametrize("mode", [0, 1, 2, 3])
def test_an_ice40_block_ram_is_a_memory_in_every_width(mode: int, tmp_path: Path) -> None:
    """Data lie at one bit of each group of 1, 2, 4 or 8."""
    rng = np.random.default_rng(mode)
    group = 1 << mode
    places = [group * i + max(group // 2 - 1, 0) for i in range(16 // group)]
    steps, wanted, kept = [], [], {}
    last = None
    for _ in range(300):
        write, read = int(rng.integers(0, 8)), int(rng.integers(0, 8))
        data, enabled = int(rng.integers(0, 1 << 16)), int(rng.integers(0, 2))
        steps.append({"WADDR": write << 7, "RADDR": read << 7, "WDATA": data, "WE": enabled})
        address = {"write": write << 7 & (256 * group - 1), "read": read << 7 & (256 * group - 1)}
        last = kept.get(address["read"], 0)
        if enabled:
            kept[address["write"]] = sum(data & 1 << place for place in places)
        wanted.append(last)
    pins = (".RCLK(clk), .WCLK(clk), .RE(1'b1), .RCLKE(1'b1), .WCLKE(1'b1), .MASK(16'h0), "
            ".WE(WE[0]), .WADDR(WADDR[10:0]), .RADDR(RADDR[10:0]), .WDATA(WDATA[15:0]), "
            ".RDATA(out[15:0])")  # fmt: skip
    cell = f"SB_RAM40_4K #(.READ_MODE({mode}), .WRITE_MODE({mode})) ram"
    cells = prove.cells("ice40")
    said = run(tmp_path, cells, memory_bench(cell, pins, steps, "out"))
    assert [int(line[-4:], 16) for line in said] == wanted


@needs_icarus
def test_an_ice40_single_port_ram_writes_by_nibbles(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    steps, wanted, kept, last = [], [], dict.fromkeys(range(4), 0), "x"
    for number in range(200):
        at, data = int(rng.integers(0, 4)), int(rng.integers(0, 1 << 16))
        mask, write = int(rng.integers(0, 16)), int(rng.integers(0, 2))
        if number < 4:
            at, mask, write = number, 15, 1
        steps.append({"ADDRESS": at, "DATAIN": data, "MASKWREN": mask, "WREN": write})
        if write:
            bits = sum(15 << 4 * nibble for nibble in range(4) if mask >> nibble & 1)
            kept[at] = kept[at] & ~bits | data & bits
        else:
            last = f"{kept[at]:04x}"
        wanted.append(last)
    pins = (".CLOCK(clk), .CHIPSELECT(1'b1), .STANDBY(1'b0), .SLEEP(1'b0), .POWEROFF(1'b1), "
            ".WREN(WREN[0]), .ADDRESS(ADDRESS[13:0]), .DATAIN(DATAIN[15:0]), "
            ".MASKWREN(MASKWREN[3:0]), .DATAOUT(out[15:0])")  # fmt: skip
    cells = prove.cells("ice40")
    said = run(tmp_path, cells, memory_bench("SB_SPRAM256KA ram", pins, steps, "out"))
    assert [line[-4:] if "x" not in line[-4:] else "x" for line in said] == wanted


@needs_icarus
@pytest.mark.parametrize(("width", "low"), [(18, 4), (4, 2), slow(9, 3), slow(2, 1), slow(1, 0)])
def test_an_ecp5_block_ram_is_a_memory_in_every_width(width: int, low: int, tmp_path: Path) -> None:
    """Port A writes, and reads what was there before; port B reads another word."""
    rng = np.random.default_rng(width)
    words = [int(word) for word in rng.integers(0, 512, 2048)]
    contents = sum(word << (i // 2 * 20 + i % 2 * 9) for i, word in enumerate(words))

    def held(at: int) -> int:
        if width == 18:
            return words[2 * at] | words[2 * at + 1] << 9
        each = max(8 // width, 1)
        return words[at // each] >> at % each * width & (1 << width) - 1

    kept: dict[int, int] = {}
    steps, wanted = [], []
    for number in range(300):
        write, read = int(rng.integers(0, 16)), int(rng.integers(16, 32))
        if number % 2:
            write, read = read, write
        data, enabled = int(rng.integers(0, 1 << width)), int(rng.integers(0, 2))
        enables = 3 if width == 18 else 0
        steps.append(
            {"ADA": write << low | enables, "ADB": read << low, "DIA": data, "WEA": enabled}
        )
        before = kept.get(write, held(write)), kept.get(read, held(read))
        if enabled:
            kept[write] = data
        wanted.append(before)
    pins = (".CLKA(clk), .CLKB(clk), .CEA(1'b1), .CEB(1'b1), .OCEA(1'b1), .OCEB(1'b1), "
            ".RSTA(1'b0), .RSTB(1'b0), .CSA(3'b0), .CSB(3'b0), .WEB(1'b0), .DIB(18'b0), "
            ".WEA(WEA[0]), .ADA(ADA[13:0]), .ADB(ADB[13:0]), .DIA(DIA[17:0]), "
            ".DOA(a), .DOB(b)")  # fmt: skip
    options = f'.DATA_WIDTH_A({width}), .DATA_WIDTH_B({width}), .WRITEMODE_A("READBEFOREWRITE")'
    cell = f"wire [17:0] a, b;\n    DP16KD #({options}, .INIT(20480'h{contents:x})) ram"
    bench = memory_bench(cell, pins, steps, "out").replace('("%h", out)', '("%h %h", a, b)')
    said = run(tmp_path, prove.cells("ecp5"), bench)
    assert [tuple(int(part, 16) for part in line.split()) for line in said] == wanted


@needs_icarus
@pytest.mark.parametrize("family", ["ecp5", "gowin"])
@pytest.mark.parametrize(("width", "low"), [(36, 5), (4, 2), slow(18, 4), slow(9, 3), slow(1, 0)])
def test_a_block_ram_writes_36_bits_by_bytes(
    family: str, width: int, low: int, tmp_path: Path
) -> None:
    """Port B reads words of 36 bits at both outputs and narrower ones at its own; what it reads
    while port A writes it is unknown.
    """
    rng = np.random.default_rng(width)
    words = [int(word) for word in rng.integers(0, 512, 2048)]
    gap = 2 if family == "ecp5" else 0
    contents = sum(word << (i // 2 * (18 + gap) + i % 2 * 9) for i, word in enumerate(words))
    parts, together = (8 // width, 1) if width < 9 else (1, width // 9)
    wanted, steps = [], []
    for _ in range(200):
        write, enables, on, part = (int(one) for one in rng.integers(0, [8, 16, 2, parts]))
        low_data, high_data = (int(one) for one in rng.integers(0, 1 << 18, 2))
        first = int(rng.integers(0, 32)) // together * together
        steps.append({"ADA": write << 5 | enables, "CEA": on, "LOW": low_data, "HIGH": high_data,
                      "ADB": first << 3 | part << low})  # fmt: skip
        found = sum(words[first + i] << 9 * i for i in range(together))
        found = found >> part * width & (1 << width) - 1
        wanted.append("x" if on and enables and first // 4 == write else found)
        for byte in range(4):
            if on and enables >> byte & 1:
                words[4 * write + byte] = (low_data | high_data << 18) >> 9 * byte & 511
    pins = (".CLKA(clk), .CLKB(clk), .CEA(CEA[0]), .CEB(1'b1), .OCEA(1'b0), .OCEB(1'b1), "
            ".DIA(LOW[17:0]), .DIB(HIGH[17:0]), .ADA(ADA[13:0]), .ADB(ADB[13:0]), "
            ".DOA(a), .DOB(b), ")  # fmt: skip
    if family == "ecp5":
        options, name = f".DATA_WIDTH_A(36), .DATA_WIDTH_B({width})", "DP16KD"
        pins += ".RSTA(1'b0), .RSTB(1'b0), .CSA(3'b0), .CSB(3'b0), .WEA(1'b1), .WEB(1'b0)"
    else:
        options, name = f".WIDTH_A(36), .WIDTH_B({width})", "BSRAM"
        # A port of 36 bits has its WRE high, also where it reads.
        pins += (".RESETA(1'b0), .RESETB(1'b0), .BLKSELA(3'b0), .BLKSELB(3'b0), .WREA(1'b1), "
                 f".WREB(1'b{int(width == 36)})")  # fmt: skip
    cell = f"wire [17:0] a, b;\n    {name} #({options}, .INIT({10240 * 2}'h{contents:x})) ram"
    shown = "{b, a}" if width == 36 else "b"
    bench = memory_bench(cell, pins, steps, "out").replace('("%h", out)', f'("%h", {shown})')
    said = run(tmp_path, prove.cells(family), bench)
    assert ["x" if "x" in line else int(line, 16) for line in said] == wanted


def test_a_routed_netlist_of_other_bits_is_refused(tmp_path: Path) -> None:
    with tarfile.open(GOLDEN / "ulx3s-12f.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    routed = json.loads((tmp_path / "routed.json").read_text(encoding="utf-8"))
    cells = routed["modules"]["top"]["cells"]
    name, cell = next(
        (name, cell)
        for name, cell in cells.items()
        if cell["type"] == "TRELLIS_COMB"
        and int(cell["parameters"]["INITVAL"], 2) not in (0, 65535)
    )
    cell["parameters"]["INITVAL"] = "0" * 16
    (tmp_path / "routed.json").write_text(json.dumps(routed), encoding="utf-8")
    board = boards.find("ulx3s-12f")
    files = bitstream.files(tmp_path, board)
    x, y, bel = cell["attributes"]["NEXTPNR_BEL"].split("/")
    sentence = f"the LUT {name!r} is not in the bits at R{y[1:]}C{x[1:]}:PLC2, {bel}"
    with pytest.raises(BitsError) as caught:
        bitstream.netlist(files, board, tmp_path)
    assert str(caught.value) == sentence


def golden_ulx3s(folder: Path) -> tuple[Files, dict[str, Any]]:
    """The files of a small design, and its routed netlist."""
    with tarfile.open(GOLDEN / "ulx3s-12f.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    files = bitstream.files(folder, boards.find("ulx3s-12f"))
    routed = folder / "routed.json"
    return files, json.loads(routed.read_text(encoding="utf-8"))["modules"]["top"]


def test_every_arc_lut_and_flip_flop_of_a_routed_netlist_is_in_the_bits(tmp_path: Path) -> None:
    files, top = golden_ulx3s(tmp_path)
    config = files.placed.read_text(encoding="utf-8")
    kinds = Counter(cell["type"] for cell in top["cells"].values())
    assert ecp5_structure.compare(top, files.packed, files.placed) == {
        "arcs": config.count("\narc: "),
        "luts": kinds["TRELLIS_COMB"],
        "flip_flops": kinds["TRELLIS_FF"],
        "rams": 1,
    }


def test_nets_that_are_led_elsewhere_are_refused(tmp_path: Path) -> None:
    """A pip of a net that is not in the bits, and two wires joined by the bits for no net."""
    files, top = golden_ulx3s(tmp_path)
    nets = [net["attributes"] for net in top["netnames"].values()]
    net, at = next(
        (net, at)
        for net in nets
        for at, part in enumerate(net.get("ROUTING", "").split(";"))
        if re.fullmatch(r"X\S+_[HV]\d\d\S+->0_0_A\d", part)
    )
    routing, kept = net["ROUTING"], net["ROUTING"].split(";")
    x, y, joint = kept[at].split("/")
    sink = joint.rpartition("_")[2]
    net["ROUTING"] = ";".join(kept[: at - 1] + kept[at + 2 :])
    place = f"R{y[1:]}C{x[1:]}:PLC2"
    with pytest.raises(BitsError, match=rf"^\S+ and {sink} of {place} are joined, but by no net$"):
        ecp5_structure.compare(top, files.packed, files.placed)
    other = kept[at].replace(f"->0_0_{sink}", f"->0_0_A{(int(sink[1]) + 1) % 8}")
    net["ROUTING"] = f"{routing};X0/Y0/W;{other};1"
    with pytest.raises(BitsError) as caught:
        ecp5_structure.compare(top, files.packed, files.placed)
    assert str(caught.value) == f"the wires of {other} are not joined in the bits"


@needs_icarus
def test_an_unknown_input_of_a_lut_only_matters_if_its_table_depends_on_it(tmp_path: Path) -> None:
    drawn = random.Random(3)
    tables = [0xF000, 0x0D05, *(drawn.getrandbits(16) for _ in range(8))]
    cases = [(table, given) for table in tables for given in product("01x", repeat=4)]
    shows = "".join(
        f'a = 4\'b{"".join(given)}; #1 $display("%b", o{tables.index(table)});\n'
        for table, given in cases
    )
    inputs = [f"a[{bit}]" for bit in range(4)]
    outputs = ", ".join(f"o{at} = {look_up(table, inputs)}" for at, table in enumerate(tables))
    found = run(
        tmp_path,
        f"module bench; reg [3:0] a; wire {outputs};\ninitial begin\n{shows}end\nendmodule\n",
    )
    for (table, given), shown in zip(cases, found, strict=True):
        known = product(*("01" if bit == "x" else bit for bit in given))
        values = {table >> int("".join(bits), 2) & 1 for bits in known}
        assert shown == ("x" if len(values) == 2 else str(values.pop())), (hex(table), given)


def test_memory_in_luts_has_its_address_at_the_inputs_d_b_c_and_a(tmp_path: Path) -> None:
    """Bit 0 of the address leads to D, which is bit 3 of the table's number, and so on."""
    files, _ = golden_ulx3s(tmp_path)
    assert files.routed is not None
    design = json.loads(files.routed.read_text(encoding="utf-8"))
    cells = design["modules"]["top"]["cells"]
    for address, place in ((1, 8), (2, 2), (4, 4), (8, 1)):
        cells[f"ram_{address}"] = {
            "type": "TRELLIS_COMB",
            "parameters": {"MODE": "DPRAM", "INITVAL": f"{1 << place:016b}"},
            "attributes": {},
            "connections": {},
        }
    files.routed.write_text(json.dumps(design), encoding="utf-8")
    text = bitstream.netlist(files, boards.find("ulx3s-12f"), tmp_path).verilog
    found = [int(number, 16) for number in re.findall(r"_ram = 16'h(\w+);", text)]
    assert found == [1 << 1, 1 << 2, 1 << 4, 1 << 8]


def test_a_flip_flop_that_starts_otherwise_is_refused(tmp_path: Path) -> None:
    files, top = golden_ulx3s(tmp_path)
    name, cell = next(
        (name, cell) for name, cell in top["cells"].items() if cell["type"] == "TRELLIS_FF"
    )
    start = {"SET": "RESET", "RESET": "SET"}[cell["parameters"]["REGSET"]]
    cell["parameters"]["REGSET"] = start
    slice_, _, half = cell["attributes"]["NEXTPNR_BEL"].split("/")[2].partition(".FF")
    with pytest.raises(BitsError) as caught:
        ecp5_structure.compare(top, files.packed, files.placed)
    assert str(caught.value) == (
        f"the flip-flop {name!r} lacks {slice_}.REG{half}.REGSET = {start}"
    )


@needs_icarus
@pytest.mark.parametrize(("width", "low"), [(18, 4), (4, 2), slow(9, 3), slow(2, 1), slow(1, 0)])
def test_a_gowin_block_ram_of_two_ports_is_a_memory(width: int, low: int, tmp_path: Path) -> None:
    """Port A writes, and shows what it writes; port B reads another word while it is selected."""
    rng = np.random.default_rng(width)
    words = [int(word) for word in rng.integers(0, 512, 2048)]
    contents = sum(word << 9 * i for i, word in enumerate(words))

    def held(at: int) -> int:
        if width == 18:
            return words[2 * at] | words[2 * at + 1] << 9
        each = max(8 // width, 1)
        return words[at // each] >> at % each * width & (1 << width) - 1

    kept: dict[int, int] = {}
    steps, wanted, last = [], [], 0
    for number in range(300):
        write, read = int(rng.integers(0, 16)), int(rng.integers(16, 32))
        if number % 2:
            write, read = read, write
        data, enabled, selected = (int(part) for part in rng.integers(0, [1 << width, 2, 2]))
        enables = 3 if width == 18 else 0
        steps.append({"ADA": write << low | enables, "ADB": read << low, "DIA": data,
                      "WREA": enabled, "SELECTED": selected})  # fmt: skip
        last = kept.get(read, held(read)) if selected else last
        wanted.append((data if enabled else kept.get(write, held(write)), last))
        if enabled:
            kept[write] = data
    pins = (".CLKA(clk), .CLKB(clk), .CEA(1'b1), .CEB(1'b1), .OCEA(1'b0), .OCEB(1'b0), "
            ".RESETA(1'b0), .RESETB(1'b0), .BLKSELA(3'd0), .BLKSELB({2'b10, SELECTED[0]}), "
            ".WREB(1'b0), .DIB(18'b0), .WREA(WREA[0]), .ADA(ADA[13:0]), .ADB(ADB[13:0]), "
            ".DIA(DIA[17:0]), .DOA(a), .DOB(b)")  # fmt: skip
    options = f".WIDTH_A({width}), .WIDTH_B({width}), .MODE_A(1), .MODE_B(1), .SELECT_B(5)"
    cell = f"wire [17:0] a, b;\n    BSRAM #({options}, .INIT(18432'h{contents:x})) ram"
    bench = memory_bench(cell, pins, steps, "out").replace('("%h", out)', '("%h %h", a, b)')
    said = run(tmp_path, prove.cells("gowin"), bench)
    assert [tuple(int(part, 16) for part in line.split()) for line in said] == wanted


def test_a_cell_without_a_model_is_named(tmp_path: Path) -> None:
    with tarfile.open(GOLDEN / "ulx3s-12f.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    text = (tmp_path / "routed.json").read_text(encoding="utf-8")
    routed = tmp_path / "routed.json"
    routed.write_text(text.replace('"EHXPLLL"', '"OSCG"'), encoding="utf-8")
    board = boards.find("ulx3s-12f")
    files = bitstream.files(tmp_path, board)
    message = "^the cell OSCG of the routed design has no model yet$"
    with pytest.raises(MissingError, match=message):
        bitstream.netlist(files, board, tmp_path)
