"""Images per second as a host sees them, on simulated boards: ``python -m sim.seen --help``.

The whole design runs in step with the host (`lbq_hw.sim.in_step`). So the figures depend only on
the line, the core and a USB bridge of a given latency, and are the same on every machine.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbq_hw import boards, file, golden, package, sizing, units, zoo
from lbq_hw.chips.timing import reader_timing
from lbq_hw.commands import ending
from lbq_hw.commands.parser import Parser
from lbq_hw.compiler import compile_network
from lbq_hw.datasets import DatasetError
from lbq_hw.datasets.fitting import load_dataset, noise
from lbq_hw.host.clock import Clock
from lbq_hw.host.device import Device
from lbq_hw.host.rates import possible
from lbq_hw.host.transport import DeviceError
from lbq_hw.network import Network
from lbq_hw.numeric import Integers
from lbq_hw.package import Package
from lbq_hw.sim.in_step import InStep
from lbq_hw.sim.verilator import CACHE, SimulatorError

LATENCIES = (0.0, 0.001, 0.016)
"""Latencies of a bridge in seconds: none, the lowest of an FTDI chip, and its default."""
_EPILOG = """
examples:
  python -m sim.seen --board icebreaker --model mnist-4bit --lanes 16 --freq 33 --data DIR
      at the highest rate of the board's bridge; DIR holds mnist/
  python -m sim.seen --board ulx3s-85f --model cifar10-onchip --latency 16 --images 5
      with a bridge that keeps answers for 16 ms, on random inputs
