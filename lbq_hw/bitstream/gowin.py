"""Decodes the PLL, the pins and the block RAMs of a Gowin bitstream with Apycula's tables."""

from __future__ import annotations

import re
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbq_hw.bitstream import gowin_file
from lbq_hw.bitstream.base import Asked, BitsError, Decoded, Files, Netlist, UndecodedError
from lbq_hw.bitstream.gowin_file import File, Frame, Fuses
from lbq_hw.boards import Board
from lbq_hw.boards.clocks import Setting
from lbq_hw.tools import need

# From the vendor's data, as in openFPGALoader.
IDCODES = {"GW1N-9C": 0x1100481B, "GW2A-18C": 0x0000081B}
_UNDECODED = (
    "the IO standard, drive and pull of the pins, and whether an output is read too",
    "the rows of LUTs, flip-flops and wires, which are compared with those that the packer gives "
    "for the routed design",
)
_RAM_KINDS = ("SP", "SPX9", "SDP", "SDPB", "SDPX9", "SDPX9B", "DP", "DPB", "DPX9", "DPX9B", "pROM",
              "pROMX9")  # fmt: skip
_RAM_HEIGHT, _RAM_WIDTH = 256, 180
_ENABLED = "ENABLE"


def decode(files: Files, board: Board) -> Decoded:
    """Read a packed file and compare it with the packer's output for the routed design."""
    name = board.pack[board.pack.index("-d") + 1]
    if name not in IDCODES:
        raise UndecodedError(f"the device must be one of {', '.join(IDCODES)}, not {name}")
    chip = tables(name)
    lines = frame(chip)
    found = gowin_file.decode(files.packed.read_bytes(), lines)
    _compare(found, _packed_again(files, board, lines), chip)
    tiles = split(chip, found.fuses[: chip.height])
    return Decoded(
        device=name,
        idcode=found.idcode,
        bits=found.fuses.size,
        pll=pll(chip, tiles),
        pins={pin: pad.way for pin, pad in pads(chip, tiles, board).items()},
        memories=_memories(chip, found.fuses[chip.height :]),
        undecoded=_UNDECODED,
    )


def asked(files: Files, board: Board, setting: Setting | None) -> Asked:
    """The contents that the bitstream of a build must have."""
    netlist = Netlist.read(files.netlist)
    where = constraints(files.constraints)
    pins = {}
    ways = {"IBUF": ("I", "input"), "OBUF": ("O", "output"), "TBUF": ("O", "output"),
            "IOBUF": ("IO", "output")}  # fmt: skip
    for cell in netlist.of(*ways):
        port, way = ways[cell["type"]]
        pins[where[netlist.port_of[cell["connections"][port][0]]]] = way
    memories = []
    for cell in netlist.of(*_RAM_KINDS):
        rows = [cell["parameters"].get(f"INIT_RAM_{row:02X}", "") for row in range(64)]
        memories.append(b"".join(_with_parity(row) for row in rows))
    return Asked(
        idcode=IDCODES.get(board.pack[board.pack.index("-d") + 1]),
        pll=dict(setting.parameters) if setting is not None else {},
        pins=pins,
        memories=tuple(sorted(memory for memory in memories if any(memory))),
    )


def constraints(path: Path) -> dict[str, str]:
    """Pins by the names of their ports."""
    text = path.read_text(encoding="utf-8")
    return dict(re.findall(r'^IO_LOC "(\S+)" (\S+);', text, re.MULTILINE))


@cache
def tables(name: str) -> Any:
    """Apycula's tables of a device."""
    import importlib.resources

    from apycula import wirenames
    from apycula.chipdb import load_chipdb

    wirenames.select_wires(name)
    return load_chipdb(str(importlib.resources.files("apycula") / f"{name}.msgpack.xz"))


def frame(chip: Any) -> Frame:
    return Frame(
        header=tuple(map(bytes, chip.cmd_hdr)),
        footer=tuple(map(bytes, chip.cmd_ftr)),
        width=chip.width,
    )


