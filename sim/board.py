"""A whole board in Verilator behind a pseudo-terminal: ``python -m sim.board --help``."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import subprocess
import sys
import tempfile
import termios
import tty
from collections.abc import Iterator, Sequence
from pathlib import Path

from lbq_hw import boards, package
from lbq_hw.chips import Chip
from lbq_hw.commands import ending
from lbq_hw.commands.arguments import command_parser
from lbq_hw.core.streaming.system import StreamSystem
from lbq_hw.core.system import System
from lbq_hw.host import __main__ as host
from lbq_hw.host import clock
from lbq_hw.package import Package
from lbq_hw.sim.sdram import MODEL, tape_contents
from lbq_hw.sim.verilator import CACHE, SimulatorError, build_bench
from lbq_hw.sim.verilog import convert_large
from lbq_hw.sim.with_memory import Memory, SystemWithMemory
from lbq_hw.streaming import package as stream_package
from lbq_hw.streaming.package import StreamPackage

BENCH = Path(__file__).with_name("board.cpp")
WAVES = Path("build/waves/board.fst")
"""File for the waves of a run with a difference."""
DIFFERS = 1
"""The host's exit code for a difference."""
SETTLE = 4096  # cycles, of a core without a door
GRACE = 10.0
"""Seconds within which a simulation must end after SIGTERM."""
_EPILOG = """
examples:
  python -m sim.board --package build/demo/icebreaker/package
      prints the terminal's name; then, in another shell:
  python -m lbq_hw.host --port NAME --package build/demo/icebreaker/package
  python -m sim.board --package build/demo/icebreaker/package --host --images 20 --compare
      or both at once: all arguments after --host go to lbq host
The tape of a package with external memory is in the simulated SDRAM from the start.
Runs until it is killed, or with --once until the host hangs up. The host reads the simulated time
through the terminal, so time-outs do not depend on the speed of this machine.
"""


def build(packed: Package | StreamPackage, *, waves: bool = False, cache: Path = CACHE) -> Path:
    """Compile the simulation of a package's board, with support for waves if `waves`."""
    made = {"top": "system", "waves": waves, "cache": cache}
    if isinstance(packed, StreamPackage):
        core = StreamSystem(packed.config, clock_hz=packed.clock_hz, baud=packed.baud)
        return build_bench(convert_large(core, name="system"), BENCH, **made)
    if packed.config.external:
        chip = _chip(packed)
        memory = Memory(chip=chip, clock_hz=packed.clock_hz)
        system = SystemWithMemory(packed.config, memory, baud=packed.baud, opening=packed.opening)
        text = convert_large(system, name="system") + MODEL.read_text(encoding="utf-8")
        return build_bench(text, BENCH, **made)
    image = packed.program.image() if packed.baked else None
    system = System(
        packed.config,
        clock_hz=packed.clock_hz,
        baud=packed.baud,
        image=image,
        opening=packed.opening,
    )
    return build_bench(convert_large(system, name="system"), BENCH, **made)


def _chip(packed: Package) -> Chip:
    """The external memory of a package's board, which may be a user's own board."""
    if packed.memory is not None:
        return packed.memory.described()
    chip = boards.find(packed.board).chip
    if chip is None:
        raise ValueError(f"board {packed.board} has no external memory")
    return chip


def preloaded(packed: Package) -> bytes:
    """The tape in the external memory, so that the host need not write it over a simulated line."""
    return tape_contents(packed.tape, packed.config.external) if packed.tape else b""


def settling(packed: Package | StreamPackage) -> list[str]:
    """Options for a core with a door: it spreads the pixels of its queue before it is busy."""
    if isinstance(packed, StreamPackage) or packed.opening is None:
        return []
    pixels = packed.opening.pixels
    return [f"+settle={SETTLE + 2 * pixels.words * pixels.spread_cycles}"]


class Preload:
    """A file with the initial contents of the external memory; `close` deletes it."""

    def __init__(self, memory: bytes) -> None:
        self._file = None
        self.options: list[str] = []
        if memory:
            self._file = tempfile.NamedTemporaryFile(suffix=".bin")  # noqa: SIM115
            self._file.write(memory)
            self._file.flush()
            self.options = [f"+sdram_file={self._file.name}"]

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


