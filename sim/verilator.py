"""The core in Verilator, as a process that speaks the host's port at full speed."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from amaranth.back import verilog

from lbq_hw.config import CoreConfig
from lbq_hw.core.accelerator import Accelerator

BENCH = Path(__file__).with_name("bench.cpp")
TOP = "accelerator"
# Verilator's makefile has its own optimisation flags, which come after -CFLAGS. What it calls slow
# runs once, at the start.
FLAGS = ("-O3", "--x-assign", "fast", "--x-initial", "fast", "--noassert", "-Wno-fatal",
         "-Wno-lint", "-CFLAGS", "-march=native", "-MAKEFLAGS", "OPT_FAST=-O2",
         "-MAKEFLAGS", "OPT_SLOW=-O0", "-MAKEFLAGS", "OPT_GLOBAL=-O1")  # fmt: skip


# Rows of memory that start as 0, as they do anyway here: without them a build takes seconds.
# Statements of logic look the same, so that only initial blocks are searched.
_INITIAL = re.compile(r"^  initial begin\n.*?^  end\n", re.MULTILINE | re.DOTALL)
_ZERO = re.compile(r"^    \S+\[\d+\] = \d+'h0+;\n", re.MULTILINE)


class SimulatorError(RuntimeError):
    """A simulator that is missing, does not build the core or dies; one sentence and its log."""


def rtl(config: CoreConfig) -> str:
    """The core as Verilog."""
    os.environ.setdefault("AMARANTH_USE_YOSYS", "builtin")
    return verilog.convert(Accelerator(config), name=TOP, strip_internal_attrs=True)


def build(config: CoreConfig, *, waves: bool = False, cache: Path = Path("build/sim")) -> Path:
    """Compile the bench for a core; a build of the same text is used again."""
    verilator = shutil.which("verilator")
    if verilator is None:
        raise SimulatorError("verilator is missing: sudo apt install verilator")
    text = _INITIAL.sub(lambda block: _ZERO.sub("", block[0]), rtl(config))
    parts = (text, BENCH.read_text(encoding="utf-8"), verilator, str(waves), *FLAGS)
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
    program = cache / digest / "bench"
    if program.is_file():
        return program
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as folder:
        source = Path(folder) / f"{TOP}.v"
        source.write_text(text, encoding="utf-8")
        command = [verilator, "--cc", "--exe", "--build", *FLAGS]
        command += ["--top-module", TOP, "-o", "bench"]
        command += ["--Mdir", str(Path(folder) / "obj"), str(source), str(BENCH.resolve())]
        command += ["--trace"] if waves else []
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SimulatorError(f"verilator does not build the core:\n{done.stderr[-2000:]}")
        program.parent.mkdir(exist_ok=True)
        shutil.copy(Path(folder) / "obj" / "bench", program.with_suffix(".new"))
        program.with_suffix(".new").replace(program)
    return program


class Verilated:
    """A running core: `write`, `read` and `wait` at its port. Leaves its process at the end."""

    def __init__(self, program: Path, *, waves: Path | None = None) -> None:
        command = [str(program.resolve())] + ([] if waves is None else [str(waves)])
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __enter__(self) -> Verilated:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.communicate()

    def write(self, address: int, words: Sequence[int]) -> None:
        """Write consecutive addresses."""
        commands = [
            struct.pack("<III", 0, address + offset, word) for offset, word in enumerate(words)
        ]
        self._send(b"".join(commands))

    def read(self, address: int, count: int) -> list[int]:
        """Read consecutive addresses."""
        self._send(struct.pack("<III", 1, address, count))
        return list(struct.unpack(f"<{count}I", self._receive(4 * count)))

    def wait(self, limit: int) -> bool:
        """Run until the core is idle, at most `limit` cycles; whether it became so."""
        self._send(struct.pack("<III", 2, limit >> 32, limit & 0xFFFFFFFF))
        return bool(struct.unpack("<III", self._receive(12))[2])

    def _send(self, data: bytes) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(data)
        except BrokenPipeError:
            raise SimulatorError("the simulation ended before its time") from None

    def _receive(self, count: int) -> bytes:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.flush()
        data = self._process.stdout.read(count)
        if len(data) != count:
            raise SimulatorError("the simulation ended before its time")
        return data