def _packed_again(files: Files, board: Board, frame: Frame) -> File:
    """The file that the packer makes from the routed design now."""
    with tempfile.TemporaryDirectory() as name:
        again = Path(name) / "again.fs"
        command = [need("gowin_pack").path, *board.pack, "-o", str(again), str(files.placed)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise BitsError(f"the routed design cannot be packed again: {done.stderr.strip()}")
        return gowin_file.decode(again.read_bytes(), frame)


def _compare(found: File, routed: File, chip: Any) -> None:
    """BitsError, in one sentence, if a file differs from the packed routed design."""
    if found.fuses.shape != routed.fuses.shape:
        raise BitsError(
            f"the bitstream has {len(found.fuses):,} rows, but the routed design "
            f"{len(routed.fuses):,}"
        )
    wrong = np.argwhere(found.fuses != routed.fuses)
    if len(wrong):
        row, column = wrong[0]
        raise BitsError(f"fuse {column} of row {row} is not what the routed design is packed to")
    total = gowin_file.checksum(found.fuses[: chip.height])
    if found.checksum != total:
        raise BitsError(
            f"the checksum of the bitstream is 0x{found.checksum:04x}, but its fuses have "
            f"0x{total:04x}"
        )


def split(chip: Any, fuses: Fuses) -> dict[tuple[int, int], Fuses]:
    """The fuses of each tile, including tiles without fuses."""
    tiles, y = {}, 0
    for row in range(chip.rows):
        x = 0
        for column in range(chip.cols):
            tile = chip[row, column]
            tiles[row, column] = fuses[y : y + tile.height, x : x + tile.width]
            x += tile.width
        y += chip[row, 0].height
    return tiles


def settings(chip: Any, fuses: Fuses, kind: str, table: Any, names: Any) -> dict[str, int]:
    """Attributes of a block, decoded with a table of Apycula."""
    from apycula.gowin_unpack import parse_attrvals

    return parse_attrvals(fuses, chip.rev_logicinfo(kind), table, names, kind)


def pll(chip: Any, tiles: dict[tuple[int, int], Fuses]) -> dict[str, Any]:
    """Settings of the PLL that is on; its fuses are spread over neighbouring tiles."""
    from apycula import attrids

    values = {number: name for name, number in attrids.pll_attrvals.items()}
    settled: dict[tuple[int, bool], dict[str, int]] = {}  # by row and half
    places: dict[tuple[int, bool], str] = {}
    for (row, column), fuses in tiles.items():
        table = chip.shortval.get(chip[row, column].ttyp, {}).get("PLL")
        if table is None or not fuses.any():
            continue
        where = row, column > chip.cols // 2
        found = settings(chip, fuses, "PLL", table, attrids.pll_attrids)
        settled[where] = found | settled.get(where, {})
        places.setdefault(where, f"R{row + 1}C{column + 1}")
    for where, words in settled.items():
        if values.get(words.get("PWDEN", 0)) != _ENABLED:
            continue
        if not {"IDIV", "FDIV", "ODIV", "ICPSEL", "LPR"} <= words.keys():
            raise BitsError(
                "the PLL of the bitstream lacks a divider, its charge pump or its filter"
            )
        return {
            "kind": "rPLL",
            "place": places[where],
            "IDIV_SEL": words["IDIV"] - 1,
            "FBDIV_SEL": words["FDIV"] - 1,
            "ODIV_SEL": words["ODIV"],
            "ICPSEL": words["ICPSEL"],
            "LPR": words["LPR"],
            "INSEL": values.get(words.get("INSEL", 0), ""),
            "FBSEL": values.get(words.get("FBSEL", 0), ""),
        }
    return {}


@dataclass(frozen=True, kw_only=True)
class Pad:
    """A pad in use: `input` or `output`, its tile, and its name among the tile's cells."""

    way: str
    row: int
    column: int
    bel: str


def pads(chip: Any, tiles: dict[tuple[int, int], Fuses], board: Board) -> dict[str, Pad]:
    """Pads in use, by pin; a pad without a pin has its own name."""
    from apycula import attrids

    part = board.place[board.place.index("--device") + 1]
    package, variant, _ = chip.packages[part]
    pins = {pad: pin for pin, (pad, _) in chip.pinout[variant][package].items()}
    found = {}
    for (row, column), fuses in tiles.items():
        tile = chip[row, column]
        for bel, facts in tile.bels.items():
            if not re.fullmatch("IOB[AB]", bel):
                continue
            down, right = facts.fuse_cell_offset or (0, 0)
            kind = chip[row + down, column + right].ttyp
            table = chip.longval.get(kind, {}).get(bel)
            where = tiles[row + down, column + right] if (down or right) else fuses
            if table is None:
                continue
            words = settings(chip, where, "IOB", table, attrids.iob_attrids)
            if way := way_of(words):
                pad = _pad(chip, row, column, bel[-1])
                found[pins.get(pad, pad)] = Pad(way=way, row=row, column=column, bel=bel)
    return found


def way_of(words: dict[str, int]) -> str:
    """Whether the settings of a pad make it an `input`, an `output`, which may be read too, or
    none.
    """
    if "ODMUX" in words or "ODMUX_1" in words:
        return "output"
    return "input" if "PADDI" in words else ""


def _pad(chip: Any, row: int, column: int, letter: str) -> str:
    """Gowin's name for the pad of a tile at the edge."""
    if row == 0:
        return f"IOT{column + 1}{letter}"
    if row == chip.rows - 1:
        return f"IOB{column + 1}{letter}"
    return f"IO{'L' if column == 0 else 'R'}{row + 1}{letter}"


def _memories(chip: Any, fuses: Fuses) -> tuple[bytes, ...]:
    """Contents of the block RAMs that are not all 0."""
    blocks = contents(chip, fuses).values()
    return tuple(sorted(np.packbits(bits).tobytes() for bits in blocks if bits.any()))


def contents(chip: Any, fuses: Fuses) -> dict[tuple[int, int], Fuses]:
    """The bits of every block RAM by its place: 2,048 words of 9 bits. Without fuses, all are 0."""
    rows, columns = _ram_places(chip)
    found = {}
    for number, row in enumerate(sorted(chip.simplio_rows)):
        x = 0
        for column in range(chip.cols):
            if "BSRAM" in chip[row, column].bels:
                block = fuses[_RAM_HEIGHT * number : _RAM_HEIGHT * (number + 1), x : x + _RAM_WIDTH]
                bits = block[::-1][rows, columns] if len(block) else np.zeros(len(rows), np.uint8)
                found[row, column] = bits
            x += chip[0, column].width
    return found


def _ram_places(chip: Any) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Row and column of every bit of a block RAM among its fuses. The fuses are 64 rows of 288
    bits; the 9th and the 18th of each 18 bits are the parities of two bytes.
    """
    lines = chip.rev_logicinfo("BSRAM_INIT")
    quads = {0x30: 0xC0, 0x20: 0x40, 0x10: 0x80, 0x00: 0x00}
    rows, columns, address = [], [], -1
    for index in range(64 * 288):
        bit = index % 18
        address += bit not in (8, 17)
        rows.append(quads[address & 0x30] + (address >> 6 & 0x3F))
        columns.append(lines[bit * 4 + (address >> 12)][0] - 1)
    return np.array(rows), np.array(columns)


def _with_parity(row: str) -> bytes:
    """A row of a block RAM's contents in the form of `_memories`, with parity bits added if it has
    none.
    """
    digits = row.replace("x", "0")[::-1]
    if len(digits) <= 256:
        digits = digits.ljust(256, "0")
        digits = "".join(f"{digits[i : i + 8]}0" for i in range(0, 256, 8))
    bits = np.frombuffer(digits.ljust(288, "0").encode(), np.uint8) & 1
    return np.packbits(bits).tobytes()
