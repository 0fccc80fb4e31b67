"""Many inferences in one run of a simulated board: ``python -m sim.soak --help``.

The RTL runs behind its serial line, once with its program on the chip and once with external
memory. The ordinary host streams inputs through the core's door. Every result must equal golden's,
and neither the host's process nor the simulation's process may grow.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbq_hw import file, golden, zoo
from lbq_hw.commands import ending
from lbq_hw.commands.arguments import command_parser, not_negative, positive
from lbq_hw.commands.progress import image_bar
from lbq_hw.host.device import Device
from lbq_hw.host.transport import DeviceError
from lbq_hw.network import Network
from lbq_hw.package import Package
from lbq_hw.sim import small_boards
from lbq_hw.sim.in_step import InStep
from lbq_hw.sim.verilator import CACHE, SimulatorError

BATCH = 50
"""Inferences between two measurements of the memory of both processes."""
WARM = 0.2
"""Fraction of a run after which the processes must not grow."""
ALLOWED = 4 << 20
"""Bytes by which a process may grow, because the number of its pages fluctuates."""
POWER_UP = 0.001
"""Seconds until an external memory is ready, and for which each read waits."""
_EPILOG = """
examples:
  python -m sim.soak --inferences 200
      the digits network, on chip and with external memory
  python -m sim.soak --inferences 10000 --json
Ends with exit code 1 if a result differs from golden or a process grows.
"""


@dataclass(frozen=True, kw_only=True)
class Memory:
    """The memory of a process, in bytes, at some moments of a run."""

    samples: tuple[int, ...]

    @property
    def growth(self) -> int:
        """From the largest sample of the beginning to the largest of the last quarter."""
        count = len(self.samples)
        begin = self.samples[: max(1, round(WARM * count))]
        return max(self.samples[-max(1, count // 4) :]) - max(begin)

    @property
    def flat(self) -> bool:
        return self.growth <= ALLOWED


@dataclass(frozen=True, kw_only=True)
class Soak:
    """The result of a run: inferences, wrong results, cycles of the core, and the memory of both
    processes.
    """

    kind: str
    inferences: int
    wrong: int
    cycles: int
    host: Memory
    simulation: Memory

    @property
    def good(self) -> bool:
        return not self.wrong and self.host.flat and self.simulation.flat

    def facts(self) -> dict[str, Any]:
        """JSON-able."""
        memories = {"host": self.host, "simulation": self.simulation}
        return {
            "kind": self.kind,
            "inferences": self.inferences,
            "wrong": self.wrong,
            "cycles_per_inference": round(self.cycles / self.inferences),
            **{f"{name}_bytes": memory.samples[-1] for name, memory in memories.items()},
            **{f"{name}_growth": memory.growth for name, memory in memories.items()},
            "good": self.good,
        }


def resident(process: int) -> int:
    """The resident memory of a process in bytes."""
    pages = Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def inputs_of(network: Network, count: int, seed: int) -> Iterator[NDArray[np.uint8]]:
    """Batches of random inputs; all batches differ."""
    random = np.random.default_rng(seed)
    frames = () if network.input.static else (network.timesteps,)
    for first in range(0, count, BATCH):
        shape = (min(BATCH, count - first), *frames, *network.input.shape)
        yield random.integers(0, network.input.largest_raw + 1, shape, dtype=np.uint8)


def run(packed: Package, *, inferences: int, seed: int, cache: Path = CACHE) -> Soak:
    """Stream random inputs through a board that is never reset."""
    wrong = cycles = done = 0
    host: list[int] = []
    simulation: list[int] = []
    kind = "external" if packed.config.external else "on-chip"
    with InStep(packed, wait=POWER_UP, cache=cache) as port, image_bar() as bar:
        task = bar.add_task(kind, total=inferences)
        port.read()  # nothing comes, and time passes
        device = Device(port.transport(), packed.program, opening=packed.opening)
        for batch in inputs_of(packed.network, inferences, seed):
            wanted = golden.run(packed.network, batch).logits
            for number, ran in enumerate(device.stream(batch, clock_hz=packed.clock_hz)):
                wrong += not np.array_equal(ran.logits, wanted[number])
                cycles += ran.cycles
                done += 1
            bar.update(task, completed=done)
            host.append(resident(os.getpid()))
            simulation.append(resident(port.process))
    return Soak(
        kind=kind,
        inferences=done,
        wrong=wrong,
        cycles=cycles,
        host=Memory(samples=tuple(host)),
        simulation=Memory(samples=tuple(simulation)),
    )


def main(argv: Sequence[str] | None = None, *, prog: str = "python -m sim.soak") -> int:
    parser = command_parser(
        prog, "Run many inferences on a simulated board, and watch results and memory.", _EPILOG
    )
    parser.add_argument("--model", default="digits", metavar="F", help="an .lbq file or a zoo name")
    parser.add_argument("--inferences", type=positive, default=1000, metavar="N", help="(1000)")
    parser.add_argument("--seed", type=not_negative, default=0, metavar="S", help="(0)")
    parser.add_argument(
        "--memory", choices=("on-chip", "external", "both"), default="both", help="(both)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args(argv)
    found: list[Soak] = []
    try:
        for soak in _runs(args):
            found.append(soak)
            if not args.json:
                print(spoken(soak), flush=True)
    except (ValueError, DeviceError, SimulatorError) as error:
        return ending.refuse(error)
    if args.json:
        facts = {"date": datetime.now(UTC).date().isoformat(), "seed": args.seed}
        print(json.dumps(facts | {"runs": [soak.facts() for soak in found]}))
    return 0 if all(soak.good for soak in found) else 1


def _runs(args: argparse.Namespace) -> Iterator[Soak]:
    network = file.load(zoo.find(args.model))
    for kind in ("on-chip", "external") if args.memory == "both" else (args.memory,):
        with tempfile.TemporaryDirectory(prefix="lbq-soak-") as name:
            if kind == "external":
                packed = small_boards.external(network, Path(name))
            else:
                packed = small_boards.on_chip(network, Path(name), queue=True)
            yield run(packed, inferences=args.inferences, seed=args.seed)


def spoken(soak: Soak) -> str:
    """One line for people."""
    facts = soak.facts()
    grown = ", ".join(
        f"{name} {facts[f'{name}_bytes'] / 1e6:.0f} MB ({facts[f'{name}_growth'] / 1e6:+.1f})"
        for name in ("host", "simulation")
    )
    return (
        f"{soak.kind}: {soak.inferences:,} inferences of {facts['cycles_per_inference']:,} cycles, "
        f"{soak.wrong} wrong; {grown}"
    )


if __name__ == "__main__":  # hands over to the module of the full name
    sys.exit(ending.run(importlib.import_module("lbq_hw.sim.soak").main))
