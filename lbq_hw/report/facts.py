"""What a build knows when it ends, for the report.

`Facts` has one attribute per part, and each part has its JSON file (`lbq_hw.report.store`). Any
part may be missing: the board `sim` has no synthesis, and a build may have been stopped early.
`lbq_hw.report.collect` makes most parts from the project's own objects; `lbq_hw.tools.logs` makes
those that come from tools.

Units are in the names (`_hz`, `_ns`, `_mj`, `seconds`); counts without a unit are means per image.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from lbq_hw.config import CoreConfig
from lbq_hw.host.estimate import Line, Traffic
from lbq_hw.tools.placed import Resource, Timing, check_kinds

_BASE64 = re.compile(r"[A-Za-z0-9+/]*={0,2}")
MINOR = (
    "PLL",
    "IO",
)  # a design is never short of these: the report names them in one line, without a bar

# What may limit a layer, as `lbq_hw.cycles` finds it, and how the report puts it.
LIMITS = {
    "events": "the lanes accumulate all the time",
    "scanner": "the lanes wait for the scanner to find events",
    "walker": "the scanner waits for the walker's requests",
    "neurons": "sums wait for the neuron units",
    "overhead": "start, end, and parts that wait for each other",
    "memory": "the lanes wait for weights from external memory",
}


@dataclass(frozen=True, kw_only=True)
class Model:
    """The integer network; accuracies are percent, `accuracy` of the integer network itself."""

    name: str
    digest: str
    timesteps: int
    capacity: int
    weight_bits: int
    parameters: int
    input_shape: tuple[int, ...]
    layers: tuple[str, ...]
    dataset: str | None = None
    accuracy: float | None = None
    accuracy_images: int | None = None
    accuracy_split: str | None = None
    float_accuracy: float | None = None
    float_split: str | None = None
    class_names: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Board:
    """The board; `fabric` is empty and `available` has nothing where there is none.

    `clock_hz` is what the core runs at, behind the PLL where there is one.
    """

    name: str
    title: str
    fabric: str
    clock_hz: int
    available: dict[str, int]

    def __post_init__(self) -> None:
        check_kinds(self.available)


@dataclass(frozen=True, kw_only=True)
class Core:
    config: CoreConfig
    digest: str


@dataclass(frozen=True, kw_only=True)
class Fit:
    """What the model of the fabric said before synthesis: estimates, all of them.

    `reasons` say what is short; there are none if it `fits`. `remark` says what the cycles rest on.
    """

    fits: bool
    resources: dict[str, int]
    fmax_hz: float | None = None
    cycles: float | None = None
    reasons: tuple[str, ...] = ()
    remark: str = ""

    def __post_init__(self) -> None:
        check_kinds(self.resources)


@dataclass(frozen=True, kw_only=True)
class LayerCycles:
    """One layer, by the names of ``python -m sim --json`` and of `lbq_hw.cycles`.

    `cycles` are `events` (the lanes accumulate), `null_events` (they only double, clear or close)
    and waiting, of which `scanner_stalls` are known where they were counted. `bounds` are the
    cycles that one part of the core would need alone, `limit` names the largest.
    """

    name: str
    cycles: float
    events: float
    null_events: float
    acs_bit_sparse: float
    utilisation: float
    scanner_stalls: float | None = None
    neuron_stalls: float | None = None
    bounds: dict[str, float] | None = None
    limit: str | None = None

    def __post_init__(self) -> None:
        for name in (*(self.bounds or ()), *([] if self.limit is None else [self.limit])):
            if name not in LIMITS:
                raise ValueError(f"a limit must be one of {', '.join(LIMITS)}, not {name!r}")


@dataclass(frozen=True, kw_only=True)
class Cycles:
    """Cycles per image: counted in the RTL, or by the cycle model, which equals it.

    `dataset` is what the images are of: a name, or noise where no dataset was there.
    """

    source: Literal["rtl", "model"]
    images: int
    cycles: float
    utilisation: float
    layers: tuple[LayerCycles, ...]
    dataset: str | None = None


@dataclass(frozen=True, kw_only=True)
class Link:
    """The serial line at the highest rate of the board: what it carries from image to image.

    `turns` are answers for which the host waits, each for up to `latency` seconds in the USB
    bridge. While line and core are `overlapped`, the slower of the two decides.
    """

    baud: int
    bytes: int
    turns: int = 0
    latency: float = 0.0
    overlapped: bool = False

    @property
    def seconds(self) -> float:
        """The time of an image on the line."""
        return self._line.busy(self._traffic)

    def image_seconds(self, core_seconds: float) -> float:
        """From image to image, as the host sees it: an estimate."""
        return self._line.seconds(self._traffic, core_seconds)

    @property
    def _line(self) -> Line:
        return Line(baud=self.baud, latency=self.latency)

    @property
    def _traffic(self) -> Traffic:
        return Traffic(bytes=self.bytes, turns=self.turns, overlapped=self.overlapped)


@dataclass(frozen=True, kw_only=True)
class LayerOperations:
    name: str
    shape: tuple[int, ...]
    macs: int
    acs_unary: float
    acs_bit_sparse: float
    shifts: float
    formation_ops: float


@dataclass(frozen=True, kw_only=True)
class Price:
    """The arithmetic energy of one execution by one price list: an estimate."""

    prices: str
    execution: str
    mj: float


@dataclass(frozen=True, kw_only=True)
class Operations:
    images: int
    layers: tuple[LayerOperations, ...]
    energy: tuple[Price, ...]


@dataclass(frozen=True, kw_only=True)
class LayerNeurons:
    """Levels of one layer: `histogram[k]` neurons and timesteps of all images had level k."""

    name: str
    capacity: int
    gamma: float | None
    theta: tuple[int, int]
    histogram: tuple[int, ...]

    @property
    def active(self) -> float:
        """Share with a level above 0."""
        return sum(self.histogram[1:]) / max(sum(self.histogram), 1)

    @property
    def single(self) -> float:
        """P(k = 1 | k > 0)."""
        return self.histogram[1] / max(sum(self.histogram[1:]), 1)


@dataclass(frozen=True, kw_only=True)
class Neurons:
    images: int
    layers: tuple[LayerNeurons, ...]


@dataclass(frozen=True, kw_only=True)
class MemoryUse:
    """Entries of one memory of the core, sized by the CoreConfig field `field`."""

    field: str
    title: str
    used: int
    size: int
    bits: int


@dataclass(frozen=True, kw_only=True)
class Block:
    """Words ``base`` to ``end - 1`` of a memory, kept from layer `born` (-1: before) to `dies`."""

    name: str
    base: int
    end: int
    born: int
    dies: int


@dataclass(frozen=True, kw_only=True)
class Memory:
    """`tensors` in the activation memory over the layers, `weights` in the weight memory."""

    memories: tuple[MemoryUse, ...]
    tensors: tuple[Block, ...]
    weights: tuple[Block, ...]
    layers: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Proof:
    """Bits that no input can exceed, proven from the weights of one layer."""

    layer: str
    acc_bits: int
    membrane_bits: int


@dataclass(frozen=True, kw_only=True)
class Simulation:
    """The RTL against the golden model; `difference` is the first one, None if there is none."""

    simulator: str
    bit_exact: bool
    images: int
    cycles_per_second: float
    difference: str | None = None


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step of the build; `cached` if its product was there already, `beside` if it ran at the
    same time as the steps after it."""

    name: str
    seconds: float
    cached: bool = False
    beside: bool = False


