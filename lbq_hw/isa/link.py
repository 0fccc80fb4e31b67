"""The link: frames between host and core, over a UART.

A frame is a REQUEST or a REPLY and its data words, followed by the CRC-32 (ISO-HDLC, as in
zlib) of both, all in bytes, lowest first. On the wire, as in RFC 1662, every 0x7E and 0x7D in it
becomes 0x7D and the byte with bit 5 flipped, and 0x7E ends it; empty frames mean nothing. The core
takes any byte of a request escaped in this way, and the host escapes 0x18 too: with Ctrl-X, Ctrl-C
and Enter the USB bridge of a Tang Nano 20K leaves the line and opens a shell of its own. A frame
that was cut off, is too long, or has a wrong CRC is dropped. Each other request gets one reply
with its sequence number. Requests are executed once and in order: one whose number follows the
last executed one's is executed; the same number again is answered again (a READ with the data of
now); any other is answered with SEQUENCE and does nothing. SYNC makes its own number the last
executed one, and comes first after a reset. A new divisor holds once the reply has left. A break
(the line low for longer than a byte) brings back the divisor of the reset.
"""

from __future__ import annotations

from lbq_hw.isa import regions
from lbq_hw.isa.codes import Code
from lbq_hw.isa.record import SLICE, Field, Record


class Command(Code):
    """What a frame asks the link to do."""

    READ = 0, "reply with `words` words from `address` on"
    WRITE = 1, "write the `words` data words from `address` on"
    SYNC = 2, "begin a session: the next sequence number follows this one's"
    DIVISOR = 3, "the UART's clock cycles per bit: the low bits of `address`"


class Status(Code):
    """How a frame was taken."""

    OK = 0, "executed, now or before"
    SEQUENCE = 1, "not executed: its number does not follow the last one's"


BYTE_BITS = 10
"""Of a byte on the line: a start bit, eight data bits, a stop bit."""
FLAG, ESCAPE, ESCAPED = 0x7E, 0x7D, 0x20
CANCEL = 0x18
"""Ctrl-X, which opens the shell of a bridge: no request has it on the wire."""
CRC_BYTES = 4
FRAME_WORDS = 60
BAKED = 15 << regions.SHIFT
"""Read by the link itself: `regions.tag` of what the bitstream put into the memories, 0 once any of
their tables, weights or parameters has been written."""
DIVISOR_BITS = 12
LEAST_DIVISOR = 4


def divisor(*, clock_hz: int, baud: int) -> int:
    """Clock cycles per bit of the link; ValueError where the rate would be off by 2 % or more."""
    for name, value in (("clock_hz", clock_hz), ("baud", baud)):
        if not isinstance(value, int) or isinstance(value, bool):
            raise TypeError(f"{name} must be an integer, not {value!r}")
        if value < 1:
            raise ValueError(f"{name} must be at least 1, not {value!r}")
    cycles = round(clock_hz / baud)
    least, most = LEAST_DIVISOR, (1 << DIVISOR_BITS) - 1
    if not least <= cycles <= most:
        low, high = -(-clock_hz // most), clock_hz // least
        raise ValueError(f"baud must be {low}..{high} at {clock_hz} Hz, not {baud!r}")
    if abs(clock_hz - cycles * baud) * 50 >= cycles * baud:
        raise ValueError(
            f"baud must be within 2 % of {clock_hz} Hz over a whole number, not {baud!r}"
        )
    return cycles


REQUEST = Record(
    "request",
    "Head of a frame to the core; a WRITE's data words follow.",
    (
        Field(
            name="sequence",
            meaning="number of the request; counts up, modulo 256",
            most=255,
        ),
        Field(
            name="words",
            meaning="data words that follow, or that a READ wants",
            most=FRAME_WORDS,
        ),
        Field(
            name="command",
            meaning=", ".join(f"{c.value}: {c.name}" for c in Command),
            most=max(Command),
        ),
        Field(
            name="address",
            meaning="of the first word; of the next ones, only bits 7:0 count up",
            most=(1 << SLICE) - 1,
        ),
    ),
)
REPLY = Record(
    "reply",
    "Head of a frame from the core; a READ's data words follow.",
    (
        Field(name="sequence", meaning="of the request", most=255),
        Field(
            name="status",
            meaning=", ".join(f"{s.value}: {s.name}" for s in Status),
            most=max(Status),
            bits=8,
        ),
    ),
)
