"""An ECP5's routed netlist as Verilog.

No tool extracts a netlist from an ECP5's bits. nextpnr writes the routed design as JSON, together
with its configuration. `ecp5.decode` compares this configuration with the bits, bit for bit, and
`ecp5_structure.compare` compares the netlist with the configuration. This module turns logic into
expressions and other cells into instances. An unconnected input is high.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lbq_hw.bitstream import ecp5_structure
from lbq_hw.bitstream.base import BitsError, Chip, Files, MissingError, look_up
from lbq_hw.boards import Board

Cell = dict[str, Any]
_BUSES = re.compile(r"([A-Z]+?)(\d+)")


def netlist(files: Files, board: Board, folder: Path) -> Chip:
    """The netlist of a routed design, after comparing it with the bits.

    A bidirectional pin has three ports: the driven value (``_o``), the tristate control (``_t``)
    and the level of the pin (``_i``).
    """
    del board, folder
    assert files.routed is not None
    top = json.loads(files.routed.read_text(encoding="utf-8"))["modules"]["top"]
    compared = ecp5_structure.compare(top, files.packed, files.placed)
    pins, body = _ports(top), []
    for number, cell in enumerate(top["cells"].values()):
        body += _CELLS.get(cell["type"], _instance)(cell, f"u{number}", pins)
    ports = ", ".join(sorted(_declared(top, pins)))
    wires = {bit for cell in top["cells"].values() for net in cell["connections"].values()
             for bit in net if isinstance(bit, int)}  # fmt: skip
    named = [f"wire n{bit};" for bit in sorted(wires - _registers(top))]
    text = "\n".join([f"module chip ({ports});", *named, *body, "endmodule", ""])
    return Chip(verilog=text, compared=compared)


def _ports(top: dict[str, Any]) -> dict[int, str]:
    """Names of pins by the netlist bits that connect to them."""
    found = {}
    for name, port in top["ports"].items():
        for index, bit in enumerate(port["bits"]):
            full = name if len(port["bits"]) == 1 else f"{name}_{index}"
            found[bit] = full.replace("[", "_").replace("]", "")
    return found


def _declared(top: dict[str, Any], pins: dict[int, str]) -> Iterator[str]:
    for cell in top["cells"].values():
        if cell["type"] == "TRELLIS_IO":
            pin = pins[cell["connections"]["B"][0]]
            match cell["parameters"]["DIR"]:
                case "INPUT":
                    yield f"input {pin}"
                case "OUTPUT":
                    yield f"output {pin}"
                case _:
                    yield from (f"output {pin}_o", f"output {pin}_t", f"input {pin}_i")


def _registers(top: dict[str, Any]) -> set[int]:
    return {
        cell["connections"]["Q"][0]
        for cell in top["cells"].values()
        if cell["type"] == "TRELLIS_FF" and cell["connections"].get("Q")
    }


def _text(cell: Cell, name: str, default: str) -> str:
    """A text parameter; nextpnr appends a space to a text that looks like a number."""
    return str(cell["parameters"].get(name, default)).strip()


def _input(cell: Cell, port: str, none: str = "1'b1") -> str:
    """The signal at an input, after its multiplexer."""
    bits = cell["connections"].get(port) or []
    wire = f"n{bits[0]}" if bits else none
    match _text(cell, f"{port}MUX", port):
        case "0":
            return "1'b0"
        case "1":
            return "1'b1"
        case "INV":
            return f"~{wire}"
        case _:
            return wire


def _output(cell: Cell, port: str) -> str | None:
    bits = cell["connections"].get(port) or []
    return f"n{bits[0]}" if bits else None


def _number(cell: Cell, name: str) -> int:
    return int(cell["parameters"].get(name, "0").replace("x", "0"), 2)


def _comb(cell: Cell, label: str, _pins: dict[int, str]) -> Iterator[str]:
    """A LUT: with its carry, as part of a wider LUT, or as memory."""
    mode, init = _text(cell, "MODE", "LOGIC"), _number(cell, "INITVAL")
    a, b, c, d = (_input(cell, port) for port in "ABCD")
    function = f"{label}_f"
    yield f"wire {function};"
    if mode == "DPRAM":
        # Bits 0 to 3 of the address connect to the inputs D, B, C and A.
        places = [(at & 1) << 3 | at & 6 | at >> 3 for at in range(16)]
        contents = sum((init >> place & 1) << at for at, place in enumerate(places))
        yield f"reg [15:0] {label}_ram = 16'h{contents:04x};"
        address = ", ".join(_input(cell, f"WAD{index}") for index in (3, 2, 1, 0))
        clock, enable = _input(cell, "WCK"), _input(cell, "WRE")
        yield (
            f"always @(posedge {clock}) if ({enable}) {label}_ram[{{{address}}}] <= "
            f"{_input(cell, 'WD')};"
        )
        yield f"assign {function} = {label}_ram[{{{a}, {c}, {b}, {d}}}];"
    elif mode in ("LOGIC", "CCU2"):
        look = look_up(init, [a, b, c, d])
        if mode == "LOGIC":
            yield f"assign {function} = {look};"
        else:
            carry = _input(cell, "FCI", "1'b0")
            inject = _text(cell, "CCU2_INJECT1", "NO") == "YES"
            yield f"wire {label}_4 = {look}, {label}_2 = {look_up(init & 15, [a, b])};"
            yield f"assign {function} = {label}_4 ^ {_LOW if inject else carry};"
            if out := _output(cell, "FCO"):
                kept = _LOW if inject else f"{label}_2"
                yield f"assign {out} = {label}_4 ? {carry} : {kept};"
    elif not mode.startswith("RAMW"):
        raise BitsError(f"a LUT of the routed design has the unknown mode {mode}")
    if out := _output(cell, "F"):
        yield f"assign {out} = {function};"
    if out := _output(cell, "OFX"):
        select = _input(cell, "M")
        if cell["connections"].get("FXA") or cell["connections"].get("FXB"):
            one, other = _input(cell, "FXB"), _input(cell, "FXA")
        else:
            one, other = _input(cell, "F1"), function
        yield f"assign {out} = {select} ? {one} : {other};"


_LOW = "1'b0"


def _flip_flop(cell: Cell, _label: str, _pins: dict[int, str]) -> Iterator[str]:
    out = _output(cell, "Q")
    if out is None:
        return
    value = "1'b1" if _text(cell, "REGSET", "RESET") == "SET" else _LOW
    data = _input(cell, "DI" if _text(cell, "SD", "0") == "1" else "M")
    clock, enable = _input(cell, "CLK"), _input(cell, "CE")
    edge = f"negedge {clock[1:]}" if clock.startswith("~") else f"posedge {clock}"
    yield f"reg {out} = {value};"
    if not cell["connections"].get("LSR"):
        yield f"always @({edge}) if ({enable}) {out} <= {data};"
        return
    reset = _input(cell, "LSR")
    if _text(cell, "SRMODE", "LSR_OVER_CE") == "ASYNC":
        edge += f" or negedge {reset[1:]}" if reset.startswith("~") else f" or posedge {reset}"
    yield f"always @({edge}) if ({reset}) {out} <= {value}; else if ({enable}) {out} <= {data};"


def _write_port(cell: Cell, _label: str, _pins: dict[int, str]) -> Iterator[str]:
    """The cell that distributes address and data to memory in LUTs."""
    for out, port in _WRITE_PORT.items():
        if wire := _output(cell, out):
            yield f"assign {wire} = {_input(cell, port)};"


_WRITE_PORT = {
    "WADO0": "D0", "WADO1": "B0", "WADO2": "C0", "WADO3": "A0",
    "WDO0": "C1", "WDO1": "A1", "WDO2": "D1", "WDO3": "B1",
}  # fmt: skip


def _pad(cell: Cell, _label: str, pins: dict[int, str]) -> Iterator[str]:
    pin, way = pins[cell["connections"]["B"][0]], _text(cell, "DIR", "INPUT")
    both = way == "BIDIR"
    # If a pad has a register beside it, the register drives the pad.
    data = "IOLDO" if cell["connections"].get("IOLDO") else "I"
    free = "IOLTO" if cell["connections"].get("IOLTO") else "T"
    if both:
        yield f"assign {pin}_o = {_input(cell, data)};"
        yield f"assign {pin}_t = {_input(cell, free)};"
    elif way == "OUTPUT":
        # A released pad has an unknown level.
        yield f"assign {pin} = {_input(cell, free, _LOW)} ? 1'bx : {_input(cell, data)};"
    out = _output(cell, "O")
    if out is not None and way != "OUTPUT":
        yield f"assign {out} = {pin}{'_i' if both else ''};"


def _registers_at_pad(cell: Cell, label: str, _pins: dict[int, str]) -> Iterator[str]:
    """Registers beside a pad: for the input, the output and the tristate control."""
    mode = _text(cell, "MODE", "NONE")
    if mode not in ("IREG_OREG", _DOUBLE):
        raise MissingError(f"a register at a pad with the mode {mode} has no model yet")
    clock = _input(cell, "CLK")
    into, out = (
        f"~{clock}" if _text(cell, name, "CLK") == "INV" else clock
        for name in ("CLKIMUX", "CLKOMUX")
    )
    clear_into, clear_out = (
        _LOW if _text(cell, name, "0") == "0" else _input(cell, "LSR", _LOW)
        for name in ("LSRIMUX", "LSROMUX")
    )
    first, second = _output(cell, "RXDATA0"), _output(cell, "RXDATA1")
    if first is not None or second is not None:
        ports = f".RST({clear_into}), .Q0({first or ''}), .Q1({second or ''})"
        yield f"IDDRX1F {label}_i (.SCLK({into}), .D({_input(cell, 'PADDI')}), {ports});"
    if (wire := _output(cell, "INFF")) is not None:
        control = f".clk({into}), .clear({clear_into})"
        yield _pad_register(cell, f"{label}_f", control, ("CEIMUX", "PADDI", "FF"), wire)
    control = f".clk({out}), .clear({clear_out})"
    if (wire := _output(cell, "IOLDO")) is not None:
        if _text(cell, "OUTREG.OUTREGMODE", "") == "FF":
            yield _pad_register(cell, f"{label}_o", control, ("CEOMUX", "TXDATA0", "OUTREG"), wire)
        elif mode == _DOUBLE:
            data = f".D0({_input(cell, 'TXDATA0')}), .D1({_input(cell, 'TXDATA1')})"
            yield f"ODDRX1F {label}_o (.SCLK({out}), .RST({clear_out}), {data}, .Q({wire}));"
        else:
            raise MissingError("an output at a pad without a register has no model yet")
    if (wire := _output(cell, "IOLTO")) is not None:
        yield _pad_register(cell, f"{label}_t", control, ("CEOMUX", "TSDATA0", "TSREG"), wire)


def _pad_register(
    cell: Cell, label: str, control: str, names: tuple[str, str, str], out: str
) -> str:
    """A register beside a pad, from the names of its enable setting, its data and its settings."""
    enable, data, prefix = names
    start = int(_text(cell, f"{prefix}.REGSET", "RESET") == "SET")
    on = "1'b1" if _text(cell, enable, "1") == "1" else _input(cell, "CE")
    ports = f"{control}, .enable({on}), .d({_input(cell, data)}), .q({out})"
    return f"pad_register #(.START({start})) {label} ({ports});"


_DOUBLE = "IDDRX1_ODDRX1"


def _buffer(cell: Cell, label: str, _pins: dict[int, str]) -> Iterator[str]:
    """A clock buffer; if its enable is used, it passes the clock while the enable is high."""
    out, clock = _output(cell, "CLKO"), _input(cell, "CLKI")
    if not cell["connections"].get("CE"):
        yield f"assign {out} = {clock};"
    else:
        yield f"DCCA {label} (.CLKI({clock}), .CE({_input(cell, 'CE')}), .CLKO({out}));"


def _instance(cell: Cell, label: str, _pins: dict[int, str]) -> Iterator[str]:
    """An instance of a cell that has a model; numbered ports become buses."""
    if cell["type"] not in _MODELLED:
        raise MissingError(f"the cell {cell['type']} of the routed design has no model yet")
    buses: dict[str, dict[int, str]] = {}
    ports = []
    for port, way in cell["port_directions"].items():
        value = _input(cell, port) if way == "input" else _output(cell, port)
        if cell["type"] in _BUSED and (numbered := _BUSES.fullmatch(port)):
            if value is None:
                value = f"{label}_{port}"
                yield f"wire {value};"
            buses.setdefault(numbered[1], {})[int(numbered[2])] = value
        elif value is not None:
            ports.append(f".{port}({value})")
    for bus, wires in buses.items():
        bits = ", ".join(wires[index] for index in sorted(wires, reverse=True))
        ports.append(f".{bus}({{{bits}}})")
    values = []
    for name, value in cell["parameters"].items():
        if name.endswith("MUX") or name.startswith("INITVAL_"):
            continue
        text = str(value)
        binary = len(text) > 1 and set(text) <= set("01x")
        shown = f"{len(text)}'b{text.replace('x', '0')}" if binary else f'"{text.strip()}"'
        values.append(f".{name}({shown})")
    if cell["type"] == "DP16KD":
        rows = (_number(cell, f"INITVAL_{row:02X}") for row in range(_ROWS))
        contents = sum(row << _ROW_BITS * number for number, row in enumerate(rows))
        values.append(f".INIT({_ROWS * _ROW_BITS}'h{contents:x})")
    yield f"{cell['type']} #({', '.join(values)}) {label} ({', '.join(ports)});"


_MODELLED = ("DP16KD", "EHXPLLL")
_BUSED = ("DP16KD",)
_ROWS, _ROW_BITS = 64, 320  # of a block RAM's contents
_CELLS = {
    "TRELLIS_COMB": _comb,
    "TRELLIS_FF": _flip_flop,
    "TRELLIS_RAMW": _write_port,
    "TRELLIS_IO": _pad,
    "IOLOGIC": _registers_at_pad,
    "SIOLOGIC": _registers_at_pad,
    "DCCA": _buffer,
}
