"""A Gowin's routed netlist as Verilog.

nextpnr writes the design that it has routed as JSON, which the packer turns into fuses:
`gowin.decode` has found that the packed file has these fuses. Logic becomes expressions here, block
RAMs and the PLL stay instances. An input that no wire leads to is high.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from lbq_hw.bitstream.base import BitsError, Files
from lbq_hw.boards import Board

Cell = dict[str, Any]
_NUMBERED = re.compile(r"([A-Z]+?)(\d+)")
_FLIP_FLOP = re.compile(r"DFF(N?)([SRPC]?)(E?)")
_RESETS = {"S": ("SET", 1), "R": ("RESET", 0), "P": ("PRESET", 1), "C": ("CLEAR", 0)}
_HIGH = "1'b1"
_ADD_OR_SUBTRACT = 2
_ROWS = 64  # of a block RAM's contents


def netlist(files: Files, board: Board, folder: Path) -> str:
    """The module ``chip`` of a routed design."""
    del board, folder
    top = json.loads(files.placed.read_text(encoding="utf-8"))["modules"]["top"]
    pins = {port["bits"][0]: name for name, port in top["ports"].items()}
    ways = [f"{port['direction']} {name}" for name, port in top["ports"].items()]
    cells = top["cells"].values()
    body = [line for number, cell in enumerate(cells) for line in _lines(cell, f"u{number}", pins)]
    registers = {_wire(cell, "Q") for cell in cells if cell["type"].startswith("DFF")}
    wires = {f"n{bit}" for cell in cells for net in cell["connections"].values() for bit in net
             if isinstance(bit, int) and bit not in pins}  # fmt: skip
    named = [f"wire {wire};" for wire in sorted(wires - registers)]
    return "\n".join([f"module chip ({', '.join(ways)});", *named, *body, "endmodule", ""])


def _lines(cell: Cell, label: str, pins: dict[int, str]) -> Iterator[str]:
    kind = cell["type"]
    for pattern, write in _KINDS.items():
        if re.fullmatch(pattern, kind):
            yield from write(cell, label, pins)
            return
    raise BitsError(f"the routed design has a cell of the unknown type {kind}")


def _wire(cell: Cell, port: str) -> str | None:
    bits = cell["connections"].get(port) or []
    return f"n{bits[0]}" if bits else None


def _input(cell: Cell, port: str) -> str:
    return _wire(cell, port) or "1'b1"


def _number(cell: Cell, name: str) -> int:
    return int(cell["parameters"].get(name, "0").replace("x", "0"), 2)


def _lut(cell: Cell, _label: str, _pins: dict[int, str]) -> Iterator[str]:
    size = 1 << int(cell["type"][3:])
    inputs = ", ".join(
        _input(cell, f"I{index}") for index in reversed(range(int(cell["type"][3:])))
    )
    yield f"assign {_wire(cell, 'F')} = {size}'h{_number(cell, 'INIT'):x} >> {{{inputs}}};"


def _mux(cell: Cell, _label: str, _pins: dict[int, str]) -> Iterator[str]:
    one, other = _input(cell, "I1"), _input(cell, "I0")
    yield f"assign {_wire(cell, 'O')} = {_input(cell, 'S0')} ? {one} : {other};"


def _alu(cell: Cell, label: str, _pins: dict[int, str]) -> Iterator[str]:
    """A LUT beside a carry, which its four lowest bits make of I0 and I1; or the begin of one."""
    mode, out = cell["parameters"].get("ALU_MODE"), _wire(cell, "COUT")
    carry = _wire(cell, "CIN") or "1'b0"
    if mode in ("C2L", "ONE2C"):
        # The begin of a carry, 0 or 1, or its end, which leads it to logic.
        if (total := _wire(cell, "SUM")) is not None:
            yield f"assign {total} = {carry};"
        if out is not None:
            yield f"assign {out} = {_HIGH if mode == 'ONE2C' else carry};"
        return
    first, second, third = (_input(cell, f"I{index}") for index in (0, 1, 3))
    if "RAW_ALU_LUT" in cell["parameters"]:
        table = _number(cell, "RAW_ALU_LUT")
        inputs = ", ".join((third, _input(cell, "I2"), second, first))
        yield f"wire {label} = 16'h{table:04x} >> {{{inputs}}};"
        yield f"wire {label}_c = 4'h{table & 15:x} >> {{{second}, {first}}};"
    elif _number(cell, "ALU_MODE") == _ADD_OR_SUBTRACT:
        yield f"wire {label} = {first} ^ {second} ^ ~{third}, {label}_c = {first};"
    else:
        raise BitsError(f"an ALU of the routed design has the unknown mode {mode}")
    if (total := _wire(cell, "SUM")) is not None:
        yield f"assign {total} = {label} ^ {carry};"
    if out is not None:
        yield f"assign {out} = {label} ? {carry} : {label}_c;"


def _flip_flop(cell: Cell, _label: str, _pins: dict[int, str]) -> Iterator[str]:
    kind = _FLIP_FLOP.fullmatch(cell["type"])
    assert kind is not None
    falling, reset, enabled = kind.groups()
    out, data, clock = _wire(cell, "Q"), _input(cell, "D"), _input(cell, "CLK")
    edge = f"{'negedge' if falling else 'posedge'} {clock}"
    enable = f"if ({_input(cell, 'CE')}) " if enabled else ""
    port, value = _RESETS.get(reset, ("", 0))
    yield f"reg {out} = {value};"
    if not reset:
        yield f"always @({edge}) {enable}{out} <= {data};"
        return
    if reset in "PC":
        edge += f" or posedge {_input(cell, port)}"
    held = f"if ({_input(cell, port)}) {out} <= {value};"
    yield f"always @({edge}) {held} else {enable}{out} <= {data};"


def _pad(cell: Cell, _label: str, pins: dict[int, str]) -> Iterator[str]:
    if cell["type"] == "IBUF":
        yield f"assign {_wire(cell, 'O')} = {pins[cell['connections']['I'][0]]};"
    else:
        yield f"assign {pins[cell['connections']['O'][0]]} = {_input(cell, 'I')};"


def _constant(cell: Cell, _label: str, _pins: dict[int, str]) -> Iterator[str]:
    low = cell["type"] == "GOWIN_GND"
    yield f"assign {_wire(cell, 'G' if low else 'V')} = 1'b{int(not low)};"


def _instance(cell: Cell, label: str, _pins: dict[int, str]) -> Iterator[str]:
    """A block RAM or a PLL, with its numbered ports as buses."""
    buses: dict[str, dict[int, str]] = {}
    ports = []
    for port, way in cell["port_directions"].items():
        value = _input(cell, port) if way == "input" else _wire(cell, port)
        if value is None:
            value = f"{label}_{port}"
            yield f"wire {value};"
        if numbered := _NUMBERED.fullmatch(port):
            buses.setdefault(numbered[1], {})[int(numbered[2])] = value
        else:
            ports.append(f".{port}({value})")
    for bus, wires in buses.items():
        bits = [wires.get(index, "1'b0") for index in range(max(wires), -1, -1)]
        ports.append(f".{bus}({{{', '.join(bits)}}})")
    yield f"{cell['type']} #({', '.join(_values(cell))}) {label} ({', '.join(ports)});"


def _values(cell: Cell) -> Iterator[str]:
    if cell["type"] == "rPLL":
        return
    for name in ("BIT_WIDTH_0", "BIT_WIDTH_1", "WRITE_MODE0", "WRITE_MODE1"):
        if name in cell["parameters"]:
            yield f".{name}({_number(cell, name)})"
    # Rows of 32 bytes, with or without a ninth bit of each.
    size = 288 if cell["attributes"].get("BSRAM_SUBTYPE", "").strip() == "X9" else 256
    contents = 0
    for row in range(_ROWS):
        digits = _number(cell, f"INIT_RAM_{row:02X}")
        for byte in range(32):
            word = digits >> size // 32 * byte & (1 << size // 32) - 1
            contents |= word << 9 * (32 * row + byte)
    yield f".INIT(18432'h{contents:x})"


def _nothing(_cell: Cell, _label: str, _pins: dict[int, str]) -> Iterator[str]:
    return iter(())


_KINDS: dict[str, Callable[[Cell, str, dict[int, str]], Iterator[str]]] = {
    r"LUT\d": _lut,
    r"MUX2_LUT\d": _mux,
    "ALU": _alu,
    _FLIP_FLOP.pattern: _flip_flop,
    "IBUF|OBUF|TBUF": _pad,
    "GOWIN_GND|GOWIN_VCC": _constant,
    "DP|SDP|rPLL": _instance,
    "GSR": _nothing,
}
