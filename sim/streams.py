"""Recordings on the RTL of a streaming core, step by step: ``python -m sim.streams --help``."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbq_hw import file, zoo
from lbq_hw.commands import ending
from lbq_hw.commands.arguments import add_reading, command_parser, positive, reading
from lbq_hw.commands.progress import image_bar, show_notes
from lbq_hw.core.streaming.accelerator import StreamAccelerator
from lbq_hw.datasets import DatasetError
from lbq_hw.datasets.fitting import load_samples
from lbq_hw.golden.streaming import Stream
from lbq_hw.host.streaming import StreamDevice
from lbq_hw.host.transport import DeviceError
from lbq_hw.network import Network
from lbq_hw.sim.verilator import BENCH, TOP, Verilated, build_bench
from lbq_hw.sim.verilog import SimulatorError, convert_large
from lbq_hw.streaming.compiler import compile_stream
from lbq_hw.streaming.config import StreamConfig
from lbq_hw.streaming.cycles import step_cycles
from lbq_hw.streaming.machine import Machine

_EPILOG = """
examples:
  python -m sim.streams --model nmnist-stream --data folder/of/nmnist --images 3
      the smallest streaming core for the network, on three test recordings
  python -m sim.streams --model fsdd --data DIR --images 1 --lanes 4 --units 1 --horizon 64
  python -m sim.streams --model nmnist-stream --data DIR --images 167 --joined
      10,020 steps without a reset
After each step, levels and logits must equal golden's, and cycles the cycle model's. The first
difference ends the run with exit code 1.
"""


@dataclass(frozen=True, kw_only=True)
class Followed:
    """A recording on a core: the cycles of its steps, and the first difference."""

    cycles: tuple[int, ...]
    difference: str | None


def rtl(config: StreamConfig) -> str:
    """The core as Verilog."""
    return convert_large(StreamAccelerator(config), name=TOP)


def follow(
    network: Network,
    device: StreamDevice,
    frames: NDArray[np.uint8],
    *,
    advance: Callable[[], object] = lambda: None,
) -> Followed:
    """Run raw frames (steps, C, H, W) on a core that was just reset."""
    stream, machine, cycles = Stream(network), Machine(device.program), []
    for step, frame in enumerate(frames):
        expected, logits = stream.step(frame), device.step(frame)
        cycles.append(device.cycles())
        unlike = [
            name
            for name, levels in expected.levels.items()
            if not np.array_equal(device.levels(name), levels)
        ]
        if not np.array_equal(logits, expected.logits):
            unlike.append(network.layers[-1].name)
        if unlike:
            return Followed(cycles=tuple(cycles), difference=f"step {step}, layer {unlike[0]!r}")
        predicted = sum(step_cycles(device.config, machine.step(device.program.events(frame))))
        if predicted != cycles[-1]:
            told = f"step {step}: cycles {predicted} predicted, {cycles[-1]} counted"
            return Followed(cycles=tuple(cycles), difference=told)
        advance()
    return Followed(cycles=tuple(cycles), difference=None)


def main(argv: Sequence[str] | None = None, *, prog: str = "python -m sim.streams") -> int:
    parser = command_parser(
        prog,
        "Run recordings on a simulated streaming core, and compare every step with golden.",
        _EPILOG,
    )
    parser.add_argument(
        "--model", default="nmnist-stream", metavar="F", help="an .lbq file or a zoo name"
    )
    parser.add_argument("--lanes", type=positive, default=16, metavar="P", help="(16)")
    parser.add_argument("--units", type=positive, default=4, metavar="L", help="neurons (4)")
    parser.add_argument(
        "--horizon", type=positive, default=4096, metavar="STEPS",
        help="steps for which membranes without a leak are proven to fit (4096)",
    )  # fmt: skip
    parser.add_argument("--dataset", help="default: the dataset of the model's training")
    parser.add_argument("--data", metavar="PATH", help="its folder, or an .npz file of your own")
    add_reading(parser)
    parser.add_argument("--raw", metavar="F", help="recordings from a .npy file instead")
    parser.add_argument(
        "--images", type=positive, default=1, metavar="N", help="random test recordings (1)"
    )
    parser.add_argument(
        "--joined", action="store_true", help="all recordings as one stream, without a reset"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args(argv)
    try:
        facts = _run(args)
    except (OSError, ValueError, DatasetError, DeviceError, SimulatorError) as error:
        return ending.refuse(error)
    print(json.dumps(facts) if args.json else spoken(facts))
    return 0 if facts["difference"] is None else 1


def _run(args: argparse.Namespace) -> dict[str, Any]:
    network = file.load(zoo.find(args.model))
    program = compile_stream(network, lanes=args.lanes, units=args.units, horizon=args.horizon)
    samples = load_samples(
        network,
        dataset=args.dataset,
        data=args.data,
        raw=args.raw,
        limit=args.images,
        reading=reading(args),
    )
    show_notes(samples.notes)
    streams = [np.concatenate(samples.images)] if args.joined else samples.images
    found: list[Followed] = []
    with image_bar() as bar:
        task = bar.add_task("building", total=None)
        built = build_bench(rtl(program.config), BENCH, top=TOP)
        bar.update(task, description="steps", total=sum(map(len, streams)))
        with Verilated(built) as core:
            device = StreamDevice(core, program)
            device.load()
            for frames in streams:
                device.reset()
                found.append(follow(network, device, frames, advance=lambda: bar.advance(task)))
                if found[-1].difference is not None:
                    break
    return _facts(network, program.config, found)


def _facts(network: Network, config: StreamConfig, found: Sequence[Followed]) -> dict[str, Any]:
    *good, last = found
    told = last.difference and f"recording {len(good)}, {last.difference}"
    return {
        "model": network.name,
        "lanes": config.lanes,
        "units": config.units,
        "recordings": len(found),
        "steps": sum(len(one.cycles) for one in found),
        "difference": told,
        "cycles_per_recording": sum(sum(one.cycles) for one in found) / len(found),
        "slowest_step": max(max(one.cycles) for one in found),
    }


def spoken(facts: dict[str, Any]) -> str:
    """Two lines for people."""
    core = f"{facts['model']} on {facts['lanes']} lanes and {facts['units']} units"
    cost = (
        f"{facts['cycles_per_recording']:,.0f} cycles per recording, "
        f"{facts['slowest_step']:,} of the slowest step"
    )
    if facts["difference"] is not None:
        return f"{core}: {cost}\nDIFFERENT: {facts['difference']}"
    return f"{core}: {cost}\nequal to golden and to the cycle model in {facts['steps']:,} steps"


if __name__ == "__main__":  # hands over to the module of the full name
    sys.exit(ending.run(importlib.import_module("lbq_hw.sim.streams").main))
