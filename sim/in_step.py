"""A simulated board in step with its host: measures a run in simulated time.

`InStep` is a serial port; so is `Stepped`, without a package. Simulated time passes only while the
host waits for an answer. So the time of a run depends only on the line, the USB bridge and the
core, not on the host's own work or on the speed of the simulation.
"""

from __future__ import annotations

import contextlib
import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from lbq_hw.host.line import Port, SerialTransport
from lbq_hw.package import Package
from lbq_hw.sim.board import Preload, build, preloaded, settling
from lbq_hw.sim.verilator import CACHE

WAIT = 0.02
"""Seconds for which a read waits for an answer, as in `SerialTransport.open`."""
PACKET = 62
"""Bytes of a full packet, which a bridge sends at once: of an FTDI chip at full speed."""
_ANSWER = struct.Struct("=QQ")


class Stepped:
    """A running simulation as a serial port: `program` was built from `lbq_hw.sim.board.BENCH`.

    The USB bridge keeps an answer until it has `packet` bytes of them, or for `latency` seconds
    after the first of these. A read waits for `wait` seconds. `now` tells the seconds of the
    simulation. `options` are those of the program.
    """

    def __init__(
        self,
        program: Path,
        *,
        clock_hz: int,
        baud: int,
        latency: float,
        packet: int,
        wait: float,
        options: Sequence[str] = (),
    ) -> None:
        self._clock_hz, self._baud = clock_hz, baud
        self._before = self._cycles = 0
        self._wait = round(wait * clock_hz)
        self._given = b""
        self._program = [str(program.resolve()), "pipe", str(clock_hz), str(round(1e6 * latency)),
                         str(packet), *options]  # fmt: skip
        self._process = self._started()
        self.baudrate = baud

    def _started(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(self._program, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def power_cycle(self) -> None:
        """Switch the board's power off and on; its USB bridge keeps its bytes."""
        self._stop()
        self._before, self._cycles = self._before + self._cycles, 0
        self._process = self._started()
        self._command(b"b", self._baud)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def process(self) -> int:
        """The simulation's process."""
        return self._process.pid

    def now(self) -> float:
        """Seconds since the first reset."""
        return (self._before + self._cycles) / self._clock_hz

    @property
    def baudrate(self) -> int:
        return self._baud

    @baudrate.setter
    def baudrate(self, value: int, /) -> None:
        self._baud = value
        self._command(b"b", value)

    @property
    def in_waiting(self) -> int:
        return len(self._given)

    def write(self, data: bytes, /) -> int:
        self._command(b"w", len(data), data)
        return len(data)

    def read(self, size: int = 1, /) -> bytes:
        """The bytes that have come, or come within the waiting time."""
        if not self._given:
            self._command(b"r", self._wait)
            self._cycles, count = _ANSWER.unpack(self._get(_ANSWER.size))
            self._given = self._get(count)
        data, self._given = self._given[:size], self._given[size:]
        return data

    def close(self) -> None:
        """End the simulation."""
        self._stop()

    def _stop(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()

    def transport(self, timeout: float = 1.0) -> SerialTransport:
        """The line to the core, at the rate of its reset, in the simulation's time."""
        return SerialTransport(self, timeout=timeout, clock=self.now, sequence=0)

    def _command(self, kind: bytes, number: int, data: bytes = b"") -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(kind + struct.pack("=Q", number) + data)
        self._process.stdin.flush()

    def _get(self, count: int) -> bytes:
        assert self._process.stdout is not None
        data = self._process.stdout.read(count)
        if len(data) < count:
            raise OSError("the simulated board has ended")
        return data


class InStep(Stepped):
    """A running simulation of a package's board, with what its memory holds."""

    def __init__(
        self,
        packed: Package,
        *,
        latency: float = 0.0,
        packet: int = PACKET,
        wait: float = WAIT,
        cache: Path = CACHE,
    ) -> None:
        self._memory = Preload(preloaded(packed))
        super().__init__(
            build(packed, cache=cache),
            clock_hz=packed.clock_hz,
            baud=packed.baud,
            latency=latency,
            packet=packet,
            wait=wait,
            options=(*self._memory.options, *settling(packed)),
        )

    def close(self) -> None:
        """End the simulation, and remove the file of its memory."""
        super().close()
        self._memory.close()


class PassedOn:
    """A serial port that passes everything on to another one."""

    def __init__(self, port: Port) -> None:
        self._port = port

    @property
    def baudrate(self) -> int:
        return self._port.baudrate

    @baudrate.setter
    def baudrate(self, value: int, /) -> None:
        self._port.baudrate = value

    @property
    def in_waiting(self) -> int:
        return self._port.in_waiting

    def write(self, data: bytes, /) -> int | None:
        return self._port.write(data)

    def read(self, size: int = 1, /) -> bytes:
        return self._port.read(size)

    def close(self) -> None:
        self._port.close()
