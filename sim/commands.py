"""Commands to a core in another process: the protocol of `bench.cpp`, and of `sim.benches.server`,
which lacks the last two.

A command has three little-endian words and is answered by words:

    0 addr data   write                     no answer
    1 addr n      read n addresses          n words
    2 hi lo       run until idle            cycles (2 words), 1 if idle before hi:lo cycles else 0
    3 0 0         fill the external memory  1
    4 0 0         reset                     1
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import IO

from lbq_hw.sim.verilog import SimulatorError

WRITE, READ, WAIT, FILL, RESET = range(5)


class Commands:
    """A `lbq_hw.host.Transport` over two files, one for commands and one for answers."""

    def __init__(self, requests: IO[bytes], answers: IO[bytes]) -> None:
        self._requests, self._answers = requests, answers

    def write(self, address: int, words: Sequence[int]) -> None:
        """Write consecutive addresses."""
        commands = [
            struct.pack("<III", WRITE, address + offset, word) for offset, word in enumerate(words)
        ]
        self._send(b"".join(commands))

    def read(self, address: int, count: int) -> list[int]:
        """Read consecutive addresses."""
        self._send(struct.pack("<III", READ, address, count))
        return list(struct.unpack(f"<{count}I", self._receive(4 * count)))

    def wait(self, limit: int) -> bool:
        """Run until the core is idle, for at most `limit` cycles; returns whether it is idle."""
        self._send(struct.pack("<III", WAIT, limit >> 32, limit & 0xFFFFFFFF))
        return bool(struct.unpack("<III", self._receive(12))[2])

    def fill(self) -> None:
        """Fill the external memory from its file."""
        self._send(struct.pack("<III", FILL, 0, 0))
        self._receive(4)

    def reset(self) -> None:
        """Reset the core. Its memories stay as they are; an external one is calibrated again."""
        self._send(struct.pack("<III", RESET, 0, 0))
        self._receive(4)

    def _send(self, data: bytes) -> None:
        try:
            self._requests.write(data)
        except OSError:
            raise SimulatorError(self._ended()) from None

    def _receive(self, count: int) -> bytes:
        try:
            self._requests.flush()
            data = self._answers.read(count)
        except OSError:
            data = b""
        if len(data) != count:
            raise SimulatorError(self._ended())
        return data

    def _ended(self) -> str:
        """Why there is no answer."""
        return "the simulation ended before its time"
