"""The computer that a board is plugged into: its USB devices, programs and ports."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lbq_hw.host import SerialTransport, ports
from lbq_hw.host.ports import Port

SECONDS = 600
"""Seconds until a tool is given up: a slow bridge takes minutes to write a flash."""


@dataclass(frozen=True, kw_only=True)
class Usb:
    """A USB device: its `id` as ``vendor:product``, its own name, and its device files."""

    id: str
    name: str
    serial: str
    nodes: tuple[Path, ...]


@dataclass(frozen=True, kw_only=True)
class Ran:
    """The result of a program: its exit code, and all that it printed."""

    code: int
    output: str


def run(command: Sequence[str]) -> Ran:
    """Run a program to its end; exit code 127 if it cannot be run, 124 if it takes too long."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=SECONDS,
            check=False,
        )
    except OSError as error:
        return Ran(code=127, output=str(error))
    except subprocess.TimeoutExpired as error:
        said = (error.stdout or b"").decode(errors="replace")
        return Ran(code=124, output=f"{said}\nit did not end within {SECONDS} seconds")
    return Ran(code=done.returncode, output=done.stdout.decode(errors="replace"))


def allowed(path: Path) -> bool:
    """Whether this user may read and write a file."""
    return os.access(path, os.R_OK | os.W_OK)


if sys.platform == "win32":

    def group(path: Path) -> str:
        """The group that a file belongs to; this system has none."""
        del path
        return ""

else:
    import grp

    def group(path: Path) -> str:
        """The group that a file belongs to."""
        number = path.stat().st_gid
        try:
            return grp.getgrgid(number).gr_name
        except KeyError:
            return str(number)


@dataclass(frozen=True, kw_only=True)
class Machine:
    """Finds devices, runs programs and opens ports.

    `usb` is the folder in which Linux shows USB devices, `dev` the folder of their device files.
    `which` finds a program, `run` runs it. `ports` lists the serial ports, `open` opens a port.
    `allowed` and `group` tell who may use a file, and `sleep` waits for some seconds.
    """

    usb: Path = Path("/sys/bus/usb/devices")
    dev: Path = Path("/dev")
    which: Callable[[str], str | None] = shutil.which
    run: Callable[[Sequence[str]], Ran] = run
    ports: Callable[[], list[Port]] = ports.found
    open: Callable[..., SerialTransport] = field(default=SerialTransport.open)
    allowed: Callable[[Path], bool] = allowed
    group: Callable[[Path], str] = group
    sleep: Callable[[float], object] = time.sleep

    def devices(self) -> list[Usb] | None:
        """All USB devices; None if the system does not show them as files."""
        if not self.usb.is_dir():
            return None
        return [
            self._device(folder)
            for folder in sorted(self.usb.iterdir())
            if (folder / "idVendor").is_file()
        ]

    def _device(self, folder: Path) -> Usb:
        def said(name: str) -> str:
            try:
                return (folder / name).read_text("utf-8", errors="replace").strip()
            except OSError:
                return ""

        bus, number = (int(said(name) or 0) for name in ("busnum", "devnum"))
        # A bridge that is programmed as a HID, such as DAPLink, also has a hidraw file.
        hidden = sorted(found.name for found in folder.glob("*:*/*/hidraw/hidraw*"))
        return Usb(
            id=f"{said('idVendor')}:{said('idProduct')}",
            name=" ".join(filter(None, (said("manufacturer"), said("product")))),
            serial=said("serial"),
            nodes=(
                self.dev / "bus" / "usb" / f"{bus:03}" / f"{number:03}",
                *(self.dev / name for name in hidden),
            ),
        )
