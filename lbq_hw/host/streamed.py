"""``lbq host --stream``: recordings through a streaming core, one step at a time."""

from __future__ import annotations

import argparse
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbq_hw import units
from lbq_hw.commands.arguments import reading
from lbq_hw.datasets.fitting import load_samples
from lbq_hw.golden.streaming import Stream
from lbq_hw.host import ports
from lbq_hw.host.line import LinkError, SerialTransport
from lbq_hw.host.streaming import StreamDevice
from lbq_hw.streaming import package, records
from lbq_hw.streaming.package import StreamPackage

DATA = "data"
"""Stands for a file: recordings of a dataset."""
_ASK = 0.1


def run(args: argparse.Namespace) -> int:
    """Run the recordings named by the arguments; 1 if `--compare` finds a difference."""
    packed = package.read(args.package)
    recordings, labels = _recordings(args, packed)
    port = args.port
    if port == ports.AUTO:
        port = ports.choose(ports.found(), lambda name: _answers(name, packed))
    with SerialTransport.open(port, baud=packed.baud, timeout=args.timeout) as line:
        device = StreamDevice(line, packed.program)
        if not args.no_load:
            device.load()
        facts = [_run(device, packed, frames, compare=args.compare) for frames in recordings]
    whole = {"board": packed.board, "recordings": facts}
    if labels is not None:
        whole["right"] = sum(
            fact["class"] == int(label) for fact, label in zip(facts, labels, strict=True)
        )
    if args.json:
        print(json.dumps(whole))
    else:
        _show(whole, packed)
    return int(any(fact["equal"] is False for fact in facts))


def _recordings(
    args: argparse.Namespace, packed: StreamPackage
) -> tuple[list[NDArray[np.uint8]], NDArray[np.int64] | None]:
    if args.stream != DATA:
        frames = np.load(args.stream, allow_pickle=False)
        wanted = packed.network.input.shape
        if frames.ndim != 4 or frames.shape[1:] != wanted or frames.dtype != np.uint8:
            raise ValueError(
                f"{args.stream} must have uint8 frames (T, C, H, W) with (C, H, W) = {wanted}, not "
                f"{frames.dtype} {frames.shape}"
            )
        return [frames], None
    samples = load_samples(
        packed.network,
        dataset=args.dataset,
        data=args.data,
        raw=None,
        limit=args.images,
        reading=reading(args),
    )
    return list(samples.images), samples.labels


def _run(
    device: StreamDevice, packed: StreamPackage, frames: NDArray[np.uint8], *, compare: bool
) -> dict[str, Any]:
    """Run one recording, beginning with a reset."""
    device.reset()
    golden = Stream(packed.network) if compare else None
    cycles, classes, equal = [], [], True
    logits = np.zeros(packed.network.classes, np.int64)
    for frame in frames:
        logits = device.step(frame)
        cycles.append(device.cycles())
        classes.append(int(logits.argmax()))
        equal &= golden is None or np.array_equal(golden.step(frame).logits, logits)
    return {
        "steps": len(frames),
        "class": int(logits.argmax()),
        "logits": logits.tolist(),
        "classes": classes,
        "cycles": cycles,
        "equal": bool(equal) if compare else None,
    }


def _show(whole: dict[str, Any], packed: StreamPackage) -> None:
    for number, fact in enumerate(whole["recordings"]):
        slowest = units.seconds(max(fact["cycles"], default=0) / packed.clock_hz)
        mean = units.seconds(float(np.mean(fact["cycles"] or [0])) / packed.clock_hz)
        said = {None: "", True: ", equal to golden at every step", False: ", DIFFERS from golden"}
        print(
            f"recording {number}: class {fact['class']} after {fact['steps']} steps, {mean} per "
            f"step, at most {slowest}{said[fact['equal']]}"
        )
    if "right" in whole:
        print(f"{whole['right']} of {len(whole['recordings'])} right")


def _answers(name: str, packed: StreamPackage) -> bool:
    """Whether the package's core is behind a port."""
    try:
        with SerialTransport.open(name, baud=packed.baud, timeout=_ASK) as line:
            return line.read(0, 2) == [records.MAGIC, int(packed.config.digest[:8], 16)]
    except LinkError:
        return False
