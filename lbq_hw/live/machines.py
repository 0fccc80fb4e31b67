"""The machines that run an input: the golden model, or a board behind a port."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lbq_hw import golden
from lbq_hw.host import rates
from lbq_hw.host.device import Device
from lbq_hw.host.line import SerialTransport
from lbq_hw.network import Network
from lbq_hw.numeric import Integers
from lbq_hw.package import Package


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Logits of one input, and its time: `seconds` as the host sees it, and the `cycles` of the
    core with their time, None without a core.
    """

    logits: Integers
    seconds: float
    cycles: int | None = None
    core_seconds: float | None = None


class Machine(Protocol):
    """Runs one raw input at a time."""

    @property
    def where(self) -> str: ...

    def run(self, raw: NDArray[np.uint8]) -> Outcome: ...


class GoldenMachine:
    """The golden model."""

    where = "golden model"

    def __init__(self, network: Network) -> None:
        self._network = network

    def run(self, raw: NDArray[np.uint8]) -> Outcome:
        began = time.perf_counter()
        logits = golden.run(self._network, raw[np.newaxis]).logits[0]
        return Outcome(logits=logits, seconds=time.perf_counter() - began)


class BoardMachine:
    """A board, or a simulated one, that holds the package's program."""

    def __init__(self, packed: Package, line: SerialTransport) -> None:
        self._line, self._clock_hz = line, packed.clock_hz
        self._device = device = Device(line, packed.program)
        self.where = packed.board
        if packed.config.external or line.baked() != device.tag:
            device.load()

    def run(self, raw: NDArray[np.uint8]) -> Outcome:
        began = self._line.now()
        logits = self._device.run(raw)
        seconds = self._line.now() - began
        cycles = self._device.counters().cycles
        return Outcome(
            logits=logits,
            seconds=seconds,
            cycles=cycles,
            core_seconds=cycles / self._clock_hz,
        )


@contextmanager
def board(packed: Package, port: str) -> Iterator[BoardMachine]:
    """The board behind a port."""
    with rates.opened(packed, port) as line:
        yield BoardMachine(packed, line)
