"""The time of a simulated board, by which its line's time-outs count.

A simulation is as fast as its machine, so that only its own time says whether an answer is late.
It tells that time through its pseudo-terminal, as the size of the terminal's window, which a serial
line has no use for: `ROWS` rows, and in the other three numbers a count of microseconds, highest
bits first. So every host that opens the terminal finds the time, by whatever name and from
whatever process, it ends with the terminal, and a real port has none.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable
from typing import Protocol

Clock = Callable[[], float]
"""Tells seconds from some start on; OSError if there is nobody any more to tell them."""
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
    """The clock of the simulated board behind a port; None where there is a real one."""

    def seconds() -> float:
        _, high, middle, low = _window(port)
        return (high << 32 | middle << 16 | low) / 1e6

    try:
        return seconds if _window(port)[0] == ROWS else None
    except OSError:
        return None
