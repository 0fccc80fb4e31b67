"""A machine that a test makes up, and a package for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from host.test_line import Wire

from lbq_hw import boards, datasets, file, package, zoo
from lbq_hw.bring_up.answers import RATES
from lbq_hw.bring_up.machine import Machine, Ran
from lbq_hw.bring_up.walk import Visit
from lbq_hw.compiler import smallest_for
from lbq_hw.host import SerialTransport, ports
from lbq_hw.host.ports import Port
from lbq_hw.isa import regions
from lbq_hw.package import Package

CLOCK_HZ = 48_000_000
LINK = Port(name="ttyUSB1", what="Dual RS232-HS (0403:6010), channel B: the link", may=True,
            usb="0403:6010")  # fmt: skip
JTAG = Port(name="ttyUSB0", what="channel A", may=False, usb="0403:6010")


def pack(folder: Path, *, board: str = "icebreaker", images: int = 2, **more: Any) -> Package:
    """Digits for a board, at the rate of `Wire`."""
    bitstream = None
    if board != "sim":
        bitstream = folder / "made.bin"
        bitstream.write_bytes(b"bits")
    model = zoo.find("digits")
    facts = {
        "config": smallest_for(file.load(model), lanes=4, word=32),
        "model": model,
        "images": datasets.load("digits", split="test").images[:images] if images else None,
    } | more
    return package.write(
        folder / "package", board=board, clock_hz=CLOCK_HZ, baud=Wire.RESET, baked=False,
        bitstream=bitstream, **facts,
    )  # fmt: skip


class Core(Wire):
    """The core of a package behind a port, idle; it has the rate that it is told."""

    def __init__(self, packed: Package) -> None:
        super().__init__()
        self.opened = 0
        registers = {register.address: 0 for register in regions.REGISTERS.values()}
        digest = int(packed.config.digest[:8], 16)
        self.model.memory.update(registers | {0: regions.MAGIC, 1: digest})

    def write(self, data: bytes) -> int:
        before = len(self.model.accepted)
        written = super().write(data)
        for frame in self.model.accepted[before:]:
            if frame[1] >> 6 == 3:
                told = CLOCK_HZ / int.from_bytes(frame[2:6], "little")
                # The rate that is meant: no other is as near.
                self.rate = min((self.RESET, *RATES), key=lambda rate: abs(rate - told))
        return written

    def open(self, name: str, *, baud: int, timeout: float) -> SerialTransport:
        del name, timeout
        self.opened += 1
        self.baudrate = baud
        return SerialTransport(self, timeout=0.002)


def silent(name: str, *, baud: int, timeout: float) -> SerialTransport:
    del name, baud, timeout
    return SerialTransport(Wire(lambda _: b""), timeout=0.0001)


@dataclass
class Fake:
    """What is plugged in, installed and allowed; `ran` are the programs that were run."""

    folder: Path
    devices: dict[str, dict[str, str]] = field(default_factory=dict)
    ports: list[Port] = field(default_factory=list)
    tools: dict[str, Callable[[Sequence[str]], Ran]] = field(default_factory=dict)
    closed: set[str] = field(default_factory=set)
    open: Callable[..., SerialTransport] = silent
    ran: list[list[str]] = field(default_factory=list)
    slept: list[float] = field(default_factory=list)
    sysfs: bool = True

    def plug(self, identity: str, **facts: str) -> None:
        vendor, product = identity.split(":")
        number = str(len(self.devices) + 1)
        self.devices[f"1-{number}"] = {
            "idVendor": vendor, "idProduct": product, "busnum": "1", "devnum": number,
        } | facts  # fmt: skip

    def machine(self) -> Machine:
        usb, dev = self.folder / "usb", self.folder / "dev"
        (dev / "bus" / "usb" / "001").mkdir(parents=True, exist_ok=True)
        if self.sysfs:
            usb.mkdir(exist_ok=True)
        for name, files in self.devices.items():
            (usb / name).mkdir(exist_ok=True)
            for fact, text in files.items():
                (usb / name / fact).write_text(text)
            (dev / "bus" / "usb" / "001" / f"{int(files['devnum']):03}").touch()
        for port in self.ports:
            (dev / port.name).touch()
        return Machine(
            usb=usb, dev=dev, open=self.open, ports=lambda: self.ports, run=self._run,
            which=lambda name: f"/bin/{name}" if name in self.tools else None,
            allowed=lambda path: path.name not in self.closed, group=lambda _: "dialout",
            sleep=self.slept.append,
        )  # fmt: skip

    def _run(self, command: Sequence[str]) -> Ran:
        self.ran.append(list(command))
        return self.tools[Path(command[0]).name](command[1:])

    def visit(self, board: str, packed: Package | None = None, **more: Any) -> Visit:
        facts: dict[str, Any] = {"port": ports.AUTO} | more
        return Visit(board=boards.find(board), package=packed, machine=self.machine(), **facts)
