"""The core in Icarus through cocotb, as a process that serves the host's port."""

from __future__ import annotations

import os
import signal
import socket
import struct
import tempfile
import threading
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType

from lbq_hw.config import CoreConfig
from lbq_hw.sim.benches.harness import Settings
from lbq_hw.sim.commands import Commands
from lbq_hw.sim.runner import Design, compile_design, simulate
from lbq_hw.sim.verilator import TOP, rtl
from lbq_hw.sim.verilog import SimulatorError

LIMIT = 3600.0
"""Seconds of wall-clock time for which a core may run."""
GRACE = 2.0
"""Seconds within which a core must end after an error in this process."""


def build(config: CoreConfig, *, waves: bool = False) -> Design:
    """Compile the core; a build of the same Verilog is reused."""
    return compile_design(rtl(config), top=TOP, simulator="icarus", waves=waves)


class Simulated(Commands):
    """A running core: `write`, `read` and `wait` at its port. As a context, it ends its process.

    After `limit` seconds the core is ended, and calls that wait for it raise.
    """

    def __init__(self, design: Design, *, waves: Path | None = None, limit: float = LIMIT) -> None:
        self._failure: Exception | None = None
        with ExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="lbq-"))
            server = stack.enter_context(socket.socket(socket.AF_UNIX))
            server.bind(f"{folder}/port")
            server.listen(1)
            server.settimeout(0.1)
            settings = Settings(socket=f"{folder}/port")
            self._thread = threading.Thread(target=self._run, args=(design, settings, waves, limit))
            self._thread.start()
            connection = stack.enter_context(self._accept(server))
            connection.settimeout(None)
            requests = stack.enter_context(connection.makefile("wb"))
            answers = stack.enter_context(connection.makefile("rb"))
            super().__init__(requests, answers)
            (self._process,) = struct.unpack("<I", self._receive(4))
            self._open = stack.pop_all()

    def _run(self, design: Design, settings: Settings, waves: Path | None, limit: float) -> None:
        module, variables = "lbq_hw.sim.benches.server", settings.to_env()
        try:
            run = simulate(design, module, variables=variables, waves=waves, limit=limit)
            if run.failures:
                raise SimulatorError("; ".join(run.failures.values()))
        except Exception as error:
            self._failure = error

    def _accept(self, server: socket.socket) -> socket.socket:
        while self._thread.is_alive():
            try:
                return server.accept()[0]
            except TimeoutError:
                continue
        raise self._failure or SimulatorError("the simulation ended before its time")

    def __enter__(self) -> Simulated:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with suppress(OSError):  # the core may have ended, and take no more commands
            self._open.close()  # ends the testbench, unless it waits for the core
        self._thread.join(None if error is None else GRACE)
        if self._thread.is_alive():
            os.kill(self._process, signal.SIGKILL)
            self._thread.join()
        elif self._failure is not None and (error is None or isinstance(error, SimulatorError)):
            raise self._failure from None
