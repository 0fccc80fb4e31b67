"""Benchmarks of the core, in simulation and on real parts: ``python -m sim.bench --help``.

Figures go into one JSON object, and the table is made from it. Without its data, a row is left out
and the reason is given.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path as FilePath
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from lbq_hw import file, zoo
from lbq_hw.commands import ending
from lbq_hw.commands.parser import Parser
from lbq_hw.compiler import compile_network, smallest_for
from lbq_hw.config import CoreConfig
from lbq_hw.datasets import DatasetError
from lbq_hw.datasets.fitting import load_dataset
from lbq_hw.network import INPUT, Input, Layer, Network, Neuron, Path, Shape, Window
from lbq_hw.sim import seen
from lbq_hw.sim.check import check
from lbq_hw.sim.synthesis import ECP5_85, UP5K, lane_array
from lbq_hw.sim.verilator import SimulatorError, Verilated, build
from lbq_hw.tools import MissingToolError
from lbq_hw.tools.process import ToolError

LARGE = {"lanes": 64, "word": 64, "summary": 32, "units": 4}
SMALL = ("digits", "mnist", "mnist-4bit", "nmnist")
STAGE = ("blocks.3.", "blocks.4.", "blocks.5.")
ACTIVE = 0.03
_EPILOG = """
examples:
  python -m sim.bench
      all that needs no data: the digits network, a layer with 3 % of its inputs active, simulator
      speed, and the lane array through synthesis, place and route
  python -m sim.bench --only doors --data DIR
      images per second as a host sees them, with a USB bridge that keeps answers for 0, 1 and 16 ms
  python -m sim.bench --data DIR --json bench.json
      all of it; DIR holds mnist/, nmnist/ and cifar10/
utilisation = bit-sparse ACs / (lanes x cycles), all overhead included.
"""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One figure, and its lower or upper limit, if it has one."""

    what: str
    figure: str
    value: float
    least: float | None = None
    most: float | None = None

    @property
    def met(self) -> bool:
        low = self.least is None or self.value >= self.least
        return low and (self.most is None or self.value <= self.most)


@dataclass(frozen=True, kw_only=True)
class Options:
    """The folder of the data, and the number of images for small networks."""

    data: FilePath | None
    images: int


def small_networks(options: Options) -> list[Row]:
    """Networks of the zoo on real test images, P = 16."""
    rows: list[Row] = []
    for name in SMALL:
        network = file.load(zoo.find(name))
        dataset = network.meta["dataset"]
        if dataset != "digits" and options.data is None:
            raise Unavailable(f"{name} and the rows after it: --data is not given")
        root = None
        if options.data is not None and dataset != "digits":
            root = str(options.data / dataset)
        images = load_dataset(network, None, root).images[: options.images]
        config = smallest_for(network, lanes=16)
        facts = simulate(config, network, images)
        what = f"{name}, 16 lanes, {facts['images']} images"
        rows += [
            Row(what=what, figure="bit-exact", value=float(facts["bit_exact"]), least=1.0),
            Row(what=what, figure="cycles per image", value=facts["cycles"]),
            Row(
                what=what,
                figure="utilisation",
                value=facts["utilisation"],
                least=0.85 if name == "mnist" else None,
            ),
        ]
    return rows


def resnet(options: Options) -> list[Row]:
    """The paper's ResNet-20 on one real image, P = 64: the whole network, and its second stage."""
    if options.data is None:
        raise Unavailable("ResNet-20: --data is not given")
    network = file.load(zoo.find("cifar10-resnet20"))
    images = load_dataset(network, None, str(options.data / "cifar10")).images[:1]
    config = smallest_for(network, **LARGE)
    facts = simulate(config, network, images)
    stage = [layer for layer in facts["layers"] if layer["name"].startswith(STAGE)]
    what = "ResNet-20, 64 lanes"
    return [
        Row(what=what, figure="bit-exact", value=float(facts["bit_exact"]), least=1.0),
        Row(what=what, figure="cycles per image", value=facts["cycles"]),
        Row(what=what, figure="utilisation", value=facts["utilisation"], least=0.97),
        Row(
            what=f"{what}, second stage",
            figure="utilisation",
            value=utilisation(stage, config),
            least=0.97,
        ),
    ]


