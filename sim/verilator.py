"""The core in Verilator, as a process that speaks the host's port at full speed."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from amaranth.lib import wiring

from lbq_hw.config import CoreConfig
from lbq_hw.core.accelerator import accelerator
from lbq_hw.sim.commands import Commands
from lbq_hw.sim.sdram import MODEL, tape_contents
from lbq_hw.sim.verilog import SimulatorError, convert_large
from lbq_hw.sim.with_memory import Memory, WithMemory
from lbq_hw.tools.process import finish

BENCH = Path(__file__).with_name("bench.cpp")
TOP = "accelerator"
CACHE = Path("build/sim")
# Verilator's makefile has its own optimisation flags, which come after -CFLAGS. With -O2 a core
# runs 8 % faster and compiles 1.7 times as long. In several files it compiles 1.6 times as long,
# since each reads the headers.
_COMPILED = ("-MAKEFLAGS", "OPT_FAST=-O1", "-MAKEFLAGS", "OPT_GLOBAL=-O1",
             "-MAKEFLAGS", "VM_PARALLEL_BUILDS=0")  # fmt: skip
FLAGS = ("-O3", "--x-assign", "fast", "--x-initial", "fast", "--assert", "-Wno-fatal",
         "-Wno-lint", "-CFLAGS", "-march=native", *_COMPILED)  # fmt: skip
UNKNOWN = ("-O3", "--x-assign", "unique", "--x-initial", "unique", "--assert", "-Wno-fatal",
           "-Wno-lint", *_COMPILED)  # fmt: skip
"""Flags for a program in which what begins unknown is drawn from a seed of its command line."""

# Statements that set rows of memory to 0, which they are anyway here: without them a build takes
# seconds. Statements of logic look the same, so that only initial blocks are searched.
_INITIAL = re.compile(r"^  initial begin\n.*?^  end\n", re.MULTILINE | re.DOTALL)
_ZERO = re.compile(r"^    \S+\[\d+\] = \d+'h0+;\n", re.MULTILINE)


def design(config: CoreConfig, memory: Memory | None = None) -> wiring.Component:
    """The core, with its external memory and the chip at the pins."""
    return accelerator(config)(config) if memory is None else WithMemory(config, memory)


def rtl(config: CoreConfig, memory: Memory | None = None) -> str:
    """`design` as Verilog, with the model of the chip."""
    text = convert_large(design(config, memory), name=TOP)
    return text if memory is None else text + MODEL.read_text(encoding="utf-8")


def build(
    config: CoreConfig, memory: Memory | None = None, *, waves: bool = False, cache: Path = CACHE
) -> Path:
    """Compile the testbench for a core; a build of the same text is used again."""
    return build_bench(rtl(config, memory), BENCH, top=TOP, waves=waves, cache=cache)


def build_bench(
    rtl: str,
    bench: Path,
    *,
    top: str,
    waves: bool = False,
    cache: Path = CACHE,
    flags: Sequence[str] = FLAGS,
    objects: Sequence[Path] = (),
) -> Path:
    """Compile Verilog and its C++ testbench; a build of the same texts is used again.

    `objects` are linked too.
    """
    verilator = shutil.which("verilator")
    if verilator is None:
        raise SimulatorError("verilator is missing: sudo apt install verilator")
    for tool in ("g++", "make"):
        if shutil.which(tool) is None:
            raise SimulatorError(
                f"{tool} is missing, with which verilator builds the core: sudo apt install {tool}"
            )
    text = _INITIAL.sub(lambda block: _ZERO.sub("", block[0]), rtl)
    linked = (hashlib.sha256(path.read_bytes()).hexdigest() for path in objects)
    parts = (text, bench.read_text(encoding="utf-8"), _runtime(verilator, waves, flags), *linked)
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
    program = cache / digest / "bench"
    if program.is_file():
        return program
    try:
        sources = (bench, *objects)
        _compile(text, sources, program, verilator, top=top, waves=waves, flags=flags)
    except OSError as error:
        raise SimulatorError(
            f"the simulation cannot be built in {cache} ({error.strerror or error}): make room in "
            "this folder, or call from one that can be written to"
        ) from error
    return program


def _compile(
    text: str,
    sources: Sequence[Path],
    program: Path,
    verilator: str,
    *,
    top: str,
    waves: bool,
    flags: Sequence[str],
) -> None:
    """Let Verilator and the C++ compiler make the program."""
    cache = program.parents[1]
    cache.mkdir(parents=True, exist_ok=True)
    runtime = cache / _runtime(verilator, waves, flags)
    with tempfile.TemporaryDirectory(dir=cache) as folder:
        source, work = Path(folder) / f"{top}.v", Path(folder) / "obj"
        source.write_text(text, encoding="utf-8")
        command = [verilator, "--cc", "--exe", "--build", *flags]
        command += ["--top-module", top, "-o", "bench"]
        command += ["--Mdir", str(work), str(source)]
        command += [str(path.resolve()) for path in sources]
        command += ["--trace-fst"] if waves else []
        if runtime.is_dir():
            shutil.copytree(runtime, work)
            for (
                compiled
            ) in runtime.iterdir():  # else its makefile would compile them again for every design
                command += ["-MAKEFLAGS", f"--old-file={compiled.name}"]
        done = finish(command)
        if waves and "zlib.h" in done.stderr:
            raise SimulatorError("waves need the headers of zlib: sudo apt install zlib1g-dev")
        if done.returncode:
            raise SimulatorError(f"verilator does not build the core:\n{done.stderr[-2000:]}")
        program.parent.mkdir(exist_ok=True)
        shutil.copy(work / "bench", program.with_suffix(".new"))
        program.with_suffix(".new").replace(program)
        if not runtime.is_dir():
            kept = Path(folder) / "runtime"
            kept.mkdir()
            for compiled in work.glob("verilated*.o"):
                compiled.rename(kept / compiled.name)
            with suppress(OSError):  # another process was faster
                kept.rename(runtime)


def _runtime(verilator: str, waves: bool, flags: Sequence[str]) -> str:
    """Name of the folder of Verilator's own object files, which are the same for all designs."""
    programs = (verilator, shutil.which("g++"))
    made = [f"{path} {Path(path).stat().st_mtime_ns}" for path in programs if path is not None]
    parts = (*made, str(waves), *flags)
    return "runtime-" + hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


class Verilated(Commands):
    """A running core: `write`, `read` and `wait` at its port. Leaves its process at the end.

    `options`: arguments of the simulation, for ``sdram.v`` or Verilator's own.
    """

    def __init__(
        self, program: Path, *, waves: Path | None = None, options: Sequence[str] = ()
    ) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="lbq-sim-")
        self._words, self._told = (Path(self._folder.name) / name for name in ("words", "told"))
        self._words.touch()
        command = [str(program.resolve()), f"+sdram_file={self._words}", *options]
        command += [] if waves is None else [f"+waves={waves}"]
        with self._told.open("wb") as told:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=told
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        super().__init__(self._process.stdin, self._process.stdout)

    def load_tape(self, tape: bytes, word_bits: int) -> None:
        """Put a tape where the core reads it, from the first word of its external memory on."""
        self._words.write_bytes(tape_contents(tape, word_bits))
        self.fill()

    def _ended(self) -> str:
        return self._told.read_text(encoding="utf-8").strip() or super()._ended()

    def __enter__(self) -> Verilated:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with suppress(BrokenPipeError):
            self._process.communicate()
        self._process.wait()
        self._folder.cleanup()
