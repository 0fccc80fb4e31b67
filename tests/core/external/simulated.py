"""An external memory with the pin-level model of its chip in Icarus, driven by a script."""

from __future__ import annotations

import dataclasses
import functools
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from lbq_hw import chips
from lbq_hw.chips import Chip
from lbq_hw.core.external.port import Capture
from lbq_hw.sim.runner import awake
from lbq_hw.sim.sdram import MODEL, SimulatedMemory, contents
from lbq_hw.sim.verilog import convert

BENCH = Path(__file__).with_name("bench.v")
# The chips with a shorter wait and fewer rows: what is left is the same.
SMALL_16 = dataclasses.replace(chips.ULX3S, name="small 16", row_bits=5, power_up=20_000_000)
SMALL_32 = dataclasses.replace(
    chips.TANG_NANO_20K, name="small 32", row_bits=5, power_up=20_000_000
)


@dataclasses.dataclass(frozen=True)
class Run:
    """What a script brought: cycles of requests, words with theirs, and the rest of the lines."""

    lines: list[list[str]]

    def cycles(self, kind: str) -> list[int]:
        return [int(line[1]) for line in self.lines if line[0] == kind]

    def runs(self) -> list[list[tuple[int, int, int]]]:
        """Of each run the words: cycle and earliest cycle, from the start on, and the word."""
        found: list[list[tuple[int, int, int]]] = []
        start = 0
        for kind, *values in self.lines:
            if kind == "start":
                start = int(values[0])
                found.append([])
            elif kind == "word":
                cycle, word, earliest = int(values[0]), int(values[1], 16), int(values[2])
                found[-1].append((cycle - start, earliest - start, word))
        return found

    @property
    def slices(self) -> list[int]:
        return [int(line[2], 16) for line in self.lines if line[0] == "slice"]

    @property
    def calibrations(self) -> list[tuple[int, list[int]]]:
        """Of each calibration the capture that was chosen, and those that passed."""
        found = [(int(line[2]), int(line[3])) for line in self.lines if line[0] == "ready"]
        return [(used, [n for n in range(16) if passed >> n & 1]) for used, passed in found]

    @property
    def capture(self) -> int:
        """The one that was chosen, of a single calibration."""
        ((used, _),) = self.calibrations
        return used

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
def compiled(chip: Chip, clock_hz: int, latency: int) -> Path:
    """The simulation; the folder lives as long as the tests."""
    folder = tempfile.TemporaryDirectory(prefix="lbq-sdram-")
    _FOLDERS.append(folder)
    design, program = Path(folder.name) / "memory.v", Path(folder.name) / "bench.vvp"
    memory = SimulatedMemory(chip=chip, clock_hz=clock_hz, latency=latency)
    design.write_text(awake(convert(memory, name="memory")), encoding="utf-8")
    command = ["iverilog", "-g2012", "-s", "bench", f"-Pbench.DATA_BITS={chip.data_bits}"]
    command += ["-o", str(program), str(BENCH), str(design), str(MODEL)]
    subprocess.run(command, check=True, capture_output=True)
    return program


_FOLDERS: list[tempfile.TemporaryDirectory[str]] = []


def run(
    script: Iterable[tuple[int, ...]],
    *,
    chip: Chip = SMALL_16,
    clock_hz: int = 80_000_000,
    latency: int = 1,
    access: int | None = None,
    hold: int | None = None,
    drift: tuple[int, int, int] | None = None,
    seed: int = 1,
    words: Sequence[int] = (),
) -> Run:
    """Run a script, see bench.v; `words` are in the memory at the beginning.

    `drift`: what the access and hold times gain, in ps, and from which edge to which.
    """
    program = compiled(chip, clock_hz, latency)
    with tempfile.TemporaryDirectory() as name:
        lines = [(*line, 0, 0)[:3] for line in script]
        file, memory = Path(name) / "script", Path(name) / "words"
        file.write_text("".join(f"{op} {x:x} {y:x}\n" for op, x, y in lines), encoding="utf-8")
        arguments = [f"+script={file}", f"+seed={seed}"]
        if access is not None:
            arguments.append(f"+sdram_access={access}")
        if hold is not None:
            arguments.append(f"+sdram_hold={hold}")
        if drift is not None:
            names = ("sdram_drift", "sdram_drift_begin", "sdram_drift_end")
            arguments += [f"+{name}={value}" for name, value in zip(names, drift, strict=True)]
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


WAIT, WRITE, READ, RUN, TEST, RATE, CALIBRATE = range(7)
assert Capture.SETTINGS <= 16  # bench.v has the bits of a capture