def sparse_layer(_options: Options) -> list[Row]:
    """256 to 256 channels, 3x3, 16x16, T = 2, with 3 % of the inputs active, P = 64."""
    rows: list[Row] = []
    for burst, levels in (("levels 1", 1), ("levels 1 to 5", 5)):
        network, images = random_layer(active=ACTIVE, levels=levels)
        config = smallest_for(network, **LARGE)
        facts = simulate(config, network, images)
        what = f"{100 * ACTIVE:g} % active inputs, {burst}, 64 lanes"
        rows += [
            Row(what=what, figure="bit-exact", value=float(facts["bit_exact"]), least=1.0),
            Row(
                what=what,
                figure="utilisation",
                value=utilisation(facts["layers"][:1], config),
                least=0.85,
            ),
        ]
    rows.append(
        Row(
            what="the core with 64 lanes in Verilator",
            figure="simulated cycles per second",
            value=facts["sim_cycles_per_second"],
            least=100_000,
        )
    )
    return rows


def random_layer(*, active: float, levels: int) -> tuple[Network, NDArray[np.uint8]]:
    """A layer as in ResNet-20's second stage with random weights, and its input frames. A fraction
    `active` of the input levels is not 0; these are drawn evenly from 1 to `levels`.
    """
    random = np.random.default_rng(0)
    channels, side, steps = 256, 16, 2
    weight = random.integers(-127, 128, (channels, channels, 3, 3), np.int8)
    theta = np.full(channels, 60 * 64, np.int64)
    layer = Layer(
        name="conv",
        shape=(channels, side, side),
        paths=(Path(source=INPUT, weight=weight, padding=(1, 1)),),
        bias=np.zeros(channels, np.int64),
        fraction_bits=2,
        neuron=Neuron(capacity=5, theta=theta, reset=theta.copy(), decay=1, decay_bits=1),
    )
    network = Network(
        name=f"active-{100 * active:g}-percent",
        input=Input(shape=(channels, side, side), static=False, bits=3),
        timesteps=steps,
        weight_bits=8,
        layers=(layer, total("conv", layer.output_shape)),
    )
    shape = (1, steps, channels, side, side)
    frames = random.integers(1, levels + 1, shape) * (random.random(shape) < active)
    return network, frames.astype(np.uint8)


def lane_arrays(_options: Options) -> list[Row]:
    """Cells and clock of the lanes on real parts: 22-bit accumulators, 8-bit weights."""
    rows: list[Row] = []
    for part, lanes, mhz in ((UP5K, 8, 24), (ECP5_85, 64, 90)):
        found = lane_array(part, lanes=lanes, acc_bits=22, weight_bits=8, rows=256)
        what = f"{lanes} lanes on {part.name}"
        rows += [
            Row(what=what, figure="LUT4 per lane", value=found.luts / lanes, most=110),
            Row(what=what, figure="MHz after routing", value=found.mhz, least=mhz),
        ]
    return rows


def total(source: str, shape: Shape) -> Layer:
    """A readout of one class that sums all levels of a tensor."""
    channels, height, width = shape
    window = Window(kernel=(height, width), stride=(height, width))
    ones = np.ones((1, channels, 1, 1), np.int8)
    return Layer(
        name="total",
        shape=(1, 1, 1),
        paths=(Path(source=source, weight=ones, pool=window),),
        bias=np.zeros(1, np.int64),
        fraction_bits=0,
        neuron=None,
    )


def simulate(config: CoreConfig, network: Network, images: NDArray[np.uint8]) -> dict[str, Any]:
    """The report of `sim.check` for a network and its images."""
    with Verilated(build(config)) as core:
        return check(network, compile_network(network, config), core, images).report()


def utilisation(layers: Sequence[dict[str, Any]], config: CoreConfig) -> float:
    work = sum(layer["acs_bit_sparse"] for layer in layers)
    return work / (config.lanes * sum(layer["cycles"] for layer in layers))


@dataclass(frozen=True, kw_only=True)
class Door:
    """A network on a board, and the limit for the images per second that its host sees: at least
    `least`, or at least the fraction `share` of the core's own rate.

    The limit holds for a bridge without latency.
    """

    board: str
    model: str
    baud: int
    mhz: int
    lanes: int | None = None
    door: bool = True
    images: int = 4
    least: float | None = None
    share: float | None = None


DOORS = (
    Door(board="icebreaker", model="digits", baud=6_000_000, mhz=30, door=False),
    Door(board="icebreaker", model="digits", baud=6_000_000, mhz=30, images=60, least=2_000),
    Door(
        board="icebreaker",
        model="mnist-4bit",
        baud=3_000_000,
        mhz=33,
        lanes=16,
        images=60,
        least=500,
    ),
    Door(board="ulx3s-85f", model="cifar10-onchip", baud=3_000_000, mhz=80, images=12, least=85),
)
LARGE_DOORS = (
    Door(
        board="tang-nano-20k", model="cifar10-small", baud=2_000_000, mhz=81, images=3, share=0.95
    ),
    *(
        Door(board="ulx3s-85f", model=model, baud=3_000_000, mhz=75, images=3, share=0.97)
        for model in ("cifar10-resnet20", "cifar10-resnet20-4bit", "cifar10-resnet20-4bit-sparse")
    ),
)


