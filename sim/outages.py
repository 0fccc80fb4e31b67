"""Hosts that die and boards that lose their power: ``python -m sim.outages --help``.

A host streams inputs to a simulated board. At a random moment the host dies in the middle of a
frame, or the board loses its power. All results until then must be right. The next host finds the
line and the core in the state in which they were left, and all its results must be right too.
"""

from __future__ import annotations

import importlib
import json
import random
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from lbq_hw import file, golden, zoo
from lbq_hw.commands import ending
from lbq_hw.commands.arguments import command_parser, not_negative, positive
from lbq_hw.commands.progress import image_bar
from lbq_hw.datasets.fitting import noise
from lbq_hw.host.device import Device
from lbq_hw.host.line import SerialTransport
from lbq_hw.host.transport import DeviceError
from lbq_hw.package import Package
from lbq_hw.sim.in_step import InStep, PassedOn
from lbq_hw.sim.noise import BATCH, TIMEOUT
from lbq_hw.sim.small_boards import on_chip
from lbq_hw.sim.verilator import CACHE, SimulatorError

_EPILOG = """
examples:
  python -m sim.outages --times 100
  python -m sim.outages --model net.lbq --times 1000 --seed 7 --json
Ends with exit code 1 if a result was wrong, or the host after an outage got none.
"""


class DeadError(Exception):
    """The host has died."""


class Fragile(PassedOn):
    """A serial port with an outage after `left` calls; without one if `left` is None."""

    def __init__(self, port: InStep, *, seed: int) -> None:
        super().__init__(port)
        self._board = port
        self.source = random.Random(seed)
        self.left: int | None = None
        self.board = False  # whether the board fails, and not the host
        self.calls = 0

    def write(self, data: bytes, /) -> int:
        if self._now():
            self._port.write(data[: self.source.randrange(len(data) + 1)])
            self._happen()
        else:
            self._port.write(data)
        return len(data)

    def read(self, size: int = 1, /) -> bytes:
        if self._now():
            self._happen()
        return self._port.read(size)

    def _now(self) -> bool:
        self.calls += 1
        if self.left is not None:
            self.left -= 1
        return self.left == 0

    def _happen(self) -> None:
        if not self.board:
            raise DeadError
        self._board.power_cycle()


@dataclass(frozen=True, kw_only=True)
class Outages:
    """Counts of a run: `deaths` of hosts, `power_cycles`, all `answers`, `wrong` answers, `refused`
    streams, which ended with an error, and `lost`, hosts that got no results although nothing
    failed during their stream.
    """

    deaths: int
    power_cycles: int
    answers: int
    wrong: int
    refused: int
    lost: int
    seed: int

    @property
    def good(self) -> bool:
        return not self.wrong and not self.lost

    def facts(self) -> dict[str, Any]:
        """JSON-able."""
        return asdict(self) | {"good": self.good}


def run(packed: Package, *, times: int, seed: int, cache: Path = CACHE) -> Outages:
    """Simulate `times` outages; after each, a new host runs all inputs."""
    inputs = noise(packed.network, BATCH)
    wanted = golden.run(packed.network, inputs).logits
    counts = dict.fromkeys(("deaths", "power_cycles", "answers", "wrong", "refused", "lost"), 0)
    with InStep(packed, wait=TIMEOUT / 8, cache=cache) as port, image_bar() as bar:
        line = Fragile(port, seed=seed)
        longest = 1

        def stream(left: int | None) -> None:
            """A new host on the line, with an outage after `left` calls."""
            line.left = left
            number = line.source.randrange(256)
            transport = SerialTransport(line, timeout=TIMEOUT, clock=port.now, sequence=number)
            device = Device(transport, packed.program, opening=packed.opening)
            for at, ran in enumerate(device.stream(inputs, clock_hz=packed.clock_hz)):
                counts["answers"] += 1
                counts["wrong"] += not np.array_equal(ran.logits, wanted[at])

        stream(None)
        for _ in bar.track(range(times), description="outages"):
            longest, line.calls = max(longest, line.calls), 0
            line.board = line.source.random() < 0.5
            try:
                stream(line.source.randint(1, longest))
            except DeadError:
                counts["deaths"] += 1
            except DeviceError:
                counts["refused"] += 1
            counts["power_cycles"] += line.board and (line.left or 0) <= 0
            line.calls = 0
            try:
                stream(None)
            except DeviceError:
                counts["lost"] += 1
    return Outages(**counts, seed=seed)


def main(argv: Sequence[str] | None = None, *, prog: str = "python -m sim.outages") -> int:
    parser = command_parser(
        prog,
        "Kill hosts and cut a simulated board's power at random moments, and compare all results.",
        _EPILOG,
    )
    parser.add_argument("--model", default="digits", metavar="F", help="an .lbq file or a zoo name")
    parser.add_argument("--times", type=positive, default=100, metavar="N", help="outages (100)")
    parser.add_argument("--seed", type=not_negative, default=0, metavar="S", help="(0)")
    parser.add_argument("--queue", action="store_true", help="use a core with a queue for pixels")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args(argv)
    try:
        with tempfile.TemporaryDirectory(prefix="lbq-outages-") as folder:
            packed = on_chip(file.load(zoo.find(args.model)), Path(folder), queue=args.queue)
            found = run(packed, times=args.times, seed=args.seed)
    except (ValueError, DeviceError, SimulatorError) as error:
        return ending.refuse(error)
    if args.json:
        date = datetime.now(UTC).date().isoformat()
        print(json.dumps({"date": date} | found.facts()))
    else:
        print(spoken(found))
    return 0 if found.good else 1


def spoken(found: Outages) -> str:
    """One line for people."""
    return (
        f"{found.deaths} hosts died and the board lost its power {found.power_cycles} times: "
        f"{found.answers:,} answers, {found.wrong} wrong, {found.refused} errors; {found.lost} "
        "hosts got no answer afterwards"
    )


if __name__ == "__main__":  # hands over to the module of the full name
    sys.exit(ending.run(importlib.import_module("lbq_hw.sim.outages").main))
