"""The neurons of a layer, and the rules that change their membranes after each timestep.

A kind of neuron is a set of `RULES`. One object per rule defines its field of `Neuron`, of the file
and of the records, its arithmetic, and the ability that a core needs for it. Golden, the
interpreter, the proofs of ranges, the compiler and the file use these objects;
`lbq_hw.core.neurons.rules` has the circuit of each rule under the same name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from lbq_hw import numeric
from lbq_hw.network import limits
from lbq_hw.network.base import require
from lbq_hw.network.vectors import integer_vector
from lbq_hw.numeric import Integers


class Rule(ABC):
    """A change of the membrane V after the level S is known; before the first rule, V is U.

    =============  ==============================================================================
    name           the rule's field of `Neuron`, of the file and of the LAYER or PARAM record
    meaning        the meaning of the record's field, for docs/isa.md
    per_channel    the field is a number per channel (PARAM), not a flag of the layer (LAYER)
    optional       left out of the file of a layer, and of the records of a core, without the rule
    ability        the field of `CoreConfig` that is 1 if a core can apply the rule
    need, unit     names of the need and of the ability, for error messages
    neurons        name of the neurons that follow the rule, for error messages
    version        the first version of the file that has the rule
    adders         number of additions and comparisons of its circuit, as wide as a membrane
    in_nir         whether NIR can express it
    =============  ==============================================================================
    """

    name: ClassVar[str]
    meaning: ClassVar[str]
    per_channel: ClassVar[bool]
    optional: ClassVar[bool] = True
    ability: ClassVar[str]
    need: ClassVar[str]
    unit: ClassVar[str]
    neurons: ClassVar[str]
    version: ClassVar[int]
    adders: ClassVar[int] = 0
    in_nir: ClassVar[bool] = True

    @abstractmethod
    def holds(self, neuron: Neuron) -> bool:
        """Whether these neurons follow the rule."""

    def needed(self, neuron: Neuron) -> bool:
        """Whether a core needs the ability for these neurons."""
        return self.holds(neuron)

    def check(self, neuron: Neuron) -> None:  # noqa: B027 - most have nothing to refuse
        """Refuse values that the rule does not allow."""

    @abstractmethod
    def apply(self, v: Any, s: Any, values: Any, /) -> Any:
        """V after the rule, for arrays of numpy or torch. `values` is the vector of a rule that is
        `per_channel`. The rule is monotonic in V, among membranes that spike and among membranes
        that do not: therefore the ends of a range bound all its values.
        """

    def move(self, _values: Any) -> int:
        """Upper bound on the distance by which the rule moves a membrane away from 0."""
        return 0

    def encode(self, value: int | None, bits: int) -> int:
        """The field of a PARAM record for membranes of `bits`, in which U and V fit. `value` is
        None for a channel that does not follow the rule.
        """
        raise NotImplementedError(f"the rule {self.name!r} has no field per channel")


class Subtract(Rule):
    """V - reset[c] after any spike."""

    name = "reset"
    meaning = (
        "subtracted after any spike, modulo 2**membrane_bits; not looked at in a core without "
        "`resets`, which subtracts theta"
    )
    per_channel = True
    optional = False
    ability = "resets"
    need, unit = "a reset that is not the threshold", "reset memory"
    neurons = "neurons that subtract a reset"
    version = 1

    def holds(self, neuron: Neuron) -> bool:
        return bool(neuron.reset.any())

    def needed(self, neuron: Neuron) -> bool:
        """A core without a reset parameter subtracts the threshold."""
        return not neuron.to_zero and not np.array_equal(neuron.theta, neuron.reset)

    def apply(self, v: Any, s: Any, values: Any) -> Any:
        return v - (s > 0) * values

    def move(self, values: Any) -> int:
        return int(np.abs(values).max())

    def encode(self, value: int | None, bits: int) -> int:
        half = 1 << (bits - 1)
        return ((value or 0) + half) % (2 * half) - half


class ToZero(Rule):
    """0 after any spike."""

    name = "to_zero"
    meaning = "a spike resets the membrane to 0, whatever its channel's reset"
    per_channel = False
    ability = "zero_resets"
    need, unit = "a reset to zero", "reset to zero"
    neurons = "neurons that reset to zero"
    version = 3

    def holds(self, neuron: Neuron) -> bool:
        return neuron.to_zero

    def check(self, neuron: Neuron) -> None:
        require(
            not (neuron.to_zero and neuron.reset.any()),
            "neuron reset must be 0 in all channels where a spike resets to zero",
        )

    def apply(self, v: Any, s: Any, _values: Any) -> Any:
        return (s == 0) * v


class Floor(Rule):
    """max(V, floor[c]), after the reset."""

    name = "floor"
    meaning = "the least that a timestep leaves of the membrane; the least number is no floor"
    per_channel = True
    ability = "floors"
    need, unit = "a floor of its membranes", "floor memory"
    neurons = "neurons whose membranes have a floor"
    version = 4
    adders = 2
    in_nir = False

    def holds(self, neuron: Neuron) -> bool:
        return neuron.floor is not None

    def check(self, neuron: Neuron) -> None:
        require(
            neuron.floor is None or bool(np.all(neuron.floor <= 0)),
            "neuron floor must be at most 0, where membranes begin",
        )

    def apply(self, v: Any, _s: Any, values: Any) -> Any:
        return (v < values) * values + (v >= values) * v

    def encode(self, value: int | None, bits: int) -> int:
        least = -(1 << (bits - 1))
        return least if value is None else max(value, least)


SUBTRACT, TO_ZERO, FLOOR = Subtract(), ToZero(), Floor()
RULES: tuple[Rule, ...] = (SUBTRACT, TO_ZERO, FLOOR)
"""All rules, in the order in which they are applied."""
PARAMETERS = tuple(rule for rule in RULES if rule.per_channel)
FLAGS = tuple(rule for rule in RULES if not rule.per_channel)


@dataclass(frozen=True, kw_only=True, eq=False)
class Neuron:
    """LIF with burst output, in units of ``2**-fraction_bits`` accumulator steps.

    `theta[c]` is one burst step, `reset[c]` is subtracted after any spike, `decay / 2**decay_bits`
    is the leak. With `to_zero` the membrane becomes 0 after any spike; nothing is subtracted, and
    `reset` must be 0. `floor[c]`, at most 0, is the lower bound of the membrane after a timestep;
    None: no bound.
    """

    capacity: int
    theta: Integers
    reset: Integers
    decay: int
    decay_bits: int
    to_zero: bool = False
    floor: Integers | None = None

    def __post_init__(self) -> None:
        require(
            1 <= self.capacity <= numeric.MAX_CAPACITY,
            f"neuron capacity must be 1..{numeric.MAX_CAPACITY}, not {self.capacity!r}",
        )
        for name, values in self.vectors.items():
            object.__setattr__(self, name, integer_vector(values, f"neuron {name}"))
        require(bool(np.all(self.theta >= 1)), "neuron theta must be at least 1")
        require(
            0 <= self.decay_bits <= limits.MAX_DECAY_BITS,
            f"neuron decay_bits must be 0..{limits.MAX_DECAY_BITS}, not {self.decay_bits!r}",
        )
        require(
            0 <= self.decay <= 1 << self.decay_bits,
            f"neuron decay must be 0..2**decay_bits, not {self.decay!r}/2**{self.decay_bits!r}",
        )
        for rule in RULES:
            rule.check(self)

    @property
    def vectors(self) -> Mapping[str, Integers]:
        """Its parameters per channel, by name."""
        given = {rule.name: getattr(self, rule.name) for rule in PARAMETERS}
        return {"theta": self.theta} | {k: v for k, v in given.items() if v is not None}

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules that these neurons follow, in order."""
        return tuple(rule for rule in RULES if rule.holds(self))

    @property
    def move(self) -> int:
        """Upper bound on the distance by which the rules move a membrane away from 0."""
        return sum(rule.move(getattr(self, rule.name)) for rule in self.rules)

    def mapped(self, change: Callable[[Integers], Integers]) -> Neuron:
        """The same neurons with all vectors changed; thresholds stay at least 1."""
        changed = {name: change(values) for name, values in self.vectors.items()}
        return replace(self, **changed | {"theta": np.maximum(1, changed["theta"])})
