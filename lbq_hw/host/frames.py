"""Frames of the link in bytes, as `lbq_hw.isa.link` defines them."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lbq_hw.config import CoreConfig
from lbq_hw.isa import link
from lbq_hw.isa.link import CRC_BYTES, Command, Status

_ANY = CoreConfig()  # heads of frames are the same for every core
STUFFED = (link.ESCAPE, link.FLAG, link.CANCEL)
"""Bytes that are always escaped in a request, apart from the flag that ends it. The escape byte is
replaced first; otherwise the escapes added for the other bytes would be escaped again."""
_PAGE = 256  # a frame's address counts up in its low byte only
REQUEST_BYTES, REPLY_BYTES = (r.width(_ANY) // 8 for r in (link.REQUEST, link.REPLY))


@dataclass(frozen=True, kw_only=True)
class Request:
    """A frame to the core; `words`: the number of words of a READ; `data`: those of a WRITE."""

    sequence: int
    command: Command
    address: int = 0
    words: int = 0
    data: tuple[int, ...] = ()

    def encode(self) -> bytes:
        """The bytes on the wire, including the flag at the end."""
        head = link.REQUEST.encode(
            _ANY,
            {
                "sequence": self.sequence,
                "words": len(self.data) if self.command == Command.WRITE else self.words,
                "command": self.command,
                "address": self.address,
            },
        )
        return wrap(head.to_bytes(REQUEST_BYTES, "little") + _pack(self.data))


@dataclass(frozen=True, kw_only=True)
class Reply:
    """A frame from the core."""

    sequence: int
    status: Status
    data: tuple[int, ...] = ()


def wrap(plain: bytes) -> bytes:
    """Add the CRC, escape, end with a flag."""
    whole = plain + zlib.crc32(plain).to_bytes(CRC_BYTES, "little")
    for byte in STUFFED:
        whole = whole.replace(bytes((byte,)), bytes((link.ESCAPE, byte ^ link.ESCAPED)))
    return whole + bytes((link.FLAG,))


def unwrap(body: bytes) -> bytes | None:
    """The contents of a frame without its flag; None if the CRC is wrong."""
    plain, escaped = bytearray(), False
    for byte in body:
        if byte == link.ESCAPE:
            escaped = True
            continue
        plain.append(byte ^ link.ESCAPED if escaped else byte)
        escaped = False
    data, crc = bytes(plain[:-CRC_BYTES]), bytes(plain[-CRC_BYTES:])
    if escaped or len(crc) < CRC_BYTES or crc != zlib.crc32(data).to_bytes(CRC_BYTES, "little"):
        return None
    return data


class Replies:
    """Finds replies in a stream of bytes; all other bytes are dropped."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[Reply]:
        """The replies that end in `data`."""
        *bodies, self._rest = (self._rest + data).split(bytes((link.FLAG,)))
        most = 2 * (REPLY_BYTES + 4 * link.FRAME_WORDS + CRC_BYTES)
        self._rest = self._rest[-most - 1 :]  # no frame is longer
        for body in bodies:
            plain = unwrap(body)
            if plain is None or len(plain) < REPLY_BYTES or (len(plain) - REPLY_BYTES) % 4:
                continue
            head = link.REPLY.decode(_ANY, int.from_bytes(plain[:REPLY_BYTES], "little"))
            if head["status"] in set(Status):
                words = struct.unpack(f"<{len(plain) // 4}I", plain[REPLY_BYTES:])
                yield Reply(sequence=head["sequence"], status=Status(head["status"]), data=words)


def cuts(address: int, count: int) -> list[tuple[int, int]]:
    """Cuts `count` words from `address` on into frames: the first word and the size of each."""
    found = []
    first = 0
    while first < count:
        room = _PAGE - (address + first) % _PAGE
        size = min(link.FRAME_WORDS, room, count - first)
        found.append((first, size))
        first += size
    return found


def _pack(words: Sequence[int]) -> bytes:
    return struct.pack(f"<{len(words)}I", *words)
