"""Runs a dataset on a board: ``python -m lbq_hw.host --help``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict

import numpy as np
from rich.progress import Progress

from lbq_hw import golden, package, units
from lbq_hw.commands import ending
from lbq_hw.commands.arguments import add_reading, command_parser, positive, reading
from lbq_hw.commands.progress import image_bar, show_notes
from lbq_hw.datasets import DatasetError
from lbq_hw.datasets.fitting import Samples, load_samples
from lbq_hw.host import ports, rates, streamed
from lbq_hw.host.device import Device
from lbq_hw.host.line import LinkError, SerialTransport
from lbq_hw.host.results import Measured, report, show, spoken_captures
from lbq_hw.host.transport import DeviceError
from lbq_hw.host.upload import Upload, upload_tape
from lbq_hw.isa import regions
from lbq_hw.numeric import Integers
from lbq_hw.package import Package

_EPILOG = """
examples:
  python -m lbq_hw.host --ports
      the serial ports of this machine, and what they are
  python -m lbq_hw.host --package build/mnist/package --selftest
      a few inputs that the package carries, with the logits they must give
  python -m lbq_hw.host --port /dev/ttyUSB1 --package build/mnist/package --data DIR
  python -m lbq_hw.host --port NAME --package DIR --images 20 --compare
      logits of 20 images, each compared with the golden model; exit code 1 if one differs
  python -m lbq_hw.host --port NAME --package DIR --picture cat.png dog.jpg
      the class that the board gives each of these pictures
  python -m lbq_hw.host --package DIR --memory-test
      a test of the board's external memory by its own core; exit code 1 if a word differs
  python -m lbq_hw.host --package DIR --selftest --recalibrate
      the self-test, after a new calibration of the external memory's timing
The program is uploaded unless the bitstream contains it or the external memory holds it; an
interrupted upload continues where it stopped. Latency comes from the cycles that the core counted,
at the package's clock; throughput from the elapsed time, including the link. With a simulated board
(lbq sim-board), all times are simulated times.
"""


_ASK = 0.1  # seconds to wait for an answer at each port, while looking for the board


def main(argv: list[str] | None = None, *, prog: str = "python -m lbq_hw.host") -> int:
    args = _parser(prog).parse_args(argv)
    if args.ports:
        _show_ports(as_json=args.json)
        return 0
    try:
        if args.package is None:
            raise ValueError("give --package, or --ports")
        if args.stream is not None:
            return streamed.run(args)
        packed = package.read(args.package)
        if args.recalibrate and not packed.config.external:
            raise ValueError(f"the core of {packed.folder} has no external memory to calibrate")
        if args.memory_test:
            return _test_memory(args, packed)
        samples, wanted = _samples(args, packed)
        measured = _measure(args, packed, samples)
        if args.compare and wanted is None:
            wanted = golden.run(packed.network, samples.images).logits
        facts = report(packed, samples, measured, wanted=wanted)
    except (DatasetError, DeviceError, ValueError, OverflowError, MemoryError) as error:
        return ending.refuse(error)
    show_notes(samples.notes)
    if args.json:
        print(json.dumps(facts))
    else:
        show(facts)
    return 1 if facts["equal"] is False else 0


def _samples(args: argparse.Namespace, packed: Package) -> tuple[Samples, Integers | None]:
    """The inputs to run, and their logits if the package has them."""
    if not args.selftest:
        samples = load_samples(
            packed.network,
            dataset=args.dataset,
            data=args.data,
            raw=args.raw,
            pictures=args.picture,
            limit=args.images,
            reading=reading(args),
        )
        return samples, None
    if args.dataset or args.data or args.raw or args.picture or args.images:
        raise ValueError("--selftest has its own inputs: leave out --images and all other inputs")
    if packed.selftest is None:
        raise ValueError(f"{packed.folder} has no self-test: build it again")
    test = packed.selftest
    return Samples(name="self-test", images=test.images, labels=None), test.logits


@contextmanager
def _opened(args: argparse.Namespace, packed: Package) -> Iterator[SerialTransport]:
    """The line to the package's board, at the requested rate."""
    port = args.port
    if port == ports.AUTO:
        port = ports.choose(ports.found(), lambda name: _answers(name, packed))
    baud = None if args.baud == rates.AUTO else args.baud
    with rates.opened(packed, port, baud=baud, timeout=args.timeout) as line:
        yield line


def _measure(args: argparse.Namespace, packed: Package, samples: Samples) -> Measured:
    program = packed.program
    if not len(samples.images):
        raise ValueError("the dataset must have at least one image")
    with _opened(args, packed) as line, image_bar() as bar:
        task = bar.add_task("upload", total=None)
        device = Device(line, program, opening=packed.opening)
        if args.recalibrate:
            device.recalibrate()
        began = line.now()
        tape, uploaded = None, False
        if program.config.external:
            tape = _upload(args, device, line, bar)
            uploaded = tape.written > 0
        elif line.baked() != device.tag or args.reload:
            if args.no_load:
                raise DeviceError(
                    "the bitstream does not contain this model: leave out --no-load to upload it"
                )
            device.load()
            uploaded = True
        ready = line.now()
        bar.update(
            task,
            description=f"{program.name} on {packed.board}",
            completed=0,
            total=len(samples.images),
        )
        logits, cycles, waits = [], [], []
        for ran in device.stream(samples.images, clock_hz=packed.clock_hz):
            logits.append(ran.logits)
            cycles.append(ran.cycles)
            waits.append(ran.wait_cycles)
            bar.advance(task)
        seconds = line.now() - ready
        return Measured(
            logits=np.array(logits),
            cycles=np.array(cycles),
            waits=waits,
            seconds=seconds,
            uploaded=uploaded,
            upload_seconds=ready - began,
            tape=tape,
            captures=device.captures(),
            repeats=line.repeats,
            baud=line.baud,
        )


