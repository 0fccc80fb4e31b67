"""An external memory with the pin-level model of its chip in Icarus, driven by a script."""

from __future__ import annotations

import dataclasses
import functools
import re
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from amaranth import Module
from amaranth.lib import wiring

from lbq_hw.core.external import chips
from lbq_hw.core.external.chips import Chip
from lbq_hw.core.external.external_memory import ExternalMemory
from lbq_hw.core.external.pins import SimulatedPins
from lbq_hw.core.external.port import Capture
from sim.sdram import MODEL, SdramModel, contents
from sim.verilog import convert

# Yosys starts processes by the initial value of a register, which Icarus sets before they wait.
_START = re.compile(r"reg (\\\$auto\$verilog_backend\S+ ) *= 0;")
BENCH = Path(__file__).with_name("bench.v")
# The chips with a shorter wait and fewer rows: what is left is the same.
SMALL_16 = dataclasses.replace(chips.ULX3S, name="small 16", row_bits=5, power_up=20_000_000)
SMALL_32 = dataclasses.replace(
    chips.TANG_NANO_20K, name="small 32", row_bits=5, power_up=20_000_000
)


class Memory(wiring.Component):
    """The memory, its pins and the chip."""

    def __init__(self, *, chip: Chip, clock_hz: int, depth: int = 65, latency: int = 1):
        self._memory = ExternalMemory(chip=chip, clock_hz=clock_hz, depth=depth)
        self._pins = SimulatedPins(chip=chip, latency=latency)
        self._model = SdramModel(chip=chip, clock_hz=clock_hz)
        members = dict(self._memory.signature.members.items())
        del members["bus"]
        super().__init__({**members, "violated": wiring.Out(1)})

    def elaborate(self: Any, _platform: Any) -> Module:
        m: Any = Module()
        m.submodules.memory = memory = self._memory
        m.submodules.pins = self._pins
        m.submodules.model = self._model
        wiring.connect(m, memory.bus, self._pins.bus)
        wiring.connect(m, self._pins.pads, self._model.pads)
        for name in self.signature.members:
            if name == "port":
                wiring.connect(m, wiring.flipped(self.port), memory.port)
            elif self.signature.members[name].flow == wiring.In:
                m.d.comb += getattr(memory, name).eq(getattr(self, name))
            elif name != "violated":
                m.d.comb += getattr(self, name).eq(getattr(memory, name))
        m.d.comb += self.violated.eq(self._model.violated)
        return m


@dataclasses.dataclass(frozen=True)
class Run:
    """What a script brought: cycles of requests, words with theirs, and the rest of the lines."""

    lines: list[list[str]]

    def cycles(self, kind: str) -> list[int]:
        return [int(line[1]) for line in self.lines if line[0] == kind]

    @property
    def words(self) -> list[int]:
        return [int(line[2], 16) for line in self.lines if line[0] == "word"]

    @property
    def capture(self) -> int:
        (line,) = [line for line in self.lines if line[0] == "ready"]
        return int(line[2])

    @property
    def differing(self) -> list[int]:
        return self.cycles("differing")

    @property
    def failed(self) -> bool:
        return ["failed"] in self.lines

    @property
    def violations(self) -> list[str]:
        return [" ".join(line) for line in self.lines if line[0] == "sdram:"]


@functools.cache
def compiled(chip: Chip, clock_hz: int, depth: int, latency: int) -> Path:
    """The simulation; the folder lives as long as the tests."""
    folder = tempfile.TemporaryDirectory(prefix="lbq-sdram-")
    _FOLDERS.append(folder)
    design, program = Path(folder.name) / "memory.v", Path(folder.name) / "bench.vvp"
    memory = Memory(chip=chip, clock_hz=clock_hz, depth=depth, latency=latency)
    text = _START.sub(r"reg \1; initial \1 <= 0;", convert(memory, name="memory"))
    design.write_text(text, encoding="utf-8")
    sizes = (f"ADDRESS_BITS={chip.address_bits}", f"DATA_BITS={chip.data_bits}")
    command = ["iverilog", "-g2012", "-s", "bench", *(f"-Pbench.{size}" for size in sizes)]
    command += ["-o", str(program), str(BENCH), str(design), str(MODEL)]
    subprocess.run(command, check=True, capture_output=True)
    return program


_FOLDERS: list[tempfile.TemporaryDirectory[str]] = []


def run(
    script: Iterable[tuple[int, ...]],
    *,
    chip: Chip = SMALL_16,
    clock_hz: int = 80_000_000,
    depth: int = 65,
    latency: int = 1,
    access: int | None = None,
    hold: int | None = None,
    seed: int = 1,
    words: Sequence[int] = (),
) -> Run:
    """Run a script, see bench.v; `words` are in the memory at the beginning."""
    program = compiled(chip, clock_hz, depth, latency)
    with tempfile.TemporaryDirectory() as name:
        lines = [(*line, 0, 0)[:3] for line in script]
        file, memory = Path(name) / "script", Path(name) / "words"
        file.write_text("".join(f"{op} {x:x} {y:x}\n" for op, x, y in lines), encoding="utf-8")
        arguments = [f"+script={file}", f"+seed={seed}"]
        if access is not None:
            arguments.append(f"+sdram_access={access}")
        if hold is not None:
            arguments.append(f"+sdram_hold={hold}")
        if words:
            memory.write_bytes(contents(words, chip))
            arguments.append(f"+sdram_file={memory}")
        done = subprocess.run(
            ["vvp", "-n", str(program), *arguments],
            check=True,
            capture_output=True,
            text=True,
            timeout=300,
        )
    return Run([line.split() for line in done.stdout.splitlines() if line.strip()])


WAIT, WRITE, READ, DRAIN, TEST, FLUSH, RATE = range(7)
assert Capture.SETTINGS == 16  # bench.v has the bits of a capture