@dataclass(frozen=True, kw_only=True)
class Build:
    """`tools` with their versions, `digests` (SHA-256) of files, `steps` in order, and the seconds
    that have `elapsed` from the first step to the report.

    `baked`: the model is in the bitstream; None where there is none. `bitstream`: what was found in
    it when it was decoded again, in sentences. `next` are the commands, for a shell, that load and
    test the board.
    """

    tools: dict[str, str]
    digests: dict[str, str]
    steps: tuple[Step, ...] = ()
    elapsed: float | None = None
    seed: int | None = None
    baked: bool | None = None
    bitstream: tuple[str, ...] = ()
    next: tuple[str, ...] = ()


MOST_CLASSES = 20
"""Of a confusion matrix that can be read."""


@dataclass(frozen=True, kw_only=True)
class Answered:
    """An input as a picture (PNG in base64), its class, and what the network takes it for."""

    label: int
    answer: int
    png: str

    def __post_init__(self) -> None:
        if not _BASE64.fullmatch(self.png):
            raise ValueError("a picture must be base64")


@dataclass(frozen=True, kw_only=True)
class Mistake:
    """How often a class was taken for another."""

    label: int
    answer: int
    count: int


@dataclass(frozen=True, kw_only=True)
class Answers:
    """What the integer network takes images for whose classes are known.

    `confusion[label][answer]` counts images; `names` is empty where nobody has named the classes.
    `drawn_of`: there are so many, of which these were drawn; None where these are all. `by_step`:
    of recordings, the share that is right if all of them end after so many timesteps.
    """

    dataset: str
    split: str | None
    images: int
    drawn_of: int | None
    right: int
    names: tuple[str, ...]
    confusion: tuple[tuple[int, ...], ...]
    mistakes: tuple[Mistake, ...]
    samples: tuple[Answered, ...]
    by_step: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        classes = len(self.confusion)
        square = all(len(row) == classes for row in self.confusion)
        if not square or len(self.names) not in (0, classes):
            raise ValueError(f"a confusion matrix must have {classes} columns, and as many names")
        if self.images < 1:
            raise ValueError(f"images must be at least 1, not {self.images}")


@dataclass(frozen=True, kw_only=True)
class Facts:
    model: Model | None = None
    answers: Answers | None = None
    board: Board | None = None
    core: Core | None = None
    fit: Fit | None = None
    resources: tuple[Resource, ...] | None = None
    timing: Timing | None = None
    cycles: Cycles | None = None
    link: Link | None = None
    operations: Operations | None = None
    neurons: Neurons | None = None
    memory: Memory | None = None
    proofs: tuple[Proof, ...] | None = None
    simulation: Simulation | None = None
    build: Build | None = None
