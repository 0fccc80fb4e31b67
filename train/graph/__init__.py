"""What a model computes, in the terms of the integer network: populations fed by paths.

Every tensor of a model is one of three kinds: `Levels` (integer burst levels times one scale,
possibly pooled), a current (a tree of `Synapse`, `Identity`, `Norm`, `Sum`) or the `Readout`.
`train.graph.trace.analyze` finds out which. Absorption, weight quantization and export all start
from its `Analysis`, so the three agree on the structure of the network.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from torch import fx, nn

from lbq_hw.network import Shape, Window
from lbq_hw.train.graph.windows import NO_SIDES, Sides
from lbq_hw.train.neurons import Neuron

READOUT = "logits"  # the name of the population that has no neuron


@dataclass(frozen=True, kw_only=True)
class Violation:
    """One reason why a model has no integer form.

    `trainable`: the model can be trained anyway; `runs`: it accepts its input.
    """

    path: str
    reason: str
    mend: str
    trainable: bool = True
    runs: bool = True

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}; {self.mend}"


class GraphError(ValueError):
    """Every violation of a model, in one message."""

    def __init__(self, violations: list[Violation]) -> None:
        self.violations = tuple(violations)
        lines = "\n".join(f"  {violation}" for violation in violations)
        count = f"{len(violations)} violation" + "s" * (len(violations) != 1)
        runs = all(violation.runs for violation in violations)
        what = "has no integer form" if runs else "does not run"
        super().__init__(f"the model {what} ({count}):\n{lines}")


def several_outputs(returned: object) -> Violation:
    """The violation of a model that does not return exactly one tensor."""
    name = type(returned).__name__.removeprefix("immutable_")
    return Violation(
        path="output",
        reason=f"the model returns a {name}, not one tensor",
        mend="return the logits alone, or join several outputs with torch.cat(outputs, 1)",
    )


class RefusalError(ValueError):
    """A layer or neuron that has no exact form: why, and what to do."""

    def __init__(self, reason: str, mend: str) -> None:
        super().__init__(reason, mend)
        self.reason, self.mend = reason, mend


@dataclass(frozen=True, kw_only=True)
class Levels:
    """Burst levels of `neuron` (None: input pixels) on their way to a consumer.

    `shape` is the shape after pooling and padding. Flattening does not change it, since weights see
    images. The sum over the window of `sum_pool` is divided by `divisor`, which is the window's
    size for an average. `pad` counts zeros around the pooled image; the next layer must pad them.
    """

    source: str
    neuron: Neuron | None
    shape: Shape
    max_pool: Window | None = None
    sum_pool: Window | None = None
    divisor: int = 1
    pad: Sides = NO_SIDES


@dataclass(frozen=True, kw_only=True)
class Synapse:
    """A convolution or linear layer applied to levels."""

    levels: Levels
    path: str
    module: nn.Conv2d | nn.Conv1d | nn.Linear


@dataclass(frozen=True, kw_only=True)
class Identity:
    levels: Levels


@dataclass(frozen=True, kw_only=True)
class Norm:
    current: Current
    module: nn.BatchNorm2d | nn.BatchNorm1d


@dataclass(frozen=True, kw_only=True)
class Sum:
    currents: tuple[Current, ...]


@dataclass(frozen=True, kw_only=True)
class Placed:
    """A current of `size` channels, from channel `first` on of a readout of all `channels`."""

    current: Current
    first: int
    size: int
    channels: int


@dataclass(frozen=True, kw_only=True)
class Readout:
    """The mean over time of a current, or of spikes, or the current itself at T = 1."""

    current: Current


Current = Synapse | Identity | Norm | Sum | Placed
Value = Levels | Current | Readout | None  # None: no meaning here


@dataclass(frozen=True, kw_only=True)
class Term:
    """One path of a current: its origin and the norms that scale it, innermost first.

    `placed` is set if the path reaches only some of the channels.
    """

    origin: Synapse | Identity
    norms: tuple[nn.Module, ...]
    placed: Placed | None = None


def terms(
    current: Current, norms: tuple[nn.Module, ...] = (), placed: Placed | None = None
) -> Iterator[Term]:
    """The paths whose sum is the current."""
    if isinstance(current, Norm):
        yield from terms(current.current, (current.module, *norms), placed)
    elif isinstance(current, Sum):
        for part in current.currents:
            yield from terms(part, norms, placed)
    elif isinstance(current, Placed):
        yield from terms(current.current, norms, current)
    else:
        yield Term(origin=current, norms=norms, placed=placed)


@dataclass(frozen=True, kw_only=True)
class Population:
    """Neurons (or the readout, when `neuron` is None) with the current that drives them."""

    name: str
    neuron: Neuron | None
    current: Current
    shape: Shape


def counts_spikes(population: Population) -> bool:
    """Whether this is a readout that only averages the spikes of its source, without weights."""
    return population.neuron is None and isinstance(population.current, Identity)


@dataclass(kw_only=True)
class Analysis:
    """The graph, the value of each of its nodes, the populations, and the violations."""

    graph: fx.Graph
    values: dict[fx.Node, Value]
    populations: list[Population] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)
    timesteps: int = 1

    def refuse(
        self, path: str, reason: str, mend: str, *, trainable: bool = True, runs: bool = True
    ) -> None:
        """Note a violation; nothing is raised, so that all of them are found."""
        self.violations.append(
            Violation(path=path, reason=reason, mend=mend, trainable=trainable, runs=runs)
        )

    def max_pool_of(self, source: str) -> Window | None:
        """The max-pool on the way out of a population (all its consumers share it)."""
        for levels in self.consumed(source):
            return levels.max_pool
        return None

    def consumed(self, source: str) -> Iterator[Levels]:
        """The levels of a population as its consumers see them."""
        for population in self.populations:
            for term in terms(population.current):
                if term.origin.levels.source == source:
                    yield term.origin.levels
