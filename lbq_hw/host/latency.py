"""The latency timer of a USB bridge: reads it, and asks the driver for a shorter time.

An FTDI chip, or a compatible one, sends received bytes when a packet is full or when its latency
timer ends. The timer takes 16 ms unless the driver is asked for low latency.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

SYSTEM = Path("/sys/bus/usb-serial/devices")
"""Where Linux shows the timers."""
LEAST = 1
"""Milliseconds of a timer at its shortest."""


def lower(port: Any, name: str, system: Path = SYSTEM) -> None:
    """Ask for low latency if the system allows it; the link also works without.

    First through the port: pyserial raises ValueError for a port of Linux without such a setting,
    NotImplementedError on other POSIX systems, and has no such method on Windows. Then through the
    file of the timer, which udev's rules may let users write.
    """
    if hasattr(port, "set_low_latency_mode"):
        with contextlib.suppress(ValueError, NotImplementedError, OSError):
            port.set_low_latency_mode(True)
    told = milliseconds(name, system)
    if told is not None and told > LEAST:
        with contextlib.suppress(OSError):
            _timer(name, system).write_text(f"{LEAST}\n", encoding="ascii")


def milliseconds(name: str, system: Path = SYSTEM) -> int | None:
    """The latency timer of a port; None if the system does not show one."""
    try:
        return int(_timer(name, system).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def _timer(name: str, system: Path) -> Path:
    return system / Path(os.path.realpath(name)).name / "latency_timer"
