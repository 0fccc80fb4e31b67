"""A model of the link, from the words of `lbq_hw.isa.link` alone, and what happens to frames."""

from __future__ import annotations

import random
import struct
import zlib
from collections.abc import Callable, Iterable

BROKEN = 0x100
FLAG = 0x7E
Stream = list[int]
"""Bytes, each perhaps with BROKEN: without a stop bit."""


def stuffed(body: bytes) -> bytes:
    crc = zlib.crc32(body).to_bytes(4, "little")
    escaped = (body + crc).replace(b"\x7d", b"\x7d\x5d").replace(b"\x7e", b"\x7d\x5e")
    return escaped + b"\x7e"


class Model:
    """What the link must do, byte by byte."""

    def __init__(self) -> None:
        self.memory: dict[int, int] = {}
        self.sent = b""
        self.written: list[tuple[int, int]] = []
        self.accepted: list[bytes] = []
        self.last: int | None = None
        self._frame: Stream = []

    def take(self, stream: Iterable[int]) -> None:
        for item in stream:
            if item == FLAG:
                self._end(self._frame)
                self._frame = []
            else:
                self._frame.append(item)

    def _end(self, frame: Stream) -> None:
        if any(item & BROKEN for item in frame):
            return
        plain, escaped = [], False
        for item in frame:
            if item == 0x7D:
                escaped = True
            else:
                plain.append(item ^ 0x20 if escaped else item)
                escaped = False
        body, crc = bytes(plain[:-4]), bytes(plain[-4:])
        if escaped or crc != zlib.crc32(body).to_bytes(4, "little"):
            return
        if not 6 <= len(body) <= 6 + 4 * 60 or len(body) % 4 != 2:
            return
        sequence, second, address = struct.unpack("<BBI", body[:6])
        command, count = second >> 6, second & 63
        data = struct.unpack(f"<{len(body) // 4 - 1}I", body[6:])
        if len(data) != (count if command == 1 else 0):
            return
        self.accepted.append(body)
        self._execute(sequence, command, address, count, data)

    def _execute(
        self, sequence: int, command: int, address: int, count: int, data: tuple[int, ...]
    ) -> None:
        follows = self.last is not None and sequence == (self.last + 1) % 256
        if command == 2 or follows:
            self.last = sequence
        if sequence != self.last:
            self.sent += stuffed(bytes((sequence, 1)))
            return
        at = [address & ~255 | (address + offset) & 255 for offset in range(count)]
        if command == 1 and follows:
            self.written += zip(at, data, strict=True)
            self.memory.update(zip(at, data, strict=True))
        # Region 15 is the link's own: nothing was baked in.
        words = [0 if a >> 28 == 15 else self.memory.get(a, a) for a in at if command == 0]
        self.sent += stuffed(struct.pack(f"<BB{len(words)}I", sequence, 0, *words))


def flip(source: random.Random, frame: Stream) -> Stream:
    for _ in range(source.choice((1, 1, 2, 3, 8))):
        frame[source.randrange(len(frame))] ^= 1 << source.randrange(8)
    return frame


def drop(source: random.Random, frame: Stream) -> Stream:
    at = source.randrange(len(frame))
    return frame[:at] + frame[at + source.randrange(1, 5) :]


def double(source: random.Random, frame: Stream) -> Stream:
    at, size = source.randrange(len(frame)), source.randrange(1, 5)
    return frame[: at + size] + frame[at:]


def truncate(source: random.Random, frame: Stream) -> Stream:
    return frame[: source.randrange(len(frame))]


def garbage(source: random.Random, frame: Stream) -> Stream:
    at = source.choice((0, source.randrange(len(frame)), len(frame)))
    noise = [source.randrange(256) for _ in range(source.choice((1, 3, 20, 600)))]
    return frame[:at] + noise + frame[at:]


def lose_a_stop_bit(source: random.Random, frame: Stream) -> Stream:
    frame[source.randrange(len(frame))] |= BROKEN
    return frame


def repeat(source: random.Random, frame: Stream) -> Stream:
    return frame * source.randrange(2, 4)


def lie(source: random.Random, frame: Stream) -> Stream:
    """A right CRC over any head and any length, after the frame's first byte."""
    size = source.choice((*range(14), source.randrange(14, 700)))
    return list(stuffed(bytes(frame[:1]) + source.randbytes(size)))


DAMAGE: tuple[Callable[[random.Random, Stream], Stream], ...] = (
    flip, drop, double, truncate, garbage, lose_a_stop_bit, repeat, lie
)  # fmt: skip
