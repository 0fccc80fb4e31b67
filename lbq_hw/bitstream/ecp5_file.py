"""Bitstreams of the ECP5: from the bytes of a .bit file to frames and block RAM contents.

Project Trellis documents the format (https://prjtrellis.readthedocs.io). Every byte is either
fixed, covered by a CRC, or part of `File`, so every flipped bit is noticed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lbq_hw.bitstream.base import BitsError

_COMMANDS = {
    "SPI_MODE": 0x79,
    "RESET_CRC": 0x3B,
    "VERIFY_ID": 0xE2,
    "CONTROL": 0x22,
    "INIT_ADDRESS": 0x46,
    "DICTIONARY": 0x02,
    "COMPRESSED": 0xB8,
    "FRAMES": 0x82,
    "USERCODE": 0xC2,
    "RAM_ADDRESS": 0xF6,
    "RAM_WRITE": 0xB2,
    "DONE": 0x5E,
}
_FRAME_OPTIONS = 0x91  # a CRC and one dummy byte after each frame
_RAM_OPTIONS = 0xD0
_RAM_WORDS = 2048  # of 9 bits
_AFTER_FRAMES = 12  # dummy bytes in the place of security commands


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Frames of a device: their number, the bits of each, and the padding before and after."""

    frames: int
    bits: int
    before: int
    after: int

    @property
    def bytes(self) -> int:
        return (self.bits + self.before + self.after) // 8


@dataclass(frozen=True, kw_only=True)
class File:
    """The contents of a .bit file: `frames` has a row per frame, a RAM 2,048 words of 9 bits."""

    comments: tuple[str, ...]
    spi_mode: int | None
    idcode: int
    control: int
    usercode: int
    frames: NDArray[np.uint8]
    rams: dict[int, NDArray[np.uint16]]


def _crc_table() -> list[int]:
    table = []
    for byte in range(256):
        value = byte << 8
        for _ in range(8):
            value = (value << 1) ^ (0x8005 if value & 0x8000 else 0)
        table.append(value & 0xFFFF)
    return table


_TABLE = _crc_table()


class _Reader:
    """Reads bytes in order; `crc` covers the bytes since its last reset."""

    def __init__(self, data: bytes) -> None:
        self._data, self.at, self.crc = data, 0, 0

    def take(self, count: int) -> bytes:
        found = self._data[self.at : self.at + count]
        if len(found) != count:
            raise BitsError("the bitstream is cut off")
        self.at += count
        crc = self.crc
        for byte in found:
            crc = (crc << 8 & 0xFF00) ^ _TABLE[crc >> 8 ^ byte]
        self.crc = crc
        return found

    def expect(self, wanted: bytes, what: str) -> None:
        at = self.at
        if self.take(len(wanted)) != wanted:
            raise BitsError(f"the bytes at {at:,} of the bitstream are not {what}")

    def command(self, name: str, options: bytes = b"\0\0\0") -> None:
        self.expect(bytes((_COMMANDS[name],)) + options, f"the command {name}")

    def at_command(self, name: str) -> bool:
        return self._data[self.at : self.at + 1] == bytes((_COMMANDS[name],))

    def number(self) -> int:
        return int.from_bytes(self.take(4), "big")

    def check(self, what: str) -> None:
        wanted = self.crc
        if int.from_bytes(self.take(2), "big") != wanted:
            raise BitsError(f"the CRC of {what} of the bitstream is wrong")
        self.crc = 0

    def dummies(self, count: int) -> None:
        """Skip dummy bytes, which no CRC covers."""
        kept = self.crc
        self.expect(b"\xff" * count, "padding")
        self.crc = kept

    @property
    def rest(self) -> bytes:
        return self._data[self.at :]


