"""Cores that ``lbq rtl`` writes, with their drivers, as programs that simulate them."""

from __future__ import annotations

import fcntl
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from simulators import CACHE

from lbq_hw.compiler import compile_network
from lbq_hw.config import CoreConfig
from lbq_hw.network import Network
from lbq_hw.rtl.design import NAME, Design
from lbq_hw.rtl.files import files
from lbq_hw.sim.verilator import build_bench

HERE = Path(__file__).parent
STRICT = ("-std=c99", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Werror")


def write(network: Network, config: CoreConfig, bus: str, folder: Path) -> Design:
    """The files of a network's core."""
    design = Design(program=compile_network(network, config), bus=bus)
    folder.mkdir(parents=True, exist_ok=True)
    for name, contents in files(design):
        (folder / name).write_bytes(contents)
    return design


def simulated(design: Design, folder: Path) -> Path:
    """The program of main.c with the driver in `folder`, and the core in Verilator."""
    external = design.program.config.external
    flags = ["-include", str(HERE / "bus.h"), f"-DBUS_{design.bus.upper()}"]
    flags += [] if external else ["-DHAS_LOAD"]
    made = []
    for source in (folder / f"{NAME}.c", HERE / "main.c"):
        made.append(folder / f"{source.stem}.o")
        subprocess.run(
            ["cc", *STRICT, *flags, f"-I{folder}", f"-I{HERE}", "-c", source, "-o", made[-1]],
            check=True,
        )
    bench = folder / "bench.cpp"
    head = f"#define BUS_{design.bus.upper()}\n#define TAPE_BITS {external}\n"
    bench.write_text(head + (HERE / "bench.cpp").read_text())
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "own-design.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return build_bench(
            (folder / f"{NAME}.v").read_text(), bench, top=NAME, cache=CACHE, objects=made
        )


def by_pixels(raw: NDArray[np.uint8]) -> bytes:
    """Raw inputs as the driver wants them: the channels of a pixel side by side."""
    return np.ascontiguousarray(np.moveaxis(raw, -3, -1)).tobytes()


def run(
    program: Path, how: str, raw: NDArray[np.uint8], *, stalls: int, tape: Path | None = None
) -> NDArray[np.int64]:
    """The logits of raw inputs, ``(inputs, classes)``."""
    with tempfile.TemporaryDirectory() as folder:
        inputs = Path(folder) / "inputs"
        inputs.write_bytes(by_pixels(raw))
        words = [str(program.resolve()), how, str(stalls), str(inputs)]
        words += [] if tape is None else [str(tape)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return np.array([[int(word) for word in line.split()] for line in done.stdout.splitlines()])
