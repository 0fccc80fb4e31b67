"""A simulated board behind a noisy line: ``python -m sim.noise --help``.

The RTL runs behind its serial line, the ordinary host streams inputs through the core's door, and
frames are damaged in both directions. Answers may be late or refused, but never wrong.
"""

from __future__ import annotations

import argparse
import importlib
import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from lbq_hw import file, golden, units, zoo
from lbq_hw.commands import ending
from lbq_hw.commands.parser import Parser
from lbq_hw.commands.progress import image_bar
from lbq_hw.datasets.fitting import noise
from lbq_hw.host.device import Device
from lbq_hw.host.line import LinkError, Port
from lbq_hw.host.transport import DeviceError
from lbq_hw.isa import link
from lbq_hw.package import Package
from lbq_hw.sim.in_step import InStep, PassedOn
from lbq_hw.sim.small_boards import on_chip
from lbq_hw.sim.verilator import CACHE, SimulatorError

TIMEOUT = 0.02
"""Seconds without an answer until the host repeats requests: more than all of them take."""
BATCH = 8  # inputs that are streamed one after the other
_FLAG = bytes((link.FLAG,))
_EPILOG = """
examples:
  python -m sim.noise --frames 1000
      until a thousand frames were damaged, with digits
  python -m sim.noise --model net.lbq --frames 100000 --rate 0.2 --seed 7 --queue --json
"""


class BadLine(PassedOn):
    """A serial port that damages frames in both directions, each with the probability `rate`."""

    def __init__(self, port: Port, *, seed: int) -> None:
        super().__init__(port)
        self._source = random.Random(seed)
        self._coming = b""  # the begin of an answer
        self._given = b""
        self.rate = 0.0
        self.damaged: Counter[str] = Counter()

    @property
    def in_waiting(self) -> int:
        return len(self._given) + self._port.in_waiting

    def write(self, data: bytes, /) -> int:
        *frames, rest = data.split(_FLAG)
        self._port.write(b"".join(map(self._passed, frames)) + rest)
        return len(data)

    def read(self, size: int = 1, /) -> bytes:
        if not self._given:
            *frames, self._coming = (self._coming + self._port.read(4096)).split(_FLAG)
            self._given = b"".join(map(self._passed, frames))
        data, self._given = self._given[:size], self._given[size:]
        return data

    def _passed(self, body: bytes) -> bytes:
        """A frame as it comes out of the line; `body` is without its flag."""
        if not body or self._source.random() >= self.rate:
            return body + _FLAG
        kind = self._source.choice([*_DAMAGES])
        self.damaged[kind] += 1
        return _DAMAGES[kind](body, self._source)


def _flipped(body: bytes, source: random.Random) -> bytes:
    """Flips one to four bits."""
    out = bytearray(body)
    for _ in range(source.randint(1, 4)):
        out[source.randrange(len(out))] ^= 1 << source.randrange(8)
    return bytes(out) + _FLAG


def _cut(body: bytes, source: random.Random) -> bytes:
    """Cuts off the end of a frame, sometimes with its flag."""
    return body[: source.randrange(len(body))] + _FLAG * source.randint(0, 1)


def _babble(body: bytes, source: random.Random) -> bytes:
    """Inserts random bytes before a frame, in its middle or after it."""
    place = source.randrange(len(body) + 2)
    frame = body + _FLAG
    return frame[:place] + source.randbytes(source.randint(1, 12)) + frame[place:]


_DAMAGES: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "flipped": _flipped,
    "cut": _cut,
    "babble": _babble,
    "lost": lambda _body, _source: b"",
    "repeated": lambda body, source: (body + _FLAG) * source.randint(2, 3),
}


@dataclass(frozen=True, kw_only=True)
class Noise:
    """The result of a run on a bad line.

    `damaged` counts frames by the kind of damage; `answers`, results, all of which are compared;
    `wrong`, results that differ from golden; `refused`, errors after which the host gave up.
    `slowest` is the longest simulated time until an answer or an error, in seconds.
    """

    damaged: dict[str, int]
    answers: int
    wrong: int
    refused: int
    slowest: float
    seed: int

    @property
    def frames(self) -> int:
        return sum(self.damaged.values())


def run(packed: Package, *, frames: int, rate: float, seed: int, cache: Path = CACHE) -> Noise:
    """Stream random inputs until `frames` frames were damaged; then send one on a good line."""
    inputs = noise(packed.network, BATCH)
    wanted = golden.run(packed.network, inputs).logits
    answers = wrong = refused = 0
    slowest, behind = 0.0, False
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
                if behind:
                    line.begin_again(packed.baud)
                    behind = False
                for ran in device.stream(inputs, clock_hz=packed.clock_hz):
                    wrong += not np.array_equal(ran.logits, wanted[number])
                    slowest, before = max(slowest, port.now() - before), port.now()
                    number += 1
            except LinkError:
                behind = True
                refused += 1
                slowest = max(slowest, port.now() - before)
            answers += number
            bar.update(task, completed=min(bad.damaged.total(), frames))
            if good and number == len(inputs):
                break
    return Noise(
        damaged=dict(bad.damaged),
        answers=answers,
        wrong=wrong,
        refused=refused,
        slowest=slowest,
        seed=seed,
    )


def main(argv: Sequence[str] | None = None, *, prog: str = "python -m sim.noise") -> int:
    parser = Parser(
        prog=prog,
        description="Damage frames on the line of a simulated board, and compare every answer.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--model", default="digits", metavar="F", help="an .lbq file or a zoo name")
    parser.add_argument("--frames", type=int, default=1000, metavar="N", help="to damage (1000)")
    parser.add_argument("--rate", type=float, default=0.1, help="share of damaged frames (0.1)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--queue", action="store_true", help="pixels wait in a queue during a run")
    parser.add_argument("--json", action="store_true", help="print a JSON object")
    args = parser.parse_args(argv)
    try:
        if args.frames < 1:
            raise ValueError(f"--frames must be at least 1, not {args.frames}")
        if not 0 < args.rate < 1:
            raise ValueError(f"--rate must lie between 0 and 1, not {args.rate:g}")
        with tempfile.TemporaryDirectory(prefix="lbq-noise-") as folder:
            packed = on_chip(file.load(zoo.find(args.model)), Path(folder), queue=args.queue)
            found = run(packed, frames=args.frames, rate=args.rate, seed=args.seed)
    except (ValueError, DeviceError, SimulatorError) as error:
        return ending.refuse(error)
    if args.json:
        date = datetime.now(UTC).date().isoformat()
        print(json.dumps({"date": date} | asdict(found) | {"frames": found.frames}))
    else:
        print(spoken(found))
    return 1 if found.wrong else 0


def spoken(found: Noise) -> str:
    """One line for people."""
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(found.damaged.items()))
    return (
        f"{found.frames:,} damaged frames ({kinds}): {found.answers:,} answers, {found.wrong} "
        f"wrong, {found.refused:,} errors; the slowest took {units.seconds(found.slowest)}"
    )


if __name__ == "__main__":  # hands over to the module of the full name
    sys.exit(importlib.import_module("lbq_hw.sim.noise").main())
