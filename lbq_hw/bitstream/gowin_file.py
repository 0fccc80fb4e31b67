"""Bitstreams of Gowin's LittleBee and Arora: from the text of an .fs file to rows of fuses.

Project Apicula documents the format (https://github.com/YosysHQ/apicula): lines of 0 and 1,
commands before and after the rows, a CRC in every row and one checksum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lbq_hw.bitstream.base import BitsError, first_difference

Fuses = NDArray[np.uint8]

_IDCODE, _FLASH_ADDRESS, _ROWS, _CHECKSUM = 0x06, 0xD2, 0x3B, 0x0A
_PREAMBLE = 3  # lines that no CRC covers
_TAIL = 64  # bits after the fuses of a row: a CRC, then ones


@dataclass(frozen=True, kw_only=True)
class Frame:
    """The fixed part of a device's files: the lines before and after the rows, and the number of
    fuses in a row. The number of rows and the checksum are 0 in these lines.
    """

    header: tuple[bytes, ...]
    footer: tuple[bytes, ...]
    width: int


@dataclass(frozen=True, kw_only=True)
class File:
    """The contents of an .fs file: the device's code, and rows of fuses from left to right."""

    idcode: int
    checksum: int
    fuses: Fuses


def _crc_table() -> list[int]:
    table = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = value >> 1 ^ (0xA001 if value & 1 else 0)
        table.append(value)
    return table


_TABLE = _crc_table()


def _crc(data: bytes) -> int:
    crc = 0
    for byte in data:
        crc = crc >> 8 ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc


def decode(text: bytes, frame: Frame) -> File:
    """Read an .fs file. BitsError if packing its contents again does not give the same file."""
    lines = text.split(b"\n")
    first, last = len(frame.header), len(lines) - len(frame.footer) - 1
    rows = lines[first:last]
    padding = -frame.width % 8
    length = frame.width + padding + _TAIL
    for number, row in enumerate(rows):
        if len(row) != length or row.strip(b"01"):
            raise BitsError(f"row {number} of the bitstream is not {length:,} bits as 0 and 1")
    if not rows:
        raise BitsError("the bitstream has no rows of fuses")
    bits = np.frombuffer(b"".join(rows), np.uint8).reshape(len(rows), length) & np.uint8(1)
    codes = [line for line in frame.header if line[0] == _IDCODE]
    place = frame.header.index(codes[0])
    sums = [number for number, line in enumerate(frame.footer) if line[0] == _CHECKSUM]
    found = File(
        idcode=_number(lines[place]) & 0xFFFFFFFF,
        checksum=_number(lines[last + sums[0]]) & 0xFFFF,
        fuses=bits[:, padding : padding + frame.width][:, ::-1],
    )
    again = encode(found, frame)
    if again != text:
        line = first_difference(again.split(b"\n"), lines)
        raise BitsError(
            f"line {line + 1:,} of the bitstream is not what its contents are packed to"
        )
    return found


def encode(file: File, frame: Frame) -> bytes:
    """The .fs file for these fuses."""
    header = list(frame.header)
    header[-1] = header[-1][:2] + len(file.fuses).to_bytes(2, "big")
    place = next(n for n, line in enumerate(header) if line[0] == _IDCODE)
    header[place] = header[place][:-4] + file.idcode.to_bytes(4, "big")
    footer = [
        line[:-2] + file.checksum.to_bytes(2, "big") if line[0] == _CHECKSUM else line
        for line in frame.footer
    ]
    padding = np.ones((len(file.fuses), -frame.width % 8), np.uint8)
    rows = np.packbits(np.hstack([padding, file.fuses[:, ::-1]]), axis=1)
    before = b"".join(line for line in header[_PREAMBLE:] if line[0] != _FLASH_ADDRESS)
    out = list(header)
    for row in rows:
        data = row.tobytes()
        out.append(data + _crc(before + data).to_bytes(2, "little") + b"\xff" * 6)
        before = b"\xff" * 6
    return _text([*out, *footer])


def checksum(fuses: Fuses) -> int:
    """The sum of all 16-bit words of the main rows."""
    words = np.packbits(fuses[:, ::-1])
    high, low = int(words[0::2].sum(dtype=np.int64)), int(words[1::2].sum(dtype=np.int64))
    return (high * 256 + low) & 0xFFFF


def _number(line: bytes) -> int:
    if not line or line.strip(b"01"):
        raise BitsError("a line of the bitstream is not bits as 0 and 1")
    return int(line, 2)


def _text(lines: Sequence[bytes]) -> bytes:
    return b"".join(f"{int.from_bytes(line, 'big'):0{8 * len(line)}b}\n".encode() for line in lines)
