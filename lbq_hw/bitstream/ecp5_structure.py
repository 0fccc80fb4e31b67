"""Compares an ECP5's routed netlist with the configuration that was decoded from its bits.

`ecp5.decode` has compared the configuration with the bits, bit for bit. This module compares the
simulated netlist with the configuration: every configured arc belongs to a net and the other way
round, nets begin and end at the pins of their cells, and LUTs, flip-flops and block RAMs have the
settings of the netlist.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from lbq_hw.bitstream import ecp5, ecp5_tiles
from lbq_hw.bitstream.base import BitsError
from lbq_hw.bitstream.ecp5_file import File
from lbq_hw.bitstream.ecp5_tiles import Device

Cell = dict[str, Any]
_BEL = re.compile(r"X(\d+)/Y(\d+)/(\S+)")
_PIP = re.compile(r"X(\d+)/Y(\d+)/(-?\d+)_(-?\d+)_(\S+?)->(-?\d+)_(-?\d+)_(\S+)")
_LOGIC_BEL = re.compile(r"SLICE([A-D])\.(K|FF)([01])")
_INPUTS = "ABCD"
# Pins of a LUT and of a flip-flop, with their wires.
_LUT_PINS = {letter: f"{letter}{{index}}_SLICE" for letter in _INPUTS} | {"F": "F{index}_SLICE"}
_FLIP_FLOP_PINS = {"Q": "Q{index}_SLICE", "DI": "DI{index}_SLICE", "M": "M{index}_SLICE",
                   "CLK": "CLK{slice}_SLICE", "LSR": "LSR{slice}_SLICE",
                   "CE": "CE{slice}_SLICE"}  # fmt: skip
_CLOCK_TREE = re.compile(r"G_\w+")
"""Wires between the clock buffers and the columns, which have no names in a netlist."""


def compare(top: dict[str, Any], packed: Path, placed: Path) -> dict[str, int]:
    """How many items of each kind were compared; BitsError, in one sentence, if one differs."""
    found, device = ecp5.unpacked(packed)
    config = ecp5_tiles.read_config(placed.read_text(encoding="utf-8"))
    arcs = {(tile, arc) for tile, settings in config.tiles.items() for arc in settings.arcs}
    nets = _nets(top)
    counts = {"arcs": _compare_arcs(nets, arcs, device), "luts": 0, "flip_flops": 0, "rams": 0}
    for name, cell in top["cells"].items():
        place = _BEL.fullmatch(cell["attributes"].get("NEXTPNR_BEL", ""))
        if place is None:
            continue
        if cell["type"] == "DP16KD":
            _compare_ram(name, cell, found)
            counts["rams"] += 1
            continue
        bel = _LOGIC_BEL.fullmatch(place[3])
        if bel is None or cell["type"] not in ("TRELLIS_COMB", "TRELLIS_FF"):
            continue
        logic = _Logic(name, cell, (int(place[1]), int(place[2])), bel[1], int(bel[3]), nets)
        if cell["type"] == "TRELLIS_FF":
            logic.compare_flip_flop(found, device)
            counts["flip_flops"] += 1
        elif logic.mode in ("LOGIC", "CCU2", "DPRAM"):
            logic.compare_lut(found, device)
            counts["luts"] += 1
    return counts


def _nets(top: dict[str, Any]) -> dict[int, dict[str, str]]:
    """The wires of each net, each with the pip that drives it; the first wire has an empty pip."""
    nets: dict[int, dict[str, str]] = {}
    for net in top["netnames"].values():
        parts = net["attributes"].get("ROUTING", "").split(";")
        wires = dict(zip(parts[0::3], parts[1::3], strict=False))
        if wires:  # otherwise the net is unused
            nets.setdefault(net["bits"][0], {}).update(wires)
    return nets


def _relative(right: str, down: str, wire: str) -> str:
    """The name of a wire in the configuration of a tile."""
    x, y = int(right), int(down)
    vertical = f"N{-y}" if y < 0 else f"S{y}" if y else ""
    horizontal = f"E{x}" if x > 0 else f"W{-x}" if x else ""
    return f"{vertical}{horizontal}_{wire}" if vertical or horizontal else wire


def _compare_arcs(
    nets: dict[int, dict[str, str]], arcs: set[tuple[str, tuple[str, str]]], device: Device
) -> int:
    """Check that nets use only the arcs of the configuration, and all of them."""
    left = set(arcs)
    for wires in nets.values():
        for pip in filter(None, wires.values()):
            found = _PIP.fullmatch(pip)
            if found is None:
                raise BitsError(f"the routed design has a pip that is not understood: {pip}")
            x, y, *ends = found.groups()
            arc = _relative(*ends[3:]), _relative(*ends[:3])
            tiles = [tile for tile in device.places.get((int(y), int(x)), ())
                     if arc in device.kind(tile).arcs]  # fmt: skip
            used = {(tile, arc) for tile in tiles} & arcs
            if tiles and not used:
                raise BitsError(f"the wires of {pip} are not joined in the bits")
            left -= used
    for tile, (sink, source) in sorted(left):
        if not (_CLOCK_TREE.fullmatch(sink) and _CLOCK_TREE.fullmatch(source)):
            raise BitsError(f"{source} and {sink} of {tile} are joined, but by no net")
    return len(arcs)


def _compare_ram(name: str, cell: Cell, found: File) -> None:
    number = int(cell["attributes"]["WID"], 2)
    words = found.rams.get(number)
    if words is None or words.tobytes() != ecp5.contents(cell):
        raise BitsError(f"the contents of {name!r} are not those of block RAM {number}")


@dataclass
class _Logic:
    """A LUT or a flip-flop at its place: column, row, slice, and index in the slice (0 or 1)."""

    name: str
    cell: Cell
    place: tuple[int, int]
    letter: str
    half: int
    nets: dict[int, dict[str, str]]

    @property
    def tile(self) -> str:
        return f"R{self.place[1]}C{self.place[0]}:PLC2"

    @property
    def mode(self) -> str:
        return self._text("MODE", "LOGIC")

    def compare_flip_flop(self, found: File, device: Device) -> None:
        self._compare_pins(_FLIP_FLOP_PINS)
        for word, default in (("REGSET", "RESET"), ("SD", "0")):
            setting = f"SLICE{self.letter}.REG{self.half}.{word}"
            value = self._text(word, default)
            if device.enum(found.frames, self.tile, setting) != {value}:
                raise BitsError(f"the flip-flop {self.name!r} lacks {setting} = {value}")

    def compare_lut(self, found: File, device: Device) -> None:
        self._compare_pins(_LUT_PINS)
        setting = f"SLICE{self.letter}.MODE"
        if device.enum(found.frames, self.tile, setting) != {self.mode}:
            raise BitsError(f"the LUT {self.name!r} lacks {setting} = {self.mode}")
        label = f"SLICE{self.letter}.K{self.half}"
        table = device.word(found.frames, (self.tile,), f"{label}.INIT")
        if table is None or not self._same_table(table):
            raise BitsError(f"the LUT {self.name!r} is not in the bits at {self.tile}, {label}")

    @cached_property
    def _index(self) -> dict[str, int]:
        number = "ABCD".index(self.letter)
        return {"index": 2 * number + self.half, "slice": number}

    def _text(self, name: str, default: str) -> str:
        return str(self.cell["parameters"].get(name, default)).strip()

    def _wire(self, pattern: str) -> str:
        return f"X{self.place[0]}/Y{self.place[1]}/{pattern.format(**self._index)}"

    def _net(self, pin: str) -> dict[str, str] | None:
        bits = self.cell["connections"].get(pin) or []
        return self.nets.get(bits[0]) if bits else None

    def _compare_pins(self, pins: dict[str, str]) -> None:
        """Check that every net of the cell reaches the wire of its pin."""
        for pin, pattern in pins.items():
            net = self._net(pin)
            if net is not None and self._wire(pattern) not in net:
                raise BitsError(f"the net at {pin} of {self.name!r} does not lead there")

    def _same_table(self, table: int) -> bool:
        """Whether a table equals this LUT's table; the router may have permuted the inputs.

        An unconnected input is high. In a carry, the four lowest bits are a table of two inputs,
        whose output only matters where the whole table gives 0.
        """
        wanted = int(self.cell["parameters"]["INITVAL"].replace("x", "0"), 2)
        if self.mode == "DPRAM":
            return table == wanted
        led = {}
        for letter in _INPUTS:
            if (net := self._net(letter)) is not None:
                pip = net[self._wire(_LUT_PINS[letter])]
                led[letter] = pip.partition("_0_")[2][0] if pip else letter
        fixed = {letter: int(self._text(f"{letter}MUX", "1") != "0") for letter in _INPUTS}
        used = sorted(set(led.values()))
        kept = self.mode == "CCU2" and self._text("CCU2_INJECT1", "NO") != "YES"
        for number in range(1 << len(used)):
            physical = dict.fromkeys(_INPUTS, 1) | {
                letter: number >> bit & 1 for bit, letter in enumerate(used)
            }
            logical = {letter: physical[led[letter]] if letter in led else fixed[letter]
                       for letter in _INPUTS}  # fmt: skip
            at, asked = (sum(values[letter] << bit for bit, letter in enumerate(_INPUTS))
                         for values in (physical, logical))  # fmt: skip
            if table >> at & 1 != wanted >> asked & 1:
                return False
            if (
                kept
                and not wanted >> asked & 1
                and table >> (at & 3) & 1 != wanted >> (asked & 3) & 1
            ):
                return False
        return True
