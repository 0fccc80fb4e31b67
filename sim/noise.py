"""A simulated board behind a noisy line: ``python -m sim.noise --help``.

The RTL runs behind its serial line, the ordinary host streams inputs through the core's door, and
frames are damaged in both directions. Answers may be late or refused, but never wrong. With
``--link``, link and UART run alone (`lbq_hw.sim.noise_link`), with many more frames per second.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from lbq_hw import file, golden, units, zoo
from lbq_hw.commands import ending
from lbq_hw.commands.arguments import command_parser, not_negative, positive
from lbq_hw.commands.progress import image_bar
from lbq_hw.datasets.fitting import noise
from lbq_hw.host.device import Device
from lbq_hw.host.line import LinkError
from lbq_hw.host.transport import DeviceError
from lbq_hw.package import Package
from lbq_hw.sim import noise_link
from lbq_hw.sim.in_step import InStep
from lbq_hw.sim.noise_line import BadLine, recovers
from lbq_hw.sim.noise_link import LinkNoise
from lbq_hw.sim.small_boards import on_chip
from lbq_hw.sim.verilator import CACHE, SimulatorError

TIMEOUT = 0.02
"""Seconds without an answer until the host repeats requests: longer than any answer takes."""
BATCH = 8  # inputs that are streamed one after the other
_EPILOG = """
examples:
  python -m sim.noise --frames 1000
      until a thousand frames were damaged, with digits
  python -m sim.noise --model net.lbq --frames 100000 --rate 0.2 --seed 7 --queue --json
  python -m sim.noise --link --frames 1000000 --rate 0.3 --json
      link and UART alone: every request is executed once and in order, or not at all
Ends with exit code 1 if something was wrong, or the core hangs.
"""


@dataclass(frozen=True, kw_only=True)
class Noise:
    """The result of a run on a bad line.

    `damaged` counts frames by the kind of damage; `answers`, results, all of which are compared;
    `wrong`, results that differ from golden; `refused`, errors after which the host gave up;
    `hangs`, boards that did not answer on a good line after such an error. `slowest` is the longest
    simulated time until an answer or an error, in seconds.
    """

    damaged: dict[str, int]
    answers: int
    wrong: int
    refused: int
    hangs: int
    slowest: float
    seed: int

    @property
    def frames(self) -> int:
        return sum(self.damaged.values())

    @property
    def good(self) -> bool:
        return not self.wrong and not self.hangs

    def facts(self) -> dict[str, Any]:
        """JSON-able."""
        return asdict(self) | {"frames": self.frames}

    def spoken(self) -> str:
        """One line for people."""
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(self.damaged.items()))
        return (
            f"{self.frames:,} damaged frames ({kinds}): {self.answers:,} answers, {self.wrong} "
            f"wrong, {self.refused:,} errors, {self.hangs} hangs; the slowest took "
            f"{units.seconds(self.slowest)}"
        )


def run(packed: Package, *, frames: int, rate: float, seed: int, cache: Path = CACHE) -> Noise:
    """Stream random inputs until `frames` frames were damaged; then send one on a good line."""
    inputs = noise(packed.network, BATCH)
    wanted = golden.run(packed.network, inputs).logits
    answers = wrong = refused = hangs = 0
    slowest = 0.0
    with InStep(packed, wait=TIMEOUT / 8, cache=cache) as port, image_bar() as bar:
        task = bar.add_task("damaged frames", total=frames)
        line = port.transport(TIMEOUT)
        bad = BadLine(port, seed=seed)
        line._port = bad  # the session has begun on a good line
        device = Device(line, packed.program, opening=packed.opening)
        while True:
            good = bad.damaged.total() >= frames
            bad.rate = 0.0 if good else rate
            before, number = port.now(), 0
            try:
                for ran in device.stream(inputs, clock_hz=packed.clock_hz):
                    wrong += not np.array_equal(ran.logits, wanted[number])
                    slowest, before = max(slowest, port.now() - before), port.now()
                    number += 1
            except LinkError:
                refused += 1
                slowest = max(slowest, port.now() - before)
                hangs += good or not recovers(line, bad, packed.baud)
            answers += number
            bar.update(task, completed=min(bad.damaged.total(), frames))
            if hangs or (good and number == len(inputs)):
                break
    return Noise(
        damaged=dict(bad.damaged),
        answers=answers,
        wrong=wrong,
        refused=refused,
        hangs=hangs,
        slowest=slowest,
        seed=seed,
    )


def main(argv: Sequence[str] | None = None, *, prog: str = "python -m sim.noise") -> int:
    parser = command_parser(
        prog, "Damage frames on the line of a simulated board, and compare every answer.", _EPILOG
    )
    parser.add_argument("--model", metavar="F", help="an .lbq file or a zoo name (digits)")
    parser.add_argument("--frames", type=positive, default=1000, metavar="N", help="(1000)")
    parser.add_argument("--rate", type=float, default=0.1, help="share of damaged frames (0.1)")
    parser.add_argument("--seed", type=not_negative, default=0, metavar="S", help="(0)")
    parser.add_argument("--queue", action="store_true", help="use a core with a queue for pixels")
    parser.add_argument(
        "--link", action="store_true", help="simulate link and UART alone, without a model"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args(argv)
    try:
        if not 0 < args.rate < 1:
            raise ValueError(f"--rate must lie between 0 and 1, not {args.rate:g}")
        found = _on_link(args) if args.link else _on_board(args)
    except (ValueError, DeviceError, SimulatorError) as error:
        return ending.refuse(error)
    if args.json:
        date = datetime.now(UTC).date().isoformat()
        print(json.dumps({"date": date} | found.facts()))
    else:
        print(found.spoken())
    return 0 if found.good else 1


def _on_link(args: argparse.Namespace) -> LinkNoise:
    if args.model is not None or args.queue:
        raise ValueError("--link takes neither --model nor --queue")
    return noise_link.run(noise_link.build(), frames=args.frames, rate=args.rate, seed=args.seed)


def _on_board(args: argparse.Namespace) -> Noise:
    network = file.load(zoo.find(args.model or "digits"))
    with tempfile.TemporaryDirectory(prefix="lbq-noise-") as folder:
        packed = on_chip(network, Path(folder), queue=args.queue)
        return run(packed, frames=args.frames, rate=args.rate, seed=args.seed)


if __name__ == "__main__":  # hands over to the module of the full name
    sys.exit(ending.run(importlib.import_module("lbq_hw.sim.noise").main))