def decode(data: bytes, shapes: dict[int, Shape]) -> File:
    """Read a .bit file; `shapes` by IDCODE. BitsError, in one sentence, if a byte is wrong."""
    reader = _Reader(data)
    reader.expect(b"\xff\x00", "the begin of a comment")
    end = data.find(b"\x00\xff", 2)
    comments = reader.take(max(end - 2, 0)).decode("ascii", "replace").split("\0")
    reader.expect(b"\x00\xff", "the end of a comment")
    reader.expect(b"\xff\xff\xbd\xb3", "the preamble")
    reader.dummies(4)
    spi_mode = None
    if reader.at_command("SPI_MODE"):
        spi_mode = reader.take(2)[1]
        reader.expect(b"\0\0", "zeros after the SPI mode")
    reader.command("RESET_CRC")
    reader.crc = 0
    reader.command("VERIFY_ID")
    idcode = reader.number()
    if idcode not in shapes:
        raise BitsError(f"the bitstream is for the unknown IDCODE 0x{idcode:08x}")
    reader.command("CONTROL")
    control = reader.number()
    reader.command("INIT_ADDRESS")
    frames = _frames(reader, shapes[idcode])
    reader.dummies(_AFTER_FRAMES)
    reader.command("USERCODE", b"\x80\0\0")
    usercode = reader.number()
    reader.check("the user code")
    rams = {}
    while reader.at_command("RAM_ADDRESS"):
        reader.command("RAM_ADDRESS")
        address = reader.number()
        reader.command("RAM_WRITE", bytes((_RAM_OPTIONS,)) + (_RAM_WORDS // 8).to_bytes(2, "big"))
        if address & 0x7FF or address >> 11 in rams:
            raise BitsError(f"the bitstream writes block RAMs at the address 0x{address:x}")
        words = np.unpackbits(np.frombuffer(reader.take(_RAM_WORDS * 9 // 8), np.uint8))
        rams[address >> 11] = (words.reshape(-1, 9) @ (1 << np.arange(8, -1, -1))).astype(np.uint16)
        reader.check(f"block RAM {address >> 11}")
    reader.command("DONE")
    reader.dummies(4)
    if reader.rest:
        raise BitsError(f"the bitstream has {len(reader.rest):,} bytes after its end")
    return File(
        comments=tuple(comments),
        spi_mode=spi_mode,
        idcode=idcode,
        control=control,
        usercode=usercode,
        frames=frames,
        rams=rams,
    )


def _frames(reader: _Reader, shape: Shape) -> NDArray[np.uint8]:
    """All frames; the file has the last frame first."""
    options = bytes((_FRAME_OPTIONS,)) + shape.frames.to_bytes(2, "big")
    packed = reader.at_command("DICTIONARY")
    dictionary: list[int] = []
    if packed:
        reader.command("DICTIONARY")
        dictionary = [1 << bit for bit in range(8)] + list(reader.take(8)[::-1])
    reader.command("COMPRESSED" if packed else "FRAMES", options)
    size = -(-shape.bytes // 8) * 8 if packed else shape.bytes
    stream = reader.rest
    begin, at = reader.at, 0
    found = bytearray()
    for number in range(shape.frames):
        if packed:
            frame, at = _expand(stream, reader.at - begin, size, dictionary)
            reader.take(at - (reader.at - begin))
        else:
            frame = reader.take(size)
        reader.check(f"frame {shape.frames - 1 - number}")
        reader.expect(b"\xff", "the dummy byte after a frame")
        found += frame
    frames = np.frombuffer(bytes(found), np.uint8).reshape(shape.frames, size)[::-1, ::-1]
    bits = np.unpackbits(frames, axis=1, bitorder="little")
    if bits[:, : shape.after].any() or bits[:, shape.after + shape.bits :].any():
        raise BitsError("the padding of the frames of the bitstream is not 0")
    return bits[:, shape.after : shape.after + shape.bits]


def _expand(stream: bytes, at: int, size: int, dictionary: list[int]) -> tuple[bytes, int]:
    """Decompress the frame that begins at byte `at`; returns it and the byte after its end.

    Each byte has a prefix code: 0 is a zero byte, 10 and four bits an entry of the dictionary, 11
    and eight bits a literal byte.
    """
    window = stream[at : at + -(-size * 10 // 8)]
    text = f"{int.from_bytes(window, 'big'):0{8 * len(window)}b}"
    out, place = bytearray(), 0
    while len(out) < size:
        one = text.find("1", place)
        zeros = (one if one >= 0 else len(text)) - place
        zeros = min(zeros, size - len(out))
        out += bytes(zeros)
        place += zeros
        if len(out) == size:
            break
        length = 10 if text[place : place + 2] == "11" else 6
        code = text[place + 2 : place + length]
        if len(code) != length - 2:
            raise BitsError("the bitstream is cut off")
        out.append(int(code, 2) if length == 10 else dictionary[int(code, 2)])
        place += length
    return bytes(out), at + -(-place // 8)