class Board:
    """A running simulation; `name` is the terminal to open as a serial port.

    `memory` is the initial contents of the external memory, in the format of the model's file.
    `waves` is a file for waves, if the program was built for them. `options` are further arguments
    of the program.
    """

    def __init__(
        self,
        program: Path,
        *,
        clock_hz: int,
        once: bool = False,
        memory: bytes = b"",
        waves: Path | None = None,
        options: Sequence[str] = (),
    ) -> None:
        master, slave = os.openpty()
        try:
            tty.setraw(slave)
            # Set before any host can open the terminal: its size tells the simulated time.
            termios.tcsetwinsize(slave, (clock.ROWS, 0))
            self.name = os.ttyname(slave)
        finally:
            os.close(slave)  # so that the simulation sees the host hang up
        command = [str(program.resolve()), str(master), str(clock_hz), str(int(once))]
        self._memory = Preload(memory)
        command += self._memory.options
        command += [] if waves is None else [f"+waves={waves.resolve()}"]
        command += options
        self._process = subprocess.Popen(command, pass_fds=(master,), stdin=subprocess.DEVNULL)
        os.close(master)

    @property
    def process(self) -> int:
        """The simulation's process."""
        return self._process.pid

    def wait(self) -> int:
        """Wait for the end of the simulation; its exit code."""
        return self._process.wait()

    def stop(self) -> None:
        """End the simulation as if the power was cut; waves are closed."""
        self._process.terminate()
        try:
            self._process.wait(timeout=GRACE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._memory.close()


@contextlib.contextmanager
def running(
    program: Path, *, clock_hz: int, memory: bytes = b"", options: Sequence[str] = ()
) -> Iterator[Board]:
    """A simulation that ends with the ``with`` block."""
    board = Board(program, clock_hz=clock_hz, memory=memory, options=options)
    try:
        yield board
    finally:
        board.stop()


def main(argv: list[str] | None = None, *, prog: str = "python -m sim.board") -> int:
    parser = command_parser(
        prog,
        "Simulate the complete design of a package, UART pins included, behind a "
        "pseudo-terminal that the host opens like a serial port.",
        _EPILOG,
    )
    parser.add_argument("--package", required=True, metavar="DIR", help="folder of the package")
    parser.add_argument("--link", type=Path, metavar="F", help="make a symbolic link to the port")
    parser.add_argument("--once", action="store_true", help="end when the host hangs up")
    parser.add_argument("--json", action="store_true", help='print {"port": NAME}')
    parser.add_argument(
        "--waves",
        type=Path,
        metavar="F",
        help=f"write waves as FST; without it, --host writes them to {WAVES} when a run differs",
    )
    parser.add_argument(
        "--host",
        nargs=argparse.REMAINDER,
        metavar="...",
        help="run lbq host on it with the arguments that follow, then end",
    )
    args = parser.parse_args(argv)
    code = _run(args, args.waves)
    if code == DIFFERS and args.host is not None and args.waves is None:
        WAVES.parent.mkdir(parents=True, exist_ok=True)
        print(f"the same again with waves, to {WAVES}", file=sys.stderr)
        _run(args, WAVES)
    return code


def _run(args: argparse.Namespace, waves: Path | None) -> int:
    """Simulate until the host or the simulation ends; returns an exit code."""
    try:
        streams = stream_package.found(Path(args.package))
        packed = stream_package.read(args.package) if streams else package.read(args.package)
        program = build(packed, waves=waves is not None)
        board = Board(
            program,
            clock_hz=packed.clock_hz,
            once=args.once,
            memory=b"" if isinstance(packed, StreamPackage) else preloaded(packed),
            waves=waves,
            options=settling(packed),
        )
    except (ValueError, OverflowError, MemoryError, OSError, SimulatorError) as error:
        return ending.refuse(error)
    try:
        if args.host is not None:
            return host.main(["--port", board.name, "--package", args.package, *args.host])
        if args.link is not None:
            args.link.unlink(missing_ok=True)
            args.link.symlink_to(board.name)
        print(json.dumps({"port": board.name}) if args.json else board.name, flush=True)
        return board.wait()
    except OSError as error:
        return ending.refuse(f"{args.link} cannot be linked ({error.strerror})")
    except KeyboardInterrupt:
        return ending.interrupted()
    finally:
        board.stop()
        if args.link is not None and args.link.is_symlink():
            args.link.unlink()


if __name__ == "__main__":  # hands over to the module of the full name
    sys.exit(ending.run(importlib.import_module("lbq_hw.sim.board").main))
