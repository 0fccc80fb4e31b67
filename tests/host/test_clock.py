"""The time that a simulation tells through its pseudo-terminal."""

from __future__ import annotations

import fcntl
import os
import struct
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest
import serial

from lbq_hw.host import clock

Terminal = tuple[int, serial.Serial]


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    master, slave = os.openpty()
    name = os.ttyname(slave)
    with serial.Serial(name, 115200) as port:
        os.close(slave)
        yield master, port


def tell(master: int, *window: int) -> None:
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("=4H", *window))


def test_microseconds_are_read_from_three_numbers(terminal: Terminal) -> None:
    master, port = terminal
    tell(master, clock.ROWS, 0, 0, 0)
    seconds = clock.of_simulation(port)
    assert seconds is not None
    assert seconds() == 0
    tell(master, clock.ROWS, 0x0003, 0x0002, 0x0001)
    assert seconds() == 0x0003_0002_0001 / 1e6
    os.close(master)
    with pytest.raises(OSError, match="Input/output error"):
        seconds()


@pytest.mark.parametrize("window", [(0, 0, 0, 0), (24, 80, 0, 0)])
def test_a_terminal_without_a_simulation_has_no_such_clock(
    terminal: Terminal, window: tuple[int, ...]
) -> None:
    master, port = terminal
    tell(master, *window)
    assert clock.of_simulation(port) is None
    os.close(master)


def test_what_is_no_terminal_has_no_such_clock(tmp_path: Path) -> None:
    with (tmp_path / "file").open("w") as file:
        assert clock.of_simulation(file) is None
