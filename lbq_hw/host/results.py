"""The results of a board's run on images, as one JSON-able object and as a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from lbq_hw import units
from lbq_hw.datasets import meaning
from lbq_hw.datasets.fitting import Samples, described
from lbq_hw.host.memory import Captures
from lbq_hw.host.upload import Upload
from lbq_hw.numeric import Integers
from lbq_hw.package import Package


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Measurements of every image, and of the upload."""

    logits: NDArray[np.int64]
    cycles: NDArray[np.int64]
    waits: list[int | None]
    seconds: float
    uploaded: bool
    upload_seconds: float
    tape: Upload | None
    captures: Captures | None
    repeats: int
    baud: int


def report(
    packed: Package, samples: Samples, measured: Measured, *, wanted: Integers | None
) -> dict[str, Any]:
    """One JSON-able object; `equal` and `differing` are None if no logits are `wanted`.

    Images without labels have no `accuracy`. They have `classes`, the board's answers, and
    `class_names`, which are empty if the dataset does not name its classes.
    """
    classes = measured.logits.argmax(axis=1)
    differing = None
    if wanted is not None:
        differing = np.flatnonzero((wanted != measured.logits).any(axis=1)).tolist()
    cycles = float(measured.cycles.mean())
    waits = [wait for wait in measured.waits if wait is not None]
    names = list(meaning.class_names(packed.network))
    right: dict[str, Any] = {"accuracy": None, "classes": classes.tolist(), "class_names": names}
    if samples.labels is not None:
        right = {"accuracy": 100.0 * float(np.mean(classes == samples.labels))}
    return {
        "model": packed.network.name,
        "board": packed.board,
        "config": packed.config.digest,
        **samples.origin(),
        **right,
        "equal": None if differing is None else not differing,
        "differing": differing,
        "clock_hz": packed.clock_hz,
        "cycles": cycles,
        "cycles_most": int(measured.cycles.max()),
        "wait_cycles": sum(waits) / len(waits) if waits else None,
        "latency_us": 1e6 * cycles / packed.clock_hz,
        "baud": measured.baud,
        "images_per_second": len(samples.images) / measured.seconds,
        "images_per_second_core": packed.clock_hz / cycles,
        "uploaded": measured.uploaded,
        "upload_seconds": measured.upload_seconds,
        "tape": None if measured.tape is None else measured.tape.facts(),
        "captures": None if measured.captures is None else measured.captures.facts(),
        "repeated_frames": measured.repeats,
    }


def show(facts: dict[str, Any]) -> None:
    """Print the table."""
    table = Table(title=f"{facts['model']} on {facts['board']}", show_header=False)
    if facts["accuracy"] is None:
        table.add_row("classes", escape(meaning.named(facts["classes"], facts["class_names"])))
    else:
        table.add_row("accuracy", f"{facts['accuracy']:.2f} % of {described(facts)}")
    if facts["equal"] is not None:
        wrong = len(facts["differing"])
        table.add_row("golden", f"{units.images(wrong)} DIFFER" if wrong else "all logits equal")
    mhz, time = facts["clock_hz"] / 1e6, units.seconds(facts["latency_us"] / 1e6)
    seen, core = facts["images_per_second"], facts["images_per_second_core"]
    table.add_row(
        "throughput",
        f"{units.three_digits(seen)} images/s over the link, at {facts['baud']:,} baud",
    )
    table.add_row("core", f"{units.three_digits(core)} images/s without the link")
    table.add_row("latency", f"{time} in the core ({facts['cycles']:,.0f} cycles at {mhz:.4g} MHz)")
    if facts["wait_cycles"] is not None:
        table.add_row("waits", f"{facts['wait_cycles']:,.0f} of these cycles, for the tape")
    tape, upload = facts["tape"], units.seconds(facts["upload_seconds"])
    if not facts["uploaded"]:
        upload = "none: the model is baked in" if tape is None else "none: the memory holds it"
    table.add_row("upload", upload)
    if facts["captures"] is not None:
        table.add_row("captures", spoken_captures(facts["captures"]))
    if facts["repeated_frames"]:
        table.add_row("repeated frames", str(facts["repeated_frames"]))
    Console().print(table)


def spoken_captures(facts: dict[str, Any]) -> str:
    """The result of calibration as text."""
    passed = " and ".join(map(str, facts["passed"]))
    return f"{passed} passed, {facts['used']} in use"
