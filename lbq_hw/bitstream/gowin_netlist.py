"""Extracts the netlist of a Gowin bitstream with Apycula's tables.

The fuses determine which wires are joined, the tables of LUTs, the settings of flip-flops and block
RAMs, and which pads are in use. The netlist is traced backwards from output pads and from the PLL's
inputs to their drivers, so that unused logic is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from lbq_hw.bitstream import gowin, gowin_file
from lbq_hw.bitstream.base import BitsError, Chip, Files, MissingError, look_up
from lbq_hw.bitstream.gowin_wires import CONSTANTS, LOGIC, Wires
from lbq_hw.boards import Board

Place = tuple[int, int]
_LUTS, _CARRIES, _CARRY_END = 8, 6, 5
# Wide multiplexers from two narrower ones: by output, the inputs for select 0 and 1.
_WIDE = {0: ("F0", "F1"), 2: ("F2", "F3"), 4: ("F4", "F5"), 6: ("F6", "F7"), 1: ("OF2", "OF0"),
         5: ("OF6", "OF4"), 3: ("OF5", "OF1")}  # fmt: skip
_WIDEST = 7  # of two neighbouring tiles
_FLIP_FLOP_WORDS = {"MODE", "REGMODE", "SRMODE", "GSR", "LSRONMUX", "CEMUX_1", "CEMUX_CE",
                    "CLKMUX_CLK", "REG0_REGSET", "REG1_REGSET", "REG0_SD", "REG1_SD"}  # fmt: skip
_RAM_WIDTHS = {"1": 1, "2": 2, "4": 4, "9": 9, "": 18}
_RAM_MODES = {"": 0, "WT": 1, "RBW": 2}
_RAM_WORDS = {"GSR": "DISABLE", "MODE": "ENABLE"}
"""Settings that every block RAM in use has."""
_RAM_KNOWN = {*_RAM_WORDS, "OUTREG_ASYNC", "DBLWA", "DBLWB",
              *(f"CS{port}_{bit}" for port in "AB" for bit in range(3)),
              *(f"DP{port}_{word}" for port in "AB"
                for word in ("DATA_WIDTH", "MODE", "REGMODE", "BEHB", "BELB"))}  # fmt: skip
_RAM_INPUTS = {"AD{}": 14, "DI{}": 18, "BLKSEL{}": 3, "CLK{}": 0, "CE{}": 0, "OCE{}": 0,
               "RESET{}": 0, "WRE{}": 0}  # fmt: skip
_RAM_OUT = 18


def netlist(files: Files, board: Board, folder: Path) -> Chip:
    """The netlist of a packed file; ports have the names of the constraints."""
    del folder
    name = board.pack[board.pack.index("-d") + 1]
    if name not in gowin.IDCODES:
        raise MissingError(f"the netlist of a {name} is not known")
    chip = gowin.tables(name)
    fuses = gowin_file.decode(files.packed.read_bytes(), gowin.frame(chip)).fuses
    writer = _Writer(chip, fuses, gowin.constraints(files.constraints), board)
    return Chip(verilog=writer.text())


@dataclass(frozen=True, kw_only=True)
class _Pad:
    """A pad in use: its port, whether it is an output, and its wire from or to the logic."""

    port: str
    output: bool
    wire: str


class _Writer:
    """Traces wires back to their drivers, and writes each driver once."""

    def __init__(self, chip: Any, fuses: gowin_file.Fuses, where: dict[str, str], board: Board):
        self._chip = chip
        self._tiles = gowin.split(chip, fuses[: chip.height])
        self._wires = Wires(chip, self._tiles)
        self._contents = gowin.contents(chip, fuses[chip.height :])
        self._where, self._board = where, board
        self._declared: list[str] = []
        self._lines: list[str] = []
        self._known: dict[str, str] = {}
        self._pending: list[Any] = []

    def text(self) -> str:
        pads = list(self._pads())
        ports = [f"{'output' if pad.output else 'input'} {pad.port}" for pad in pads]
        self._known |= {self._wires.root(pad.wire): pad.port for pad in pads if not pad.output}
        pll = gowin.pll(self._chip, self._tiles)
        for port, wire in self._pll_wires(pll, "CLKOUT", "CLKOUTP", "LOCK").items():
            self._known[self._wires.root(wire)] = f"pll_{port}"
        for pad in pads:
            if pad.output:
                self._lines.append(f"assign {pad.port} = {self._source(pad.wire)};")
        if pll:
            self._pll(pll)
        while self._pending:
            self._pending.pop()()
        lines = [
            f"module chip ({', '.join(ports)});",
            *self._declared,
            *self._lines,
            "endmodule",
            "",
        ]
        return "\n".join(lines)

    def _source(self, wire: str) -> str:
        """The Verilog name of a wire's driver; 1 if the fuses join the wire to nothing."""
        root = self._wires.root(wire)
        name = self._find(root, set())
        if name is None and root in self._wires.joined:
            raise BitsError(f"the fuses join the wire {root} to a wire that nothing drives")
        return name or "1'b1"

    def _find(self, wire: str, seen: set[str]) -> str | None:
        if wire in CONSTANTS:
            return CONSTANTS[wire]
        if wire in self._known:
            return self._known[wire]
        if (made := self._cell(wire)) is not None:
            return made
        if wire in seen:
            return None
        found = {self._find(source, seen | {wire}) for source in self._wires.joined.get(wire, ())}
        found -= {None}
        if len(found) > 1:
            raise BitsError(f"the fuses join the wire {wire} to {len(found)} sources")
        name = found.pop() if found else None
        if name is not None:
            self._known[wire] = name
        return name

    # Cells

    def _cell(self, wire: str) -> str | None:
        """The output of a cell, which is written later; None if no cell drives the wire."""
        place = LOGIC.fullmatch(wire)
        if place is None:
            return self._ram_out(wire)
        row, column, kind, index = int(place[1]) - 1, int(place[2]) - 1, place[3], int(place[4])
        bels = self._chip[row, column].bels
        if f"LUT{index}" not in bels:
            return self._ram_out(wire)
        write = {"F": self._lut, "OF": self._wide, "CIN": self._carry}.get(kind)
        if kind == "Q" and f"DFF{index}" in bels:
            write = self._flip_flop
        if write is None:
            return None
        self._known[wire] = wire
        self._pending.append(lambda: write(row, column, index, wire))
        return wire

    def _table(self, row: int, column: int, index: int) -> int:
        """The table of a LUT; a set fuse is a 0."""
        fuses = self._tiles[row, column]
        flags = self._chip[row, column].bels[f"LUT{index}"].flags
        return sum(1 << bit for bit, places in flags.items() if not all(fuses[at] for at in places))

    def _inputs(self, row: int, column: int, index: int) -> list[str]:
        return [f"R{row + 1}C{column + 1}_{letter}{index}" for letter in "ABCD"]

    def _lookup(self, table: int, wires: list[str]) -> str:
        """The expression of a LUT, with only the inputs on which its table depends."""
        fixed = [self._wires.constant(wire) for wire in wires]
        for constants in (True, False):
            for index in reversed(range(len(wires))):
                low = [bit for bit in range(1 << len(wires)) if not bit >> index & 1]
                high = [bit | 1 << index for bit in low]
                if constants:
                    if fixed[index] is None:
                        continue
                    low = high if fixed[index] == CONSTANTS["VCC"] else low
                elif any(table >> a & 1 != table >> b & 1 for a, b in zip(low, high, strict=True)):
                    continue
                table = sum((table >> bit & 1) << at for at, bit in enumerate(low))
                del wires[index]
        return look_up(table, [self._source(wire) for wire in wires])

    def _is_carry(self, row: int, column: int, index: int) -> bool:
        from apycula import attrids

        if index >= _CARRIES or "LUT0" not in self._chip[row, column].bels:
            return False
        return self._slice(row, column, index).get("MODE") == attrids.cls_attrvals["ALU"]

    def _slice(self, row: int, column: int, index: int) -> dict[str, int]:
        """Settings that two LUTs and their flip-flops share."""
        from apycula import attrids

        chip = self._chip
        table = chip.shortval[chip[row, column].ttyp][f"CLS{index // 2}"]
        names = attrids.cls_attrids
        found = gowin.settings(chip, self._tiles[row, column], "SLICE", table, names)
        if found.get("MODE") == attrids.cls_attrvals["SSRAM"]:
            raise MissingError("memory in LUTs of a Gowin has no model yet")
        return found

    def _lut(self, row: int, column: int, index: int, out: str) -> None:
        table, wires = self._table(row, column, index), self._inputs(row, column, index)
        look = self._lookup(table, wires)
        if self._is_carry(row, column, index):
            carry = self._source(f"R{row + 1}C{column + 1}_CIN{index}")
            self._declared.append(f"wire {out}, {out}_p;")
            self._lines.append(f"assign {out}_p = {look}, {out} = {out}_p ^ {carry};")
        else:
            self._assign(out, look)

    def _assign(self, out: str, value: str) -> None:
        self._declared.append(f"wire {out};")
        self._lines.append(f"assign {out} = {value};")

    def _carry(self, row: int, column: int, index: int, out: str) -> None:
        """The carry into a LUT, from the previous LUT. If that LUT's output is 1, it passes its own
        carry on; otherwise its four lowest bits generate the carry from A and B.
        """
        row_, column_, before = (row, column, index - 1) if index else (row, column - 1, _CARRY_END)
        if column_ < 0 or not self._is_carry(row_, column_, before):
            self._assign(out, "1'b0")
            return
        wires = self._inputs(row_, column_, before)
        table = self._table(row_, column_, before)
        make, keep = self._lookup(table & 15, wires[:2]), self._lookup(table, wires)
        carry = self._source(f"R{row_ + 1}C{column_ + 1}_CIN{before}")
        self._declared.append(f"wire {out}, {out}_k, {out}_m;")
        self._lines.append(
            f"assign {out}_k = {keep}, {out}_m = {make}, {out} = {out}_k ? {carry} : {out}_m;"
        )

    def _wide(self, row: int, column: int, index: int, out: str) -> None:
        here = f"R{row + 1}C{column + 1}_"
        if index == _WIDEST:
            low, high = f"R{row + 1}C{column + 2}_OF3", f"{here}OF3"
        else:
            low, high = (here + wire for wire in _WIDE[index])
        select = self._source(f"{here}SEL{index}")
        self._assign(out, f"{select} ? {self._source(high)} : {self._source(low)}")

    def _flip_flop(self, row: int, column: int, index: int, out: str) -> None:
        from apycula import attrids

        values = {number: name for name, number in attrids.cls_attrvals.items()}
        words = {name: values.get(value) for name, value in self._slice(row, column, index).items()}
        if unknown := words.keys() - _FLIP_FLOP_WORDS:
            raise BitsError(f"a flip-flop has the unknown settings {', '.join(sorted(unknown))}")
        if words.get("REGMODE") == "LATCH":
            raise BitsError(f"{out} is a latch")
        here = f"R{row + 1}C{column + 1}_"
        data = self._source(
            here + (f"SEL{index}" if f"REG{index % 2}_SD" in words else f"F{index}")
        )
        clock, enable = (self._source(f"{here}{wire}{index // 2}") for wire in ("CLK", "CE"))
        value = "1'b0" if words.get(f"REG{index % 2}_REGSET") == "RESET" else "1'b1"
        edge = f"{'negedge' if words.get('CLKMUX_CLK') == 'INV' else 'posedge'} {clock}"
        reset = ""
        if words.get("LSRONMUX") == "LSRMUX":
            line = self._source(f"{here}LSR{index // 2}")
            edge += f" or posedge {line}" if words.get("SRMODE") == "ASYNC" else ""
            reset = f"if ({line}) {out} <= {value}; else "
        self._declared.append(f"reg {out} = {value};")
        self._lines.append(f"always @({edge}) {reset}if ({enable}) {out} <= {data};")

    # Block RAMs

    @cached_property
    def _rams(self) -> dict[str, tuple[Place, str]]:
        """The block RAM and the Verilog name of each wire that a block RAM drives."""
        found = {}
        for place in self._contents:
            bel = self._chip[place].bels["BSRAM"]
            for port in "AB":
                for bit in range(_RAM_OUT):
                    wire = self._wires.name(*place, bel.portmap[f"DO{port}{bit}"])
                    found[wire] = place, f"ram_{place[0]}_{place[1]}_{port}[{bit}]"
        return found

    def _ram_out(self, wire: str) -> str | None:
        if wire not in self._rams:
            return None
        place, name = self._rams[wire]
        label = f"ram_{place[0]}_{place[1]}"
        if label not in self._known:
            self._known[label] = label
            self._declared.append(f"wire [17:0] {label}_A, {label}_B;")
            self._pending.append(lambda: self._ram(place, label))
        self._known[wire] = name
        return name

    def _ram(self, place: Place, label: str) -> None:
        words = self._ram_words(place)
        contents = int.from_bytes(np.packbits(self._contents[place][::-1]).tobytes(), "big")
        values = [f".INIT(18432'h{contents:x})"]
        for port in "AB":
            width = (
                36 if f"DBLW{port}" in words else _RAM_WIDTHS[words.get(f"DP{port}_DATA_WIDTH", "")]
            )
            select = sum((f"CS{port}_{bit}" not in words) << bit for bit in range(3))
            values += [
                f".WIDTH_{port}({width})",
                f".MODE_{port}({_RAM_MODES[words.get(f'DP{port}_MODE', '')]})",
                f".REGISTERED_{port}({int(f'DP{port}_REGMODE' in words)})",
                f".SELECT_{port}({select})",
            ]
        portmap = self._chip[place].bels["BSRAM"].portmap
        ports = [f".DO{port}({label}_{port})" for port in "AB"]
        for port in "AB":
            for name, width in _RAM_INPUTS.items():
                name = name.format(port)
                if width:
                    wires = [self._source(self._wires.name(*place, portmap[f"{name}{bit}"]))
                             for bit in reversed(range(width))]  # fmt: skip
                    ports.append(f".{name}({{{', '.join(wires)}}})")
                else:
                    ports.append(
                        f".{name}({self._source(self._wires.name(*place, portmap[name]))})"
                    )
        self._lines.append(f"BSRAM #({', '.join(values)}) {label} ({', '.join(ports)});")

    def _ram_words(self, place: Place) -> dict[str, str]:
        """Settings of a block RAM, whose fuses are in three tiles."""
        from apycula import attrids

        chip = self._chip
        names = {number: name for name, number in attrids.bsram_attrids.items()}
        values = {number: name for name, number in attrids.bsram_attrvals.items()}
        lines = chip.rev_logicinfo("BSRAM")
        choices: dict[str, dict[str, set[tuple[int, int, int]]]] = {}
        for aside in range(3):
            kind = chip[place[0], place[1] + aside].ttyp
            for key, bits in chip.shortval[kind]["BSRAM_DP"].items():
                attribute, value = lines[next(number for number in key if number)]
                chosen = choices.setdefault(names[attribute], {})
                chosen.setdefault(values[value], set()).update((aside, *bit) for bit in bits)
        found = {}
        for name, chosen in choices.items():
            ones = {bit for bits in chosen.values() for bit in bits
                    if self._tiles[place[0], place[1] + bit[0]][bit[1:]]}  # fmt: skip
            match = [value for value, bits in chosen.items() if bits == ones]
            if ones and len(match) != 1:
                raise BitsError(f"the block RAM at {place} has no legal {name}")
            if ones:
                found[name] = match[0]
        wrong = found.keys() - _RAM_KNOWN
        if wrong or any(found.get(name) != value for name, value in _RAM_WORDS.items()):
            raise BitsError(f"the block RAM at {place} has settings that are not known: {found}")
        return found

    # Pads and the PLL

    def _pads(self) -> Iterator[_Pad]:
        ports = {pin: port for port, pin in self._where.items()}
        if any("__dq__" in port for port in self._where):  # it has the fuses of an output
            raise MissingError("a pin of a Gowin that is input and output has no model yet")
        for pin, pad in gowin.pads(self._chip, self._tiles, self._board).items():
            portmap = self._chip[pad.row, pad.column].bels[pad.bel].portmap
            output = pad.way == "output"
            wire = self._wires.name(pad.row, pad.column, portmap["I" if output else "O"])
            yield _Pad(port=ports.get(pin, pin), output=output, wire=wire)

    def _pll_wires(self, pll: dict[str, Any], *names: str) -> dict[str, str]:
        if not pll:
            return {}
        right = int(pll["place"].partition("C")[2]) > self._chip.cols // 2
        row, column = next(
            place
            for place in self._tiles
            if "RPLLA" in self._chip[place].bels and (place[1] > self._chip.cols // 2) == right
        )
        portmap = self._chip[row, column].bels["RPLLA"].portmap
        return {name: self._wires.name(row, column, portmap[name]) for name in names}

    def _pll(self, pll: dict[str, Any]) -> None:
        """Write the PLL; its input comes from a wire of the logic, or from its own pad."""
        wires = self._pll_wires(pll, "CLKIN", "RESET", "RESET_P")
        if pll["INSEL"] != "CLKIN1":
            raise MissingError(f"a PLL whose input is {pll['INSEL']} has no model yet")
        ports = [f".{name}({self._source(wire)})" for name, wire in wires.items()]
        ports += [f".{name}(pll_{name})" for name in ("CLKOUT", "CLKOUTP", "LOCK")]
        self._declared.append("wire pll_CLKOUT, pll_CLKOUTP, pll_LOCK;")
        self._lines.append(f"rPLL pll ({', '.join(ports)});")