def _upload(
    args: argparse.Namespace, device: Device, line: SerialTransport, bar: Progress
) -> Upload:
    """Upload the missing pieces of the tape; the progress bar's first task counts them."""
    task = bar.task_ids[0]

    def say(text: str) -> None:
        if not args.json:
            bar.console.print(text, soft_wrap=True, highlight=False, markup=False)

    return upload_tape(
        device,
        baud=line.baud,
        now=line.now,
        everything=args.reload,
        refuse=args.no_load,
        progress=lambda what, done, total: bar.update(
            task, description=what, completed=done, total=total
        ),
        say=say,
    )


def _test_memory(args: argparse.Namespace, packed: Package) -> int:
    """Let the core test its memory, and print the result; 1 if a word differs."""
    if args.selftest or args.dataset or args.data or args.raw or args.picture or args.images:
        raise ValueError("--memory-test takes no inputs: leave out --selftest and all other inputs")
    if not packed.config.external:
        raise ValueError(f"the core of {packed.folder} has no external memory to test")
    with _opened(args, packed) as line, image_bar() as bar:
        bar.add_task("memory test", total=None)
        device = Device(line, packed.program)
        if args.recalibrate:
            device.recalibrate()
        memory = device.memory()
        captures = memory.captures().facts()
        began = line.now()
        differing = memory.test()
        device.check()
        seconds = line.now() - began
    if args.json:
        facts = {"board": packed.board, "config": packed.config.digest, "captures": captures}
        print(json.dumps(facts | {"differing_words": differing, "seconds": seconds}))
    elif differing:
        print(f"memory test: {differing} words DIFFER, {units.seconds(seconds)}")
    else:
        print(f"memory test: no word differs, {units.seconds(seconds)}")
    if not args.json:
        print(f"captures: {spoken_captures(captures)}")
    return 1 if differing else 0


def _answers(name: str, packed: Package) -> bool:
    """Whether the package's core is behind a port."""
    try:
        with SerialTransport.open(name, baud=packed.baud, timeout=_ASK) as line:
            return line.read(0, 2) == [regions.MAGIC, int(packed.config.digest[:8], 16)]
    except LinkError:
        return False


def _show_ports(*, as_json: bool) -> None:
    found = ports.found()
    if as_json:
        print(json.dumps([asdict(port) for port in found]))
        return
    if not found:
        print("no serial port: plug the board in, and see docs/bring-up.md")
    for port in found:
        print(f"{port.name}  {port.what}")


def _parser(prog: str) -> argparse.ArgumentParser:
    parser = command_parser(
        prog, "Upload a package's network to its board, and run images on it.", _EPILOG
    )
    parser.add_argument(
        "--port",
        default=ports.AUTO,
        help="serial port, or the port that lbq sim-board prints; auto, the default: the only USB "
        "port that can be the board's, or else the port at which the package's core answers",
    )
    parser.add_argument("--ports", action="store_true", help="print the serial ports and end")
    parser.add_argument("--package", metavar="DIR", help="folder of the package")
    parser.add_argument(
        "--selftest",
        action="store_true",
        help="run the package's own inputs, whose logits are known",
    )
    parser.add_argument(
        "--memory-test",
        action="store_true",
        help="let the core test its external memory, which overwrites it, and end",
    )
    parser.add_argument(
        "--recalibrate",
        action="store_true",
        help="first calibrate the timing of the external memory again, for a board that has become "
        "warmer or colder",
    )
    parser.add_argument("--dataset", metavar="NAME", help="default: the model's own")
    parser.add_argument("--data", metavar="PATH", help="its folder, or an .npz file of your own")
    add_reading(parser)
    parser.add_argument("--raw", metavar="F", help="images of a .npy file instead")
    parser.add_argument(
        "--picture", nargs="+", default=[], metavar="F", help="PNG or JPEG files instead, resized"
    )
    parser.add_argument(
        "--images",
        type=positive,
        metavar="N",
        help="only N test images, drawn with a fixed seed, or the first N inputs or pictures",
    )
    parser.add_argument(
        "--stream",
        metavar="F",
        help="for a streaming core, one frame per step: the frames (T, C, H, W) of a .npy file, "
        "or, if F is data, test recordings of --data",
    )
    parser.add_argument(
        "--compare", action="store_true", help="compare all logits with the golden model's"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object, no table")
    loading = parser.add_mutually_exclusive_group()
    loading.add_argument("--no-load", action="store_true", help="fail instead of uploading")
    loading.add_argument(
        "--reload",
        action="store_true",
        help="upload everything, even if the board already holds it",
    )
    parser.add_argument(
        "--baud",
        type=_baud,
        default=rates.AUTO,
        metavar="N",
        help="rate of the line; auto, the default: the highest rate that both the board's USB "
        "bridge and its core support, verified with data",
    )
    parser.add_argument(
        "--timeout",
        type=_seconds,
        default=1.0,
        metavar="S",
        help="seconds without an answer until a frame is repeated (1)",
    )
    return parser


def _baud(text: str) -> int | str:
    return text if text == rates.AUTO else positive(text)


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 < value < 3600:
        raise argparse.ArgumentTypeError(f"must be between 0 and 3600, not {text}")
    return value


if __name__ == "__main__":
    sys.exit(ending.run(main))
