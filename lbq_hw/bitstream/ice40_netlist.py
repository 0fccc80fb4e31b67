"""Extracts the netlist of an iCE40 bitstream with Debian's fpga-icestorm.

icebox_vlog writes LUTs, flip-flops, block RAMs, the PLL and the pins as Verilog. It leaves out the
single-port RAMs of an UltraPlus and does not connect the pad of a PLL: this module adds both, from
icebox's own tables.
"""

from __future__ import annotations

import importlib
import re
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from types import ModuleType

from lbq_hw.bitstream import ice40, ice40_file
from lbq_hw.bitstream.base import BitsError, Chip, Files, MissingError
from lbq_hw.bitstream.ice40_file import Image
from lbq_hw.boards import Board

_ICEBOX = Path("/usr/share/fpga-icestorm/python")
_INSTALL = "sudo apt install fpga-icestorm"
_LOW = "1'b0"
_WIRE = re.compile(r"(?:reg|wire) (n\d+)")
_DROPPED = re.compile(r"//|wire (?!n\d+;)\w+;")  # comments, and ports declared twice
_PLACE = re.compile(r"// \((\d+), (\d+), '([^']+)'\)")
_PACKAGE_PIN = re.compile(r"\.PACKAGEPIN\(\w+\)")
_BUSES = {"ADDRESS": 14, "DATAIN": 16, "MASKWREN": 4, "DATAOUT": 16}
_BITS = ("WREN", "CHIPSELECT", "CLOCK", "STANDBY", "SLEEP", "POWEROFF")


def netlist(files: Files, board: Board, folder: Path) -> Chip:
    """The netlist of a packed file; ports have the names of the constraints."""
    vlog, unpack = shutil.which("icebox_vlog"), shutil.which("iceunpack")
    if vlog is None or unpack is None or not (_ICEBOX / "icebox.py").is_file():
        raise MissingError(f"icebox is missing: {_INSTALL}")
    image = ice40_file.decode(files.packed.read_bytes())
    source = folder / "unpacked.asc"
    _run([unpack, str(files.packed), str(source)])
    ice40_file.compare(image, ice40_file.read_text(source.read_text(encoding="utf-8")))
    text = _run([vlog, "-l", "-p", str(files.constraints), str(source)])
    rams = _single_ports(image, _nets(text)) if image.die.name == "5k" else ""
    lines = [line for line in text.splitlines() if not _DROPPED.match(line)]
    end = lines.index("endmodule")
    text = "\n".join([*lines[:end], rams, *lines[end:]]) + "\n"
    return Chip(verilog=_with_pll_pad(text, image, files, board))


def _run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BitsError(f"{Path(command[0]).name} cannot read it: {done.stderr.strip()[-300:]}")
    return done.stdout


def _nets(text: str) -> dict[tuple[int, int, str], str]:
    """The wire of every segment: icebox_vlog lists the segments after each wire."""
    found: dict[tuple[int, int, str], str] = {}
    wire = ""
    for line in text.splitlines():
        if declared := _WIRE.match(line):
            wire = declared[1]
        elif place := _PLACE.fullmatch(line):
            found[int(place[1]), int(place[2]), place[3]] = wire
    return found


def _single_ports(image: Image, nets: dict[tuple[int, int, str], str]) -> str:
    """Instances of the single-port RAMs that are on."""
    icebox = _icebox()
    bits = {entry[2]: entry[0][0] for entry in icebox.ipcon_5k_db if entry[1] == "IpConfig"}
    instances = []
    for place, ports in icebox.spram_db["5k"].items():
        x, y, name = ports["SPRAM_EN"]
        row, column = map(int, re.findall(r"\d+", bits[name]))
        if not image.tiles[x, y][row, column]:
            continue
        pins = []
        for bus, width in _BUSES.items():
            none = "" if bus == "DATAOUT" else "1'b0"
            wires = [nets.get(ports[f"{bus}_{index}"], none) for index in range(width)]
            for index, wire in enumerate(wires):
                if not wire:
                    wires[index] = f"open_{'_'.join(map(str, place))}_{index}"
                    instances.append(f"wire {wires[index]};")
            pins.append(f".{bus}({{{', '.join(reversed(wires))}}})")
        pins += [f".{name}({nets.get(ports[name], _LOW)})" for name in _BITS]
        label = "_".join(map(str, place))
        instances.append(f"SB_SPRAM256KA spram_{label} (\n  {', '.join(pins)}\n);")
    return "\n".join(instances)


def _with_pll_pad(text: str, image: Image, files: Files, board: Board) -> str:
    """Connects the pin of a PLL that has its own pad, which icebox_vlog leaves open."""
    pad = ice40.pll_pad(image, board)
    if pad is None:
        return text
    ports = {pin: port for port, pin in ice40.constraints(files.constraints).items()}
    text, count = _PACKAGE_PIN.subn(f".PACKAGEPIN({ports[pad]})", text)
    if count != 1:
        raise BitsError(f"the netlist has {count} PLLs with a pad of their own, not 1")
    return text


def _icebox() -> ModuleType:
    """icebox's tables from the Debian package."""
    sys.path.insert(0, str(_ICEBOX))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python warns about its string literals
            return importlib.import_module("icebox")
    finally:
        sys.path.remove(str(_ICEBOX))
