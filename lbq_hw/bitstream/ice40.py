"""Decodes the PLL, the pins and the block RAMs of an iCE40 bitstream.

The positions of the bits come from Project IceStorm (icebox.py); ``ice40_pins.json`` has the pins
of the packages.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from lbq_hw.bitstream import ice40_file
from lbq_hw.bitstream.base import Asked, BitsError, Decoded, Files, Netlist, UndecodedError, number
from lbq_hw.bitstream.ice40_file import Image
from lbq_hw.boards import Board
from lbq_hw.boards.clocks import Setting

_PINS = Path(__file__).with_name("ice40_pins.json")
_PLLS = {"5k": ((12, 31),), "8k": ((16, 0), (16, 33))}
# Bits 1 to 9 of a PLL in one of its tiles: row, column.
_CONFIG = ((0, 2), (0, 3), (3, 3), (2, 2), (2, 3), (5, 3), (4, 2), (4, 3), (7, 3))
# Fields of a PLL, lowest bit first: tile relative to the PLL's, bit.
_FIELDS = {
    "PLLTYPE": ((0, 5), (2, 1), (2, 3)),
    "FEEDBACK_PATH": ((2, 5), (-1, 9), (0, 1)),
    "PLLOUT_SELECT": ((0, 6), (0, 7)),
    "DIVR": ((-2, 1), (-2, 2), (-2, 3), (-2, 4)),
    "DIVF": ((-2, 5), (-2, 6), (-2, 7), (-2, 8), (-2, 9), (-1, 1), (-1, 2)),
    "DIVQ": ((-1, 3), (-1, 4), (-1, 5)),
    "FILTER_RANGE": ((-1, 6), (-1, 7), (-1, 8)),
}
_PLL_KINDS = {2: "SB_PLL40_PAD", 3: "SB_PLL40_CORE"}
_PATHS = {0: "DELAY", 1: "SIMPLE", 2: "PHASE_AND_DELAY", 6: "EXTERNAL"}
# Bits of the two pads of an IO tile: the type, lowest bit first; input enable; no pull-up.
_TYPE = (
    ((3, 17), (3, 16), (0, 17), (0, 16), (4, 16), (4, 17)),
    ((13, 17), (13, 16), (10, 17), (10, 16), (14, 16), (14, 17)),
)
_INPUT_ENABLE = ((9, 3), (6, 3))
_NO_PULL = ((6, 2), (1, 3))
_INPUT = "PIN_TYPE 000001"


def decode(files: Files, board: Board) -> Decoded:
    """Read a packed file and compare it with what the router wrote."""
    routed = ice40_file.read_text(files.placed.read_text(encoding="utf-8"))
    image = ice40_file.decode(files.packed.read_bytes())
    ice40_file.compare(image, routed)
    pll, pad = _pll(image)
    return Decoded(
        device=f"iCE40 {image.die.name}",
        idcode=None,
        bits=image.bits,
        pll=pll,
        pins=_pins(image, board, pad if pll.get("kind") == "SB_PLL40_CORE" else None),
        memories=tuple(sorted(ram.tobytes() for ram in image.rams.values() if ram.any())),
        undecoded=("the IDCODE, which the format of the iCE40 does not have",),
    )


def asked(files: Files, board: Board, setting: Setting | None) -> Asked:
    """The contents that the bitstream of a build must have."""
    del board
    netlist = Netlist.read(files.netlist)
    where = constraints(files.constraints)
    pins = {}
    for cell in netlist.of("SB_IO", "SB_GB_IO"):
        pin = where[netlist.port_of[cell["connections"]["PACKAGE_PIN"][0]]]
        kind = cell["parameters"]["PIN_TYPE"][-6:]
        pins[pin] = _function(kind, bool(number(cell["parameters"].get("PULLUP", "0"))))
    pll = {}
    for cell in netlist.of("SB_PLL40_PAD", "SB_PLL40_CORE"):
        pll = {"kind": cell["type"], "FEEDBACK_PATH": "SIMPLE", **(setting or _NONE).parameters}
        if cell["type"] == "SB_PLL40_PAD":
            pad = netlist.port_of[cell["connections"]["PACKAGEPIN"][0]]
            pins[where[pad]] = _function(_INPUT[-6:], pull_up=False)
    memories = []
    for cell in netlist.of("SB_RAM40_4K", "SB_RAM40_4KNR", "SB_RAM40_4KNW", "SB_RAM40_4KNRNW"):
        rows = [number(cell["parameters"].get(f"INIT_{row:X}", "0")) for row in range(16)]
        memories.append(b"".join(row.to_bytes(32, "little") for row in rows))
    return Asked(
        idcode=None,
        pll=pll,
        pins=pins,
        memories=tuple(sorted(memory for memory in memories if any(memory))),
    )


_NONE = Setting(pll="", input_hz=0, output_hz=0, parameters={})


def constraints(path: Path) -> dict[str, str]:
    """Pins by port name."""
    lines = (line.split() for line in path.read_text(encoding="utf-8").splitlines())
    return {words[-2]: words[-1] for words in lines if words and words[0] == "set_io"}


def _pll(image: Image) -> tuple[dict[str, Any], tuple[int, int, int] | None]:
    """Settings of the PLL that is on, and the pad that its output occupies."""
    for x, y in _PLLS[image.die.name]:
        words: dict[str, Any] = {}
        for name, bits in _FIELDS.items():
            found = [int(image.tiles[x + dx, y][_CONFIG[bit - 1]]) for dx, bit in bits]
            words[name] = sum(value << index for index, value in enumerate(found))
        if kind := words.pop("PLLTYPE"):
            if kind not in _PLL_KINDS or words["FEEDBACK_PATH"] not in _PATHS:
                raise BitsError(f"the PLL at {x} {y} of the bitstream is of an unknown kind")
            words["FEEDBACK_PATH"] = _PATHS[words["FEEDBACK_PATH"]]
            return {"kind": _PLL_KINDS[kind], "place": f"{x} {y}", **words}, (x, y, 1)
    return {}, None


@cache
def _packages() -> dict[str, dict[str, list[list[int]]]]:
    found = json.loads(_PINS.read_text(encoding="utf-8"))
    return {name: pins for name, pins in found.items() if name != "origin"}


def _pins(image: Image, board: Board, taken: tuple[int, int, int] | None) -> dict[str, str]:
    """Pads in use, by pin; `taken` is a pad that only serves the output of a PLL."""
    name = f"{image.die.name}-{_package(board)}"
    if name not in _packages():
        raise UndecodedError(f"the package must be one of {', '.join(_packages())}, not {name}")
    pins = {}
    for pin, ((x, y, pad), (enable_x, enable_y, enable_pad)) in _packages()[name].items():
        bits = [image.tiles[x, y][place] for place in _TYPE[pad]]
        kind = "".join(str(bit) for bit in reversed(bits))
        if kind == "000000" or (x, y, pad) == taken:
            continue
        enables = image.tiles[enable_x, enable_y]
        reads = bool(enables[_INPUT_ENABLE[enable_pad]])
        pins[pin] = _function(kind, pull_up=not enables[_NO_PULL[enable_pad]], reads=reads)
    return pins


def pll_pad(image: Image, board: Board) -> str | None:
    """The input pin of the PLL that is on, if the PLL has its own pad."""
    pll, place = _pll(image)
    if pll.get("kind") != "SB_PLL40_PAD":
        return None
    pads = _packages()[f"{image.die.name}-{_package(board)}"]
    return next(pin for pin, (pad, _) in pads.items() if tuple(pad) == place)


def _package(board: Board) -> str:
    """IceStorm's name of the package."""
    name = board.place[board.place.index("--package") + 1]
    return f"{name}:4k" if "--hx4k" in board.place or "--lp4k" in board.place else name


def _function(kind: str, pull_up: bool, reads: bool | None = None) -> str:
    """The function of a pad; `reads`: whether its input is on, which is only told if it differs
    from what the type demands.
    """
    demanded = kind.endswith("01") and kind[:4] == "0000"
    on = "" if reads is None or reads == demanded else f", input {'on' if reads else 'off'}"
    way = "input" if demanded else "output"
    return f"{way} (PIN_TYPE {kind}{', pull-up' if pull_up else ''}{on})"
