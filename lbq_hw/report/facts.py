"""The results of a build, for the report.

`Facts` has one attribute per part, and each part has its JSON file (`lbq_hw.report.store`). Any
part may be missing: the board `sim` has no synthesis, and a build may have been stopped early.
`lbq_hw.report.collect` makes most parts from the project's own objects; `lbq_hw.tools.logs` makes
the parts that come from tools.

Names contain units (`_hz`, `_ns`, `_mj`, `seconds`); counts without a unit are means per image.
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
)  # a design never runs out of these: the report lists them in one line, without a bar

# The limits of a layer that `lbq_hw.cycles` finds, with their names in the report.
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
    """The integer network; accuracies are percent, `accuracy` is that of the integer network."""

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
    """The board; for a board without a fabric, `fabric` and `available` are empty.

    `clock_hz` is the clock of the core, after the PLL if there is one.
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
    """Estimates of the fabric's model before synthesis.

    `reasons` name the resources that are short; empty if it `fits`. `remark` explains on which
    inputs the cycles are based.
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
    """One layer, with the names of ``python -m sim --json`` and of `lbq_hw.cycles`.

    `cycles` consist of `events` (the lanes accumulate), `null_events` (they only double, clear or
    end a step) and waiting; `scanner_stalls` is a part of the waiting, if it was counted. `bounds`
    are the cycles that each part of the core would need alone; `limit` names the largest.
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
    """Cycles per image: counted in the RTL, or by the cycle model, which gives equal numbers.

    `dataset` is the source of the images: a dataset, or noise if there was none.
    """

    source: Literal["rtl", "model"]
    images: int
    cycles: float
    utilisation: float
    layers: tuple[LayerCycles, ...]
    dataset: str | None = None


@dataclass(frozen=True, kw_only=True)
class Link:
    """The serial line at the highest rate of the board, and its traffic per image.

    `turns` are the replies for which the host waits; each may be delayed by `latency` seconds in
    the USB bridge. `gap` is that of `lbq_hw.host.estimate.Traffic`.
    """

    baud: int
    bytes: int
    turns: float = 0
    latency: float = 0.0
    gap: float | None = None

    @property
    def seconds(self) -> float:
        """Seconds per image on the line."""
        return self._line.busy(self._traffic)

    def image_seconds(self, core_seconds: float) -> float:
        """Seconds per image as the host sees them: an estimate."""
        return self._line.seconds(self._traffic, core_seconds)

    @property
    def _line(self) -> Line:
        return Line(baud=self.baud, latency=self.latency)

    @property
    def _traffic(self) -> Traffic:
        return Traffic(bytes=self.bytes, turns=self.turns, gap=self.gap)


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
    """The arithmetic energy of one kind of execution by one price list: an estimate."""

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
    """Levels of one layer: `histogram[k]` counts level k over neurons, timesteps and images."""

    name: str
    capacity: int
    gamma: float | None
    theta: tuple[int, int]
    histogram: tuple[int, ...]

    @property
    def active(self) -> float:
        """Share of levels above 0."""
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
    """The RTL against the golden model; `difference` is the first difference, or None."""

    simulator: str
    bit_exact: bool
    images: int
    cycles_per_second: float
    difference: str | None = None


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step of the build; `cached` if its product was there already, `beside` if it ran in
    parallel with later steps."""

    name: str
    seconds: float
    cached: bool = False
    beside: bool = False


@dataclass(frozen=True, kw_only=True)
class Build:
    """`tools` with their versions, `digests` (SHA-256) of files, `steps` in order, and the seconds
    `elapsed` from the first step to the report.

    `baked`: the model is in the bitstream; None without a bitstream. `bitstream`: the results of
    decoding the bitstream, as sentences. `next`: shell commands that load and test the board.
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
"""The largest number of classes of a readable confusion matrix."""


@dataclass(frozen=True, kw_only=True)
class Answered:
    """An input as a picture (PNG in base64), its class, and the network's answer."""

    label: int
    answer: int
    png: str

    def __post_init__(self) -> None:
        if not _BASE64.fullmatch(self.png):
            raise ValueError("a picture must be base64")


@dataclass(frozen=True, kw_only=True)
class Mistake:
    """How often one class was mistaken for another."""

    label: int
    answer: int
    count: int


@dataclass(frozen=True, kw_only=True)
class Answers:
    """The integer network's answers to images with known classes.

    `confusion[label][answer]` counts images; `names` is empty if the classes have no names.
    `drawn_of`: the number of images that these were drawn from; None if these are all. `by_step`:
    for recordings, the share of right answers if all recordings end after so many timesteps.
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