def doors(options: Options) -> list[Row]:
    """Images per second as a host sees them, for boards with the model on the chip, with three
    bridges.
    """
    return [row for door in DOORS for row in seen_through(door, options)]


def large_doors(options: Options) -> list[Row]:
    """The same with external memory: minutes for each row."""
    if options.data is None:
        raise Unavailable("what a host sees of ResNet-20: --data is not given")
    return [row for door in LARGE_DOORS for row in seen_through(door, options)]


def seen_through(door: Door, options: Options) -> list[Row]:
    """One row per latency of the bridge. Without data, inputs are noise."""
    network = file.load(zoo.find(door.model))
    images = seen.inputs(network, options.data, door.images)
    with tempfile.TemporaryDirectory(prefix="lbq-door-") as folder:
        packed = seen.pack(
            network,
            door.board,
            FilePath(folder),
            lanes=door.lanes,
            target_hz=door.mhz * 1_000_000,
            door=door.door,
            images=images,
        )
        found = [
            seen.seen(packed, images, baud=door.baud, latency=latency) for latency in seen.LATENCIES
        ]
    what = f"{door.model} on {door.board}{' with its door' if door.door else ''}"
    core = found[0].core_images_per_second
    least = door.least if door.share is None else door.share * core
    rows = [Row(what=what, figure="images per second of the core", value=core)]
    for each in found:
        where = f"{what}, {door.baud / 1e6:g} Mbaud, bridge {1e3 * each.latency:g} ms"
        rows += [
            Row(what=where, figure="bit-exact", value=float(each.equal), least=1.0),
            Row(
                what=where,
                figure="images per second over the link",
                value=each.images_per_second,
                least=None if each.latency else least,
            ),
        ]
    return rows


class Unavailable(Exception):
    """The data of a benchmark are not given."""


BENCHES: dict[str, Callable[[Options], list[Row]]] = {
    "small": small_networks,
    "sparse": sparse_layer,
    "resnet": resnet,
    "lanes": lane_arrays,
    "doors": doors,
    "doors-large": large_doors,
}


def main(argv: list[str] | None = None) -> int:
    parser = Parser(
        prog="python -m sim.bench",
        description="Measure the core: cycles that its RTL counts, cells and clocks of its lanes.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--data", type=FilePath, metavar="DIR", help="folder of mnist/, nmnist/ and cifar10/"
    )
    parser.add_argument(
        "--images", type=int, default=3, metavar="N", help="images for each small network (3)"
    )
    parser.add_argument("--only", choices=BENCHES, action="append", help="may be repeated")
    parser.add_argument("--json", type=FilePath, metavar="FILE", help="write the figures here")
    args = parser.parse_args(argv)
    options = Options(data=args.data, images=args.images)
    rows: list[Row] = []
    left_out: list[str] = []
    console = Console()
    try:
        for name in args.only or BENCHES:
            with console.status(f"measuring: {name}"):
                try:
                    rows += BENCHES[name](options)
                except Unavailable as reason:
                    left_out.append(str(reason))
    except (ValueError, DatasetError, SimulatorError, ToolError, MissingToolError) as error:
        return ending.refuse(error)
    report = {"rows": [asdict(row) | {"met": row.met} for row in rows], "left_out": left_out}
    if args.json is not None:
        args.json.parent.mkdir(parents=True, exist_ok=True)
        args.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    console.print(_table(report))
    for reason in left_out:
        console.print(f"left out: {reason}")
    return 0 if all(row.met for row in rows) else 1


def _table(report: dict[str, Any]) -> Table:
    table = Table(title="the core")
    for heading in ("what", "figure", "measured", "wanted", ""):
        table.add_column(heading, justify="right" if heading in ("measured", "wanted") else "left")
    for row in report["rows"]:
        bounds = [f">= {_number(row['least'])}"] if row["least"] is not None else []
        bounds += [f"<= {_number(row['most'])}"] if row["most"] is not None else []
        mark = "" if not bounds else "met" if row["met"] else "MISSED"
        table.add_row(row["what"], row["figure"], _number(row["value"]), " ".join(bounds), mark)
    return table


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3f}"


if __name__ == "__main__":  # hands over to the module of the full name
    sys.exit(importlib.import_module("lbq_hw.sim.bench").main())
