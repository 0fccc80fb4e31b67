"""From step to step, leaving out those that need one that failed."""

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
    """What a step saw, in one sentence; what mends it, where it failed; and `facts` for JSON."""

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
    """A board on a machine, and what was found out so far.

    `port` is a port's name, or `ports.AUTO`; `load`: whether the bitstream is to be loaded.
    `plugged` are the USB devices that can be the board, once they were looked for.
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
        """The package, in steps that are skipped without one."""
        assert self.package is not None
        return self.package

    @contextmanager
    def line(self, *, timeout: float | None = None) -> Iterator[SerialTransport]:
        """The line to the board's core, by a port whose name is kept."""
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
    """One thing to look at.

    `needs` are steps before it without which it makes no sense: it is left out if one of them
    failed or was left out for that reason. `packed`: it needs a package.
    """

    name: str
    title: str
    look: Callable[[Visit], Finding]
    needs: tuple[str, ...] = ()
    packed: bool = False


def walk(
    visit: Visit, steps: Sequence[Step], begin: Callable[[Step], object]
) -> Iterator[tuple[Step, Finding]]:
    """Each step with what it found; `begin` is told of each before it looks."""
    causes: dict[str, str] = {}  # the step that failed, by those that it keeps from being done
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
