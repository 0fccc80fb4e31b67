"""The link: frames between host and core, over a UART.

A frame is a REQUEST or a REPLY and its data words, followed by the CRC-32 (ISO-HDLC, as in
zlib) of both, all in bytes, lowest first. Bytes are escaped as in RFC 1662: on the wire every 0x7E
and 0x7D of a frame becomes 0x7D and the byte with bit 5 flipped, and 0x7E ends the frame. Empty
frames are ignored. The core accepts any byte of a request in its escaped form. The host also
escapes 0x18 (Ctrl-X), because the USB bridge of a Tang Nano 20K opens a shell of its own at Ctrl-X,
Ctrl-C and Enter.

A frame that was cut off, is too long, or has a wrong CRC is dropped. Every other request gets one
reply with its sequence number. Requests are executed once and in order. A request is executed if
its number follows the number of the last executed request. A request with the same number as the
last one is answered again (a READ with the data as they are now). Any other number is answered with
SEQUENCE, and nothing is executed. SYNC makes its own number the last executed number, and comes
first after a reset. A new divisor is used after its reply has been sent. A break (the line low for
longer than a byte) restores the divisor of the reset.
"""

from __future__ import annotations

from lbq_hw.isa import regions
from lbq_hw.isa.codes import Code
from lbq_hw.isa.record import SLICE, Field, Record


class Command(Code):
    """The command of a request."""

    READ = 0, "reply with `words` words from `address` on"
    WRITE = 1, "write the `words` data words from `address` on"
    SYNC = 2, "begin a session: the next sequence number follows this one's"
    DIVISOR = 3, "the UART's clock cycles per bit: the low bits of `address`"


class Status(Code):
    """The status of a reply."""

    OK = 0, "executed, now or before"
    SEQUENCE = 1, "not executed: its number does not follow the last one's"


BYTE_BITS = 10
"""Bits of a byte on the line: a start bit, eight data bits, a stop bit."""
FLAG, ESCAPE, ESCAPED = 0x7E, 0x7D, 0x20
CANCEL = 0x18
"""Ctrl-X, which opens the shell of a bridge: no request has it on the wire."""
CRC_BYTES = 4
FRAME_WORDS = 60
BAKED = 15 << regions.SHIFT
"""Answered by the link itself: `regions.tag` of the memory image in the bitstream, or 0 after any
table, weight or parameter has been written."""
DIVISOR_BITS = 12
LEAST_DIVISOR = 4


def divisor(*, clock_hz: int, baud: int) -> int:
    """Clock cycles per bit of the link; ValueError if the rate would be off by 2 % or more."""
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
