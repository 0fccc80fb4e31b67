"""Goes through the steps, and skips steps that need a failed step."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from lbq_hw.boards import Board
from lbq_hw.bring_up.machine import Machine, Usb
from lbq_hw.host import Device, SerialTransport, ports
from lbq_hw.host.transport import DeviceError
from lbq_hw.package import Package


class State(enum.StrEnum):
    """How a step ended."""

    OK = "ok"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """The result of a step: one sentence, the remedy if the step failed, and `facts` for JSON."""

    state: State
    text: str
    mend: str = ""
    facts: dict[str, Any] = field(default_factory=dict)


def ok(text: str, **facts: Any) -> Finding:
    return Finding(state=State.OK, text=text, facts=facts)


def failed(text: str, mend: str, **facts: Any) -> Finding:
    return Finding(state=State.FAILED, text=text, mend=mend, facts=facts)


def skipped(text: str, **facts: Any) -> Finding:
    return Finding(state=State.SKIPPED, text=text, facts=facts)


@dataclass(kw_only=True)
class Visit:
    """A board on a machine, and the findings so far.

    `port` is a port's name, or `ports.AUTO`; `load`: whether to load the bitstream. `plugged` are
    the USB devices that can be the board, set by the step `usb`.
    """

    board: Board
    package: Package | None
    machine: Machine
    port: str = ports.AUTO
    load: bool = True
    timeout: float = 1.0
    plugged: tuple[Usb, ...] = ()

    @property
    def packed(self) -> Package:
        """The package, for steps that are skipped without a package."""
        assert self.package is not None
        return self.package

    @contextmanager
    def line(self, *, timeout: float | None = None) -> Iterator[SerialTransport]:
        """The line to the board's core; the name of the port is kept."""
        if self.port == ports.AUTO:
            self.port = ports.choose(self.machine.ports(), self._answers)
        baud = self.packed.baud
        with self.machine.open(self.port, baud=baud, timeout=timeout or self.timeout) as line:
            yield line

    @contextmanager
    def device(self) -> Iterator[tuple[SerialTransport, Device]]:
        """The core behind the line."""
        with self.line() as line:
            yield line, Device(line, self.packed.program)

    def _answers(self, name: str) -> bool:
        try:
            with self.machine.open(name, baud=self.packed.baud, timeout=self.timeout / 10) as line:
                Device(line, self.packed.program)
        except DeviceError:
            return False
        return True


@dataclass(frozen=True, kw_only=True)
class Step:
    """One check.

    `needs` are earlier steps: this step is skipped if one of them failed, or was skipped because of
    a failure. `packed`: it needs a package.
    """

    name: str
    title: str
    look: Callable[[Visit], Finding]
    needs: tuple[str, ...] = ()
    packed: bool = False


def walk(
    visit: Visit, steps: Sequence[Step], begin: Callable[[Step], object]
) -> Iterator[tuple[Step, Finding]]:
    """Yield each step with its finding; `begin` is called before each step."""
    causes: dict[str, str] = {}  # the failed step, by step that cannot be done because of it
    for step in steps:
        cause = next((causes[name] for name in step.needs if name in causes), None)
        if cause is not None:
            causes[step.name] = cause
            yield step, skipped(f"not reached: {cause} failed")
            continue
        if step.packed and visit.package is None:
            yield step, skipped("needs a package: give --package")
            continue
        begin(step)
        found = step.look(visit)
        if found.state == State.FAILED:
            causes[step.name] = step.name
        yield step, found
