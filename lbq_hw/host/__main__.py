"""A dataset through a board: ``python -m lbq_hw.host --help``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from lbq_hw import golden, package
from lbq_hw.arguments import positive, spoken
from lbq_hw.compiler import compile_network
from lbq_hw.datasets import DatasetError
from lbq_hw.datasets.fitting import Samples, load_samples
from lbq_hw.host.device import Device, DeviceError
from lbq_hw.host.line import LinkError, SerialTransport
from lbq_hw.package import Package
from lbq_hw.progress import image_bar

_EPILOG = """
examples:
  python -m lbq_hw.host --port /dev/ttyUSB1 --package build/mnist/package --data DIR
  python -m lbq_hw.host --port NAME --package DIR --images 20 --compare
      logits of 20 images, each compared with the golden model; exit code 1 if one differs
  python -m lbq_hw.host --port NAME --package DIR --picture cat.png dog.jpg
      the classes that the board takes these pictures for
The program is uploaded unless the bitstream has brought it. Latency comes from the cycles that the
core counted, at the package's clock; throughput from the time that passed, the link included. With
a simulated board (python -m sim.board) all seconds are those of the simulation.
"""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What was seen of every image, and of the upload."""

    logits: NDArray[np.int64]
    cycles: NDArray[np.int64]
    seconds: float
    uploaded: bool
    upload_seconds: float
    repeats: int


