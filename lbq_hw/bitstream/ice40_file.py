"""Bitstreams of the iCE40: from the bytes to the bits of each tile, and back.

Project IceStorm documents the format (https://prjicestorm.readthedocs.io): commands that write four
banks of configuration bits and four banks of block RAM contents, covered by one CRC. This reader
and writer are independent of icepack.
"""

from __future__ import annotations

import binascii
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from lbq_hw.bitstream.base import BitsError, UndecodedError, first_difference

Place = tuple[int, int]
Bits = NDArray[np.uint8]

_PREAMBLE = b"\x7e\xaa\x99\x7e"
_LOGIC, _RAM, _IO = 54, 42, 18  # columns of bits per tile
_ROWS = 16  # rows of bits of every tile
_CHUNK = 128  # rows of a RAM bank that one command writes
_RAM_ROWS = 256
# Positions of the columns and rows of a top or bottom IO tile among those of a logic tile.
_IO_COLUMNS = [23, 25, 26, 27, 16, 17, 18, 19, 20, 14, 32, 33, 34, 35, 36, 37, 4, 5]
_IO_ROWS = [0, 1, 3, 2, 4, 5, 7, 6, 8, 9, 11, 10, 12, 13, 15, 14]


@dataclass(frozen=True, kw_only=True)
class Die:
    """Geometry of a die: tiles inside the ring of IO tiles, and the banks that hold their bits.

    `columns` are the widths of the columns from the left edge to the middle; `cut` is the last tile
    row of the lower banks; `heights` and `ram_widths` are for the lower and the upper banks.
    `blocks`: the left and right edges have hard blocks instead of IO tiles.
    """

    name: str
    width: int
    height: int
    columns: tuple[int, ...]
    cut: int
    heights: tuple[int, int]
    ram_widths: tuple[int, int]
    ram_columns: tuple[int, int]
    blocks: bool = False

    @property
    def bank_width(self) -> int:
        # The extra bits are in two columns beyond the tiles of a bank.
        return sum(self.columns) + 2

    def tile_width(self, x: int, y: int) -> int:
        """Columns of a tile's bits; 0 at the corners."""
        side, end = x in (0, self.width + 1), y in (0, self.height + 1)
        if side and end:
            return 0
        if side:
            return _LOGIC if self.blocks else _IO
        if end:
            return _IO
        return _RAM if x in self.ram_columns else _LOGIC

    def tiles(self) -> Iterator[Place]:
        """Places of all tiles that have bits."""
        for y in range(self.height + 2):
            for x in range(self.width + 2):
                if self.tile_width(x, y):
                    yield x, y

    def rams(self) -> Iterator[Place]:
        """Places of all block RAMs; a block RAM has the place of its lower tile."""
        for x in self.ram_columns:
            for y in range(1, self.height, 2):
                yield x, y

    def bank(self, x: int, y: int) -> int:
        return int(y > self.cut) + 2 * int(x > self.width // 2)

    def bits_of(self, x: int, y: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Rows and columns of a tile's bits in its bank."""
        right, top = x > self.width // 2, y > self.cut
        column = self.width + 1 - x if right else x
        row = self.height + 1 - y if top else y
        left, width = sum(self.columns[:column]), self.columns[column]
        rows, columns = np.arange(_ROWS), np.arange(self.tile_width(x, y))
        if y in (0, self.height + 1):
            rows, columns = 15 - np.array(_IO_ROWS), np.array(_IO_COLUMNS)
        elif top:
            rows = 15 - rows
        mirrored = right or (x in (0, self.width + 1) and not self.blocks)
        columns = left + (width - 1 - columns if mirrored else columns)
        return np.ix_(_ROWS * row + rows, columns)  # type: ignore[return-value]

    def ram_columns_of(self, y: int) -> slice:
        """Columns of a block RAM's words in its bank."""
        above = y - self.cut if y > self.cut else y - 1
        return slice(16 * (above // 2), 16 * (above // 2) + 16)


DIES = {
    die.name: die
    for die in (
        Die(
            name="5k",
            width=24,
            height=30,
            columns=(*[_LOGIC] * 6, _RAM, *[_LOGIC] * 6),
            cut=20,
            heights=(336, 176),
            ram_widths=(160, 80),
            ram_columns=(6, 19),
            blocks=True,
        ),
        Die(
            name="8k",
            width=32,
            height=32,
            columns=(_IO, *[_LOGIC] * 7, _RAM, *[_LOGIC] * 8),
            cut=16,
            heights=(272, 272),
            ram_widths=(128, 128),
            ram_columns=(8, 25),
        ),
    )
}


@dataclass(kw_only=True)
class Image:
    """The contents of a bitstream.

    `tiles`: the bits of each tile, 16 rows; `rams`: 256 words of 16 bits each; `extra`: bits
    beyond the tiles, as bank, column and row. `comment` is the text before the bits.
    """

    die: Die
    comment: bytes = b""
    tiles: dict[Place, Bits] = field(default_factory=dict)
    rams: dict[Place, NDArray[np.uint16]] = field(default_factory=dict)
    extra: frozenset[tuple[int, int, int]] = frozenset()

    @property
    def bits(self) -> int:
        """How many bits of tiles and memories there are."""
        return sum(tile.size for tile in self.tiles.values()) + 16 * sum(
            ram.size for ram in self.rams.values()
        )


def decode(data: bytes) -> Image:
    """Read a packed file. BitsError if packing its contents again does not give the same file."""
    image, banks, memories = _read(data)
    die = image.die
    used = [np.zeros_like(bank) for bank in banks]
    for x, y in die.tiles():
        number, where = die.bank(x, y), die.bits_of(x, y)
        image.tiles[x, y] = banks[number][where]
        used[number][where] = 1
    image.extra = frozenset(
        (number, int(column), int(row))
        for number, bank in enumerate(banks)
        for row, column in np.argwhere(bank & ~used[number] & 1)
    )
    weights = 1 << np.arange(15, -1, -1)
    for x, y in die.rams():
        words = memories[die.bank(x, y)][:, die.ram_columns_of(y)]
        image.rams[x, y] = (words @ weights).astype(np.uint16)
    again = encode(image)
    if again != data:
        at = first_difference(again, data)
        raise BitsError(f"byte {at:,} of the bitstream is not what its contents are packed to")
    return image


def encode(image: Image) -> bytes:
    """The packed file of an image."""
    die = image.die
    banks = [np.zeros((die.heights[n & 1], die.bank_width), np.uint8) for n in range(4)]
    memories = [np.zeros((_RAM_ROWS, die.ram_widths[n & 1]), np.uint8) for n in range(4)]
    for (x, y), bits in image.tiles.items():
        banks[die.bank(x, y)][die.bits_of(x, y)] = bits
    for bank, column, row in image.extra:
        banks[bank][row, column] = 1
    for (x, y), words in image.rams.items():
        bits = words[:, None] >> np.arange(15, -1, -1) & 1
        memories[die.bank(x, y)][:, die.ram_columns_of(y)] = bits
    return _write(image, banks, memories)


def _write(image: Image, banks: list[Bits], memories: list[Bits]) -> bytes:
    """Write the commands in icepack's order: a size that all banks share is written once, except on
    a 5k.
    """
    die, varying = image.die, image.die.heights[0] != image.die.heights[1]
    out = bytearray(b"\x92\x00\x20")  # warm boot; the CRC begins here
    out += b"\x62" + (die.bank_width - 1).to_bytes(2, "big")
    if not varying:
        out += b"\x72" + die.heights[0].to_bytes(2, "big")
    out += b"\x82\x00\x00"
    for number, bank in enumerate(banks):
        if varying:
            out += b"\x72" + len(bank).to_bytes(2, "big")
        out += bytes((0x11, number, 0x01, 0x01)) + np.packbits(bank).tobytes() + b"\x00\x00"
    if not varying:
        out += b"\x62" + (die.ram_widths[0] - 1).to_bytes(2, "big")
    out += b"\x72" + _CHUNK.to_bytes(2, "big")
    for number, memory in enumerate(memories):
        out += bytes((0x11, number))
        for row in range(0, _RAM_ROWS, _CHUNK):
            out += b"\x82" + row.to_bytes(2, "big")
            if varying:
                out += b"\x62" + (memory.shape[1] - 1).to_bytes(2, "big")
            out += b"\x01\x03" + np.packbits(memory[row : row + _CHUNK]).tobytes() + b"\x00\x00"
    out += b"\x22"
    out += binascii.crc_hqx(bytes(out), 0xFFFF).to_bytes(2, "big")
    before = image.comment + _PREAMBLE + b"\x51\x00\x01\x05"  # slow clock, CRC reset
    return before + bytes(out) + b"\x01\x06\x00"  # wake up


def _read(data: bytes) -> tuple[Image, list[Bits], list[Bits]]:
    """Execute the commands of a file; bits that they do not write are 0."""
    start = data.find(_PREAMBLE)
    if start < 0:
        raise BitsError("the bitstream has no preamble: it is not for an iCE40")
    at, number, width, height, offset = start + len(_PREAMBLE), 0, 0, 0, 0
    banks: dict[int, Bits] = {}
    chunks: dict[int, dict[int, Bits]] = {}
    while at < len(data):
        code, size = data[at] >> 4, data[at] & 15
        value = int.from_bytes(data[at + 1 : at + 1 + size], "big")
        at += 1 + size
        match code, value:
            case 0, 1 | 3:
                length = width * height // 8
                bits = np.unpackbits(np.frombuffer(data[at : at + length], np.uint8))
                if not width or bits.size != width * height:
                    raise BitsError(f"bank {number} of the bitstream is cut off")
                bits = bits.reshape(height, width)
                if value == 1:
                    banks[number] = bits
                else:
                    chunks.setdefault(number, {})[offset] = bits
                at += length + 2
            case 0, 6:
                break
            case 1, _:
                number = value
            case 6, _:
                width = value + 1
            case 7, _:
                height = value
            case 8, _:
                offset = value
            case _:
                pass  # `decode` packs the contents again and compares all bytes
    return _assemble(data[:start], banks, chunks)


def _assemble(
    comment: bytes, banks: dict[int, Bits], chunks: dict[int, dict[int, Bits]]
) -> tuple[Image, list[Bits], list[Bits]]:
    """Find the die whose banks have these sizes; returns an empty image of it, and its banks of
    tiles and of memories in order.
    """
    for die in DIES.values():
        shapes = {n: (die.heights[n & 1], die.bank_width) for n in range(4)}
        if {n: bank.shape for n, bank in banks.items()} != shapes:
            continue
        parts = {
            (n, row): (_CHUNK, die.ram_widths[n & 1])
            for n in range(4)
            for row in range(0, _RAM_ROWS, _CHUNK)
        }
        found = {(n, row): part.shape for n, rows in chunks.items() for row, part in rows.items()}
        if found != parts:
            continue
        memories = [np.concatenate([chunks[n][row] for row in sorted(chunks[n])]) for n in range(4)]
        return Image(die=die, comment=comment), [banks[n] for n in range(4)], memories
    raise BitsError(f"the bitstream has the banks of none of the dies {', '.join(DIES)}")


def read_text(text: str) -> Image:
    """Read the router's .asc file. Tiles and memories that it leaves out are 0."""
    sections = [(line.split(), body) for line, *body in _sections(text)]
    device = next((words[1] for words, _ in sections if words[0] == ".device"), "")
    if device not in DIES:
        raise UndecodedError(f"the die must be one of {', '.join(DIES)}, not {device!r}")
    die, extra = DIES[device], set()
    image = Image(
        die=die,
        tiles={(x, y): np.zeros((_ROWS, die.tile_width(x, y)), np.uint8) for x, y in die.tiles()},
        rams={place: np.zeros(_RAM_ROWS, np.uint16) for place in die.rams()},
    )
    for (command, *words), body in sections:
        if command == ".comment":
            lines = "".join(f"{line}\0" for line in body)
            image.comment = b"\xff\0" + lines.encode() + b"\0\xff"
        elif command == ".extra_bit":
            bank, column, row = map(int, words)
            extra.add((bank, column, row))
        elif command == ".ram_data":
            ram = b"".join(int(row, 16).to_bytes(32, "little") for row in body if row)
            image.rams[int(words[0]), int(words[1])] = np.frombuffer(ram, "<u2").astype(np.uint16)
        elif command.endswith("_tile"):
            bits = [[bit == "1" for bit in row] for row in body if row]
            image.tiles[int(words[0]), int(words[1])] = np.array(bits, np.uint8)
    image.extra = frozenset(extra)
    return image


def _sections(text: str) -> Iterator[list[str]]:
    """The lines of each section, which begins with a line that starts with a point."""
    found: list[str] = []
    for line in text.splitlines():
        if line.startswith(".") and found:
            yield found
            found = []
        if found or line.startswith("."):
            found.append(line)
    if found:
        yield found


def compare(found: Image, routed: Image) -> None:
    """BitsError, in one sentence, if a bitstream differs from what the router wrote."""
    if found.die.name != routed.die.name:
        raise BitsError(f"the bitstream is for a {found.die.name}, not for a {routed.die.name}")
    if found.comment != routed.comment:
        raise BitsError("the comment of the bitstream is not the one that the router wrote")
    for place in found.die.tiles():
        wrong = np.argwhere(found.tiles[place] != routed.tiles[place])
        if len(wrong):
            row, column = wrong[0]
            raise BitsError(
                f"bit B{row}[{column}] of tile {place[0]} {place[1]} is not what the router wrote"
            )
    for place in found.die.rams():
        wrong = np.flatnonzero(found.rams[place] != routed.rams[place])
        if len(wrong):
            raise BitsError(
                f"word {wrong[0]} of the block RAM at {place[0]} {place[1]} is not what the "
                "router wrote"
            )
    if found.extra != routed.extra:
        raise BitsError("the bits beyond the tiles of the bitstream are not what the router wrote")
