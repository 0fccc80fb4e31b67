"""The external memory of a core: compares its contents, uploads a tape, and tests it."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lbq_hw.host.transport import DeviceError, Transport
from lbq_hw.isa import regions
from lbq_hw.isa.regions import MEMORY_SLICES, Region

PIECE = 16_384
"""Slices that are compared, and written if they differ."""
CALIBRATION_LOOKS, DIGEST_LOOKS, TEST_LOOKS = 1000, 20_000, 500_000
"""Number of polls of the core's status before giving up. A poll takes 0.1 ms on the fastest line,
so this is at least ten times the time that a working memory needs."""
_CALIBRATED, _DIGESTS, _FAILED, _TESTS = 1, 2, 4, 8
_NUMBER = {name: register.address for name, register in regions.MEMORY_REGISTERS.items()}

Tick = Callable[[], object]
"""Called for each piece that is done, and for each poll."""


def nothing() -> None:
    """A tick that does nothing."""


@dataclass(frozen=True, kw_only=True)
class Piece:
    """Slices of a tape from `first` on, as bytes."""

    first: int
    data: bytes

    @property
    def slices(self) -> int:
        return len(self.data) // 4

    @property
    def crc(self) -> int:
        return zlib.crc32(self.data)

    @property
    def address(self) -> int:
        """Address of the first slice at the host port."""
        return Region.MEMORY << regions.SHIFT | self.first

    def words(self) -> tuple[int, ...]:
        return struct.unpack(f"<{self.slices}I", self.data)


def pieces(tape: bytes) -> list[Piece]:
    """Cuts a tape into pieces; the end is padded to a whole slice."""
    whole = tape + bytes(-len(tape) % 4)
    if len(whole) > 4 * MEMORY_SLICES:
        raise ValueError(f"a tape must have at most {4 * MEMORY_SLICES} bytes, not {len(whole)}")
    step = 4 * PIECE
    return [Piece(first=at // 4, data=whole[at : at + step]) for at in range(0, len(whole), step)]


@dataclass(frozen=True, kw_only=True)
class Captures:
    """The captures that `passed` in the core's calibration, and the capture that is `used`.

    A capture is a moment at which words are sampled at the pins of the memory; each number is half
    a clock cycle later than the previous one.
    """

    passed: tuple[int, ...]
    used: int

    @classmethod
    def decode(cls, register: int) -> Captures:
        """From the register `captures`."""
        numbers = range(regions.CAPTURES)
        passed = tuple(number for number in numbers if register >> number & 1)
        return cls(passed=passed, used=register >> regions.CAPTURES & regions.CAPTURES - 1)

    def facts(self) -> dict[str, Any]:
        """JSON-able."""
        return {"passed": list(self.passed), "used": self.used}


class ExternalMemory:
    """The external memory of a core that is idle.

    DeviceError if the memory does not work, or does not keep written data.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        for _ in range(CALIBRATION_LOOKS):
            state = self._state()
            if state & _FAILED:
                raise DeviceError(
                    "the external memory does not work: its calibration found no timing at which "
                    "words come back; check that the package is for this board, and power the "
                    "board off and on"
                )
            if state & _CALIBRATED and not state & (_DIGESTS | _TESTS):
                return
        raise DeviceError(
            "the external memory is not calibrated, or another host uses it: try again, or reset "
            "the board"
        )

    def captures(self) -> Captures:
        """The result of the last calibration."""
        return Captures.decode(self._transport.read(_NUMBER["captures"], 1)[0])

    def digest(self, first: int, slices: int) -> int:
        """CRC-32 of slices from `first` on, as the core reads them."""
        self._transport.write(_NUMBER["digest_first"], [first, slices])
        self._finish(_DIGESTS, "digest", DIGEST_LOOKS, nothing)
        return self._transport.read(_NUMBER["digest_crc"], 1)[0]

    def differing(self, wanted: list[Piece], tick: Tick = nothing) -> list[Piece]:
        """The pieces that the memory does not hold."""
        found = []
        for piece in wanted:
            if self.digest(piece.first, piece.slices) != piece.crc:
                found.append(piece)
            tick()
        return found

    def upload(self, wanted: list[Piece], tick: Tick = nothing) -> None:
        """Write pieces, each compared by its digest; once more if it differs."""
        for piece in wanted:
            if not any(self._put(piece) for _ in range(2)):
                raise DeviceError(
                    f"the external memory does not keep what is written to slices {piece.first} to "
                    f"{piece.first + piece.slices - 1}: run with --recalibrate, and if that does "
                    "not help, test it with --memory-test"
                )
            tick()

    def test(self, last: int = MEMORY_SLICES - 1, tick: Tick = nothing) -> int:
        """Run the core's test of slices 0 to `last`, which overwrites them; returns the number of
        words that differed.

        A smaller memory is tested completely. Each word is tested twice, and may count twice.
        """
        self._transport.write(_NUMBER["test_last"], [last])
        self._finish(_TESTS, "self-test", TEST_LOOKS, tick)
        return self._transport.read(_NUMBER["test_differing"], 1)[0]

    def _put(self, piece: Piece) -> bool:
        """Write a piece; returns whether the memory then holds it."""
        self._transport.write(piece.address, piece.words())
        return self.digest(piece.first, piece.slices) == piece.crc

    def _state(self) -> int:
        return self._transport.read(_NUMBER["memory"], 1)[0]

    def _finish(self, busy: int, what: str, looks: int, tick: Tick) -> None:
        for _ in range(looks):
            if not self._state() & busy:
                return
            tick()
        raise DeviceError(
            f"the external memory does not finish its {what}: reset the board, and if that does "
            "not help, load its bitstream again"
        )


def recalibrated(transport: Transport) -> ExternalMemory:
    """The memory after a new calibration, which may repair a memory that did not work."""
    transport.write(_NUMBER["captures"], [0])
    return ExternalMemory(transport)
