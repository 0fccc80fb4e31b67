"""The time of a simulated board, which its line uses for time-outs.

A simulation's speed depends on the machine, so only its simulated time tells whether an answer is
late. The simulation publishes this time as the window size of its pseudo-terminal, which a serial
line does not need: `ROWS` rows, and a count of microseconds in the other three numbers, highest
bits first. So any host that opens the terminal can read the time, in any process and under any
name. The time disappears with the terminal, and a real port does not have it.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable
from typing import Protocol

Clock = Callable[[], float]
"""Returns seconds since some start; OSError if the simulation has ended."""
ROWS = 0x4C42
"""Rows that no window has: "LB"."""
_WINDOW = struct.Struct("=4H")


class Descriptor(Protocol):
    """An open file."""

    def fileno(self) -> int: ...


if sys.platform == "win32":

    def _window(port: Descriptor) -> tuple[int, ...]:
        raise OSError(f"{port} is no terminal")

else:
    import fcntl
    import termios

    def _window(port: Descriptor) -> tuple[int, ...]:
        return _WINDOW.unpack(fcntl.ioctl(port.fileno(), termios.TIOCGWINSZ, bytes(_WINDOW.size)))


def of_simulation(port: Descriptor) -> Clock | None:
    """The clock of the simulated board behind a port; None for a real board."""

    def seconds() -> float:
        _, high, middle, low = _window(port)
        return (high << 32 | middle << 16 | low) / 1e6

    try:
        return seconds if _window(port)[0] == ROWS else None
    except OSError:
        return None