"""


@dataclass(frozen=True, kw_only=True)
class Seen:
    """The result of a host's run: `seconds` from the first image's logits to the last image's.

    `cycles` is the mean of the core's counts, `equal` tells whether all logits equal golden's.
    """

    images: int
    seconds: float
    cycles: float
    clock_hz: int
    baud: int
    latency: float
    repeats: int
    equal: bool

    @property
    def images_per_second(self) -> float:
        return (self.images - 1) / self.seconds

    @property
    def core_images_per_second(self) -> float:
        return self.clock_hz / self.cycles

    def facts(self) -> dict[str, Any]:
        """As a JSON object."""
        rates = {
            name: getattr(self, name) for name in ("images_per_second", "core_images_per_second")
        }
        return asdict(self) | rates


def seen(
    packed: Package,
    images: NDArray[np.uint8],
    *,
    baud: int | None = None,
    latency: float = 0.0,
    cache: Path = CACHE,
) -> Seen:
    """Run raw images, at least two, on the simulated board of a package; `baud` defaults to the
    package's rate.
    """
    with InStep(packed, latency=latency, cache=cache) as port:
        line = port.transport()
        if baud is not None and baud != packed.baud:
            line.set_rate(baud, clock_hz=packed.clock_hz)
        device = Device(line, packed.program, opening=packed.opening)
        if not packed.config.external and line.baked() != device.tag:
            device.load()
        logits, cycles, moments = run(device, images, clock_hz=packed.clock_hz, now=port.now)
        return Seen(
            images=len(images),
            seconds=moments[-1] - moments[0],
            cycles=float(np.mean(cycles)),
            clock_hz=packed.clock_hz,
            baud=line.baud,
            latency=latency,
            repeats=line.repeats,
            equal=np.array_equal(logits, golden.run(packed.network, images).logits),
        )


def run(
    device: Device, images: NDArray[np.uint8], *, clock_hz: int, now: Clock
) -> tuple[Integers, list[int], list[float]]:
    """The logits of images, as `lbq host` gets them, the core's cycles, and the times at which the
    logits arrived.
    """
    logits, cycles, moments = [], [], []
    for ran in device.stream(images, clock_hz=clock_hz):
        logits.append(ran.logits)
        moments.append(now())
        cycles.append(ran.cycles)
    return np.array(logits), cycles, moments


def pack(
    network: Network,
    board: str,
    folder: Path,
    *,
    lanes: int | None = None,
    target_hz: int | None = None,
    door: bool = True,
    images: NDArray[np.uint8],
) -> Package:
    """A package for a board, with the core that a build would choose, but without a bitstream."""
    described = boards.find(board)
    sized = sizing.size(
        network, described, lanes=lanes, target_hz=target_hz, doors=door, images=images
    )
    model = folder / "net.lbq"
    file.save(network, model)
    timing = None
    if sized.config.external:
        assert described.chip is not None
        timing = reader_timing(described.chip, sized.clock_hz)
    program = compile_network(network, sized.config, timing=timing)
    return package.write(
        folder / "package",
        board=board,
        config=sized.config,
        model=model,
        clock_hz=sized.clock_hz,
        baud=described.baud,
        baked=not sized.config.external,
        bitstream=None,
        tape=program.tape if sized.config.external else b"",
        chip=described.chip,
        rates=() if described.bridge is None else described.bridge.rates,
        opening=sized.opening,
    )


def inputs(network: Network, data: Path | None, count: int) -> NDArray[np.uint8]:
    """Test images if `data` is given or the dataset comes with the project, else noise."""
    name = network.meta.get("dataset")
    if name == "digits":
        return load_dataset(network, None, None).images[:count]
    if data is None or name is None:
        return noise(network, count)
    return load_dataset(network, None, str(data / name)).images[:count]


def main(argv: Sequence[str] | None = None, *, prog: str = "python -m sim.seen") -> int:
    parser = Parser(
        prog=prog,
        description="Measure what a host sees of a board, simulated with its line and USB bridge.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--board", required=True, metavar="NAME")
    parser.add_argument("--model", required=True, metavar="F", help="an .lbq file or a zoo name")
    parser.add_argument("--lanes", type=int, metavar="P")
    parser.add_argument("--no-door", dest="door", action="store_false", help="as for lbq build")
    parser.add_argument("--freq", type=float, metavar="MHZ", help="the core's clock")
    parser.add_argument("--baud", type=int, metavar="N", help="default: the bridge's highest")
    parser.add_argument("--latency", type=float, action="append", metavar="MS",
                        help="latency of the bridge, may be repeated (0, 1, 16)")  # fmt: skip
    parser.add_argument("--images", type=int, default=3, metavar="N", help="at least 2 (3)")
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder of mnist/, cifar10/, ...")
    parser.add_argument("--json", action="store_true", help="print a JSON array")
    args = parser.parse_args(argv)
    latencies = LATENCIES if args.latency is None else [each / 1e3 for each in args.latency]
    try:
        if args.images < 2:
            raise ValueError(f"--images must be at least 2, not {args.images}")
        network = file.load(zoo.find(args.model))
        images = inputs(network, args.data, args.images)
        target = None if args.freq is None else round(1e6 * args.freq)
        with tempfile.TemporaryDirectory(prefix="lbq-seen-") as folder:
            packed = pack(
                network,
                args.board,
                Path(folder),
                lanes=args.lanes,
                target_hz=target,
                door=args.door,
                images=images,
            )
            baud = args.baud or best(packed)
            found = [seen(packed, images, baud=baud, latency=each) for each in latencies]
    except (ValueError, DatasetError, DeviceError, SimulatorError) as error:
        return ending.refuse(error)
    if args.json:
        print(json.dumps([each.facts() for each in found]))
    else:
        for each in found:
            print(spoken(network.name, packed, each))
    return 0 if all(each.equal for each in found) else 1


def best(packed: Package) -> int:
    """The highest rate that the package's board can have."""
    return possible(packed.rates, clock_hz=packed.clock_hz, baud=packed.baud)[0]


def spoken(name: str, packed: Package, found: Seen) -> str:
    """One line for people."""
    rate, core = map(units.three_digits, (found.images_per_second, found.core_images_per_second))
    where = f"{name} on {packed.board}, {packed.config.lanes} lanes at "
    where += f"{units.megahertz(found.clock_hz)}, {found.baud:,} baud, {1e3 * found.latency:g} ms"
    logits = "all logits equal" if found.equal else "logits DIFFER"
    return f"{where}: {rate} images/s, the core {core}; {units.images(found.images)}, {logits}"


if __name__ == "__main__":  # hands over to the module of the full name
    sys.exit(importlib.import_module("lbq_hw.sim.seen").main())