def main(argv: list[str] | None = None, *, prog: str = "python -m lbq_hw.host") -> int:
    args = _parser(prog).parse_args(argv)
    try:
        packed = package.read(args.package)
        samples = load_samples(
            packed.network,
            dataset=args.dataset,
            data=args.data,
            raw=args.raw,
            pictures=args.picture,
            limit=args.images,
        )
        measured = _measure(args, packed, samples)
        facts = report(packed, samples, measured, compare=args.compare)
    except (DatasetError, DeviceError, ValueError, OverflowError, MemoryError) as error:
        print(f"host: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("host: stopped", file=sys.stderr)
        return 130
    if args.json:
        print(json.dumps(facts))
    else:
        _show(facts)
    return 1 if facts["equal"] is False else 0


def report(
    packed: Package, samples: Samples, measured: Measured, *, compare: bool
) -> dict[str, Any]:
    """One JSON-able object; `equal` and `differing` are None unless compared with golden.

    Images without labels have no `accuracy`, but `classes`, what the board takes them for.
    """
    classes = measured.logits.argmax(axis=1)
    differing = None
    if compare:
        wanted = golden.run(packed.network, samples.images).logits
        differing = np.flatnonzero((wanted != measured.logits).any(axis=1)).tolist()
    cycles = float(measured.cycles.mean())
    right: dict[str, Any] = {"accuracy": None, "classes": classes.tolist()}
    if samples.labels is not None:
        right = {"accuracy": 100.0 * float(np.mean(classes == samples.labels))}
    return {
        "model": packed.network.name,
        "board": packed.board,
        "config": packed.config.digest,
        "dataset": samples.name,
        "images": len(samples.images),
        **right,
        "equal": None if differing is None else not differing,
        "differing": differing,
        "clock_hz": packed.clock_hz,
        "cycles": cycles,
        "cycles_most": int(measured.cycles.max()),
        "latency_us": 1e6 * cycles / packed.clock_hz,
        "images_per_second": len(samples.images) / measured.seconds,
        "uploaded": measured.uploaded,
        "upload_seconds": measured.upload_seconds,
        "repeated_frames": measured.repeats,
    }


@contextmanager
def _rate(line: SerialTransport, baud: int, packed: Package) -> Iterator[None]:
    """The line at another rate; at the end it has the rate of the package again."""
    if baud == packed.baud:
        yield
        return
    line.set_rate(baud, clock_hz=packed.clock_hz)
    try:
        yield
    finally:
        with suppress(LinkError):  # of a line that is gone; the next host sends a break
            line.set_rate(packed.baud, clock_hz=packed.clock_hz)


def _measure(args: argparse.Namespace, packed: Package, samples: Samples) -> Measured:
    program = compile_network(packed.network, packed.config)
    if not len(samples.images):
        raise ValueError("the dataset must have an image")
    with (
        SerialTransport.open(args.port, baud=packed.baud, timeout=args.timeout) as line,
        _rate(line, args.baud or packed.baud, packed),
        image_bar() as bar,
    ):
        task = bar.add_task("upload", total=None)
        device = Device(line, program)
        began = line.now()
        held = line.baked() == device.tag and not args.reload
        if not held and args.no_load:
            raise DeviceError("the bitstream did not bring this model: leave out --no-load")
        if not held:
            device.load()
        ready = line.now()
        bar.update(task, description=f"{program.name} on {packed.board}", total=len(samples.images))
        logits, cycles = [], []
        for image in samples.images:
            logits.append(device.run(image))
            cycles.append(device.counters().cycles)
            bar.advance(task)
        return Measured(
            logits=np.array(logits),
            cycles=np.array(cycles),
            seconds=line.now() - ready,
            uploaded=not held,
            upload_seconds=ready - began,
            repeats=line.repeats,
        )


def _show(facts: dict[str, Any]) -> None:
    table = Table(title=f"{facts['model']} on {facts['board']}", show_header=False)
    if facts["accuracy"] is None:
        table.add_row("classes", " ".join(map(str, facts["classes"])))
    else:
        table.add_row("accuracy", f"{facts['accuracy']:.2f} % of {facts['images']} images")
    if facts["equal"] is not None:
        wrong = len(facts["differing"])
        table.add_row("golden", f"{wrong} images DIFFER" if wrong else "all logits equal")
    mhz = facts["clock_hz"] / 1e6
    table.add_row(
        "latency", f"{facts['latency_us']:,.1f} us ({facts['cycles']:,.0f} cycles at {mhz:g} MHz)"
    )
    table.add_row("throughput", f"{facts['images_per_second']:,.1f} images/s, the link included")
    upload = (
        f"{facts['upload_seconds']:.2f} s" if facts["uploaded"] else "none: it is in the bitstream"
    )
    table.add_row("upload", upload)
    if facts["repeated_frames"]:
        table.add_row("repeated frames", str(facts["repeated_frames"]))
    Console().print(table)


def _parser(prog: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=prog,
        description="Upload a package's network to its board, run images on it.",
        epilog=spoken(_EPILOG, prog),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--port", required=True, help="serial port, or what sim.board prints")
    parser.add_argument("--package", required=True, metavar="DIR", help="folder of the package")
    parser.add_argument("--dataset", metavar="NAME", help="default: the model's own")
    parser.add_argument("--data", metavar="PATH", help="its folder, or an .npz file of one's own")
    parser.add_argument("--raw", metavar="F", help="images of a .npy file instead")
    parser.add_argument(
        "--picture", nargs="+", default=[], metavar="F", help="PNG or JPEG files instead, resized"
    )
    parser.add_argument("--images", type=positive, metavar="N", help="only the first N test images")
    parser.add_argument("--compare", action="store_true", help="compare all logits with golden")
    parser.add_argument("--json", action="store_true", help="print one JSON object, no table")
    loading = parser.add_mutually_exclusive_group()
    loading.add_argument("--no-load", action="store_true", help="refuse to upload")
    loading.add_argument("--reload", action="store_true", help="upload even what is baked in")
    parser.add_argument("--baud", type=positive, help="rate of the line (the package's)")
    parser.add_argument(
        "--timeout",
        type=_seconds,
        default=1.0,
        metavar="S",
        help="without an answer, until a frame is repeated (1)",
    )
    return parser


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 < value < 3600:
        raise argparse.ArgumentTypeError(f"must be between 0 and 3600, not {text}")
    return value


if __name__ == "__main__":
    sys.exit(main())
