"""A build: its options, its folder, and the products that its steps leave there."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbq_hw import decode, file, zoo
from lbq_hw.boards import Board
from lbq_hw.chips.timing import ReaderTiming, reader_timing
from lbq_hw.commands.progress import show_notes
from lbq_hw.compiler import Program, compile_network
from lbq_hw.config import CoreConfig
from lbq_hw.datasets import DatasetError, Reading
from lbq_hw.datasets.fitting import Samples, draw, load_samples, noise
from lbq_hw.isa.door import Opening
from lbq_hw.network import Network
from lbq_hw.sizing import SizedCore, Weights, size
from lbq_hw.sizing.activity import Activity, activity
from lbq_hw.tools.process import StoppedError


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A finished step; `cached` if it reused a saved product, `beside` if later steps began before
    it was finished.
    """

    step: str
    seconds: float
    cached: bool
    note: str
    beside: bool = False


SAMPLE = 64  # images: enough for a mean within a few percent
SELFTEST = 3  # images of a package's self-test


class FlowError(RuntimeError):
    """A step cannot be done; the message is one sentence, followed by lines with the cause."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of a build. None: the flow chooses.

    `model` is an .lbq file. `lanes`, `weight_bits`, `memory` and `freq` (MHz) override the choices
    of sizing.
    With `door`, each pixel is sent once, and the next image is sent while an image runs, if the
    board has room for a door.
    `seed` is the first of the `tries` seeds that place and route may use; the default is the seed
    with which the same netlist met its clock in a measured build, otherwise 1. The build is checked
    with `images` drawn from the test split of `dataset`, which lies in `data` and is read according
    to `reading`, or from the .npy file `raw`.
    """

    model: Path
    lanes: int | None = None
    weight_bits: int | None = None
    memory: Weights | None = None
    freq: float | None = None
    door: bool = True
    seed: int | None = None
    tries: int = 4
    dataset: str | None = None
    data: str | None = None
    raw: str | None = None
    images: int = 3
    reading: Reading = field(default_factory=Reading)

    def __post_init__(self) -> None:
        for name, low in (("lanes", 4), ("weight_bits", 2), ("seed", 0), ("tries", 1)):
            value = getattr(self, name)
            if value is not None and value < low:
                raise ValueError(f"{name} must be at least {low}, not {value!r}")
        if self.freq is not None and not self.freq > 0:
            raise ValueError(f"freq must be above 0 MHz, not {self.freq!r}")
        if self.images < 1:
            raise ValueError(f"images must be at least 1, not {self.images!r}")
        if self.lanes is not None and (self.lanes & (self.lanes - 1) or self.lanes > 256):
            raise ValueError(f"lanes must be a power of two up to 256, not {self.lanes!r}")

    @property
    def target_hz(self) -> int | None:
        """The clock that was asked for."""
        return None if self.freq is None else round(self.freq * 1e6)

    @property
    def sizing(self) -> dict[str, Any]:
        """The constraints for sizing."""
        names = ("lanes", "weight_bits", "memory", "target_hz")
        return {name: getattr(self, name) for name in names} | {"doors": self.door}


@dataclass(frozen=True, kw_only=True)
class Images:
    """Raw images that a build is checked with, and their source: data or noise."""

    raw: NDArray[np.uint8]
    source: str


class Job:
    """One build in its folder; properties read the products of its steps."""

    def __init__(self, options: Options, board: Board, folder: Path) -> None:
        self.options, self.board, self.folder = options, board, folder
        self.outcomes: list[Outcome] = []
        self.began = time.monotonic()
        self.stopped = Event()
        """Set when a step has failed: the steps that run in parallel must end."""

    def json(self, name: str) -> dict[str, Any]:
        """The value of a JSON product."""
        return json.loads((self.folder / name).read_text(encoding="utf-8"))

    def log(self, name: str) -> Path:
        """The file of a tool's log."""
        return self.folder / "logs" / f"{name}.log"

    def go_on(self) -> None:
        """StoppedError if a parallel step has failed."""
        if self.stopped.is_set():
            raise StoppedError("a step beside this one failed")

    @cached_property
    def network(self) -> Network:
        return file.load(self.folder / "net.lbq")

    @property
    def evaluation(self) -> dict[str, Any] | None:
        """The evaluation of the zoo's network of this name; compare its digest with this one's."""
        if self.network.name not in zoo.names():
            return None
        return json.loads(zoo.evaluation(self.network.name).read_text(encoding="utf-8"))

    @property
    def activity(self) -> Activity:
        """How busy the network keeps its lanes."""
        return activity(self.network, **self._seen)

    def sized(self) -> SizedCore:
        """The core for the board; FitError or ClockError if there is none."""
        return size(self.network, self.board, **self._seen, **self.options.sizing)

    @property
    def _seen(self) -> dict[str, Any]:
        images = self.sample.raw if self.sample.source != "noise" else None
        return {"images": images, "evaluation": self.evaluation}

    @cached_property
    def config(self) -> CoreConfig:
        return CoreConfig.from_dict(self.json("config.json"))

    @cached_property
    def clock_hz(self) -> int:
        """The clock of the core."""
        return self.json("clock.json")["clock_hz"]

    @property
    def timing(self) -> ReaderTiming | None:
        """The timing of words from external memory, if the core has one."""
        if not self.config.external:
            return None
        assert self.board.chip is not None
        return reader_timing(self.board.chip, self.clock_hz)

    @cached_property
    def program(self) -> Program:
        return compile_network(self.network, self.config, timing=self.timing)

    @cached_property
    def opening(self) -> Opening | None:
        """The description of the core's door, if it has one."""
        found = self.json("core.json")["opening"]
        return None if found is None else decode.reader(Opening)(found, "opening")

    @cached_property
    def images(self) -> Images:
        """The images that the build is checked with: drawn from the whole test split, always the
        same.

        The first images would not be representative, since neighbours are similar. If the dataset's
        files are missing, noise takes their place: equality must hold for any input. If the user
        asked for the dataset, missing files are an error.
        """
        return self._draw(self.options.images)

    @cached_property
    def sample(self) -> Images:
        """Like `images`, but enough for a mean."""
        return self._draw(max(SAMPLE, self.options.images))

    @cached_property
    def selftest(self) -> Images:
        """Like `images`, for the package."""
        return self._draw(SELFTEST)

    @cached_property
    def _samples(self) -> Samples | None:
        """All images to draw from; None if no data was asked for and none is found."""
        options = self.options
        dataset, data, raw = options.dataset, options.data, options.raw
        try:
            found = load_samples(
                self.network, dataset=dataset, data=data, raw=raw, reading=options.reading
            )
        except (DatasetError, ValueError):
            if dataset or data or raw:
                raise
            return None
        show_notes(found.notes)
        return found

    def labelled(self, count: int) -> tuple[Samples, int | None]:
        """Some images with known classes, and the number of images that they were drawn from.

        No samples if there is no data or there are no labels; the number is None if these are all
        images.
        """
        found = self._samples
        if found is None or found.labels is None:
            return Samples(name="none", images=noise(self.network, 0), labels=None), None
        if count >= len(found.images):
            return found, None
        chosen = draw(len(found.images), count)
        some = replace(found, images=found.images[chosen], labels=found.labels[chosen])
        return some, len(found.images)

    def _draw(self, count: int) -> Images:
        found = self._samples
        if found is None:
            return Images(raw=noise(self.network, count), source="noise")
        chosen = draw(len(found.images), count)
        return Images(raw=found.images[chosen], source=found.name)
