"""The circuits of the rules by which neurons change their membranes: see `lbq_hw.network.neuron`.

A circuit takes what a membrane becomes with a spike and without one, as the rules before it leave
them, and returns the same two: whether there is a spike is known late, and chooses between them.
`later` gives a value of a parameter memory a cycle later, when U is there.
"""

from collections.abc import Sequence

from amaranth import Mux

from lbq_hw.config import CoreConfig
from lbq_hw.network.neuron import FLOOR, RULES, SUBTRACT, TO_ZERO, Rule

__all__ = ["apply_rules", "rules_of"]


def rules_of(config: CoreConfig) -> tuple[Rule, ...]:
    """The rules that a core has circuits for."""
    return tuple(rule for rule in RULES if not rule.optional or getattr(config, rule.ability))


def _subtract(unit, later, spiked, silent):
    return spiked - later(unit.reset, "reset"), silent


def _to_zero(unit, _later, spiked, silent):
    return Mux(unit.to_zero, 0, spiked), silent


def _floor(unit, later, spiked, silent):
    floor = later(unit.floor, "floor")
    spiked = spiked[: len(floor)].as_signed()  # resets wrap around, and the difference fits
    return (
        Mux(spiked < floor, floor, spiked),
        Mux(unit.fire & (silent < floor), floor, silent),
    )


_CIRCUITS = {SUBTRACT: _subtract, TO_ZERO: _to_zero, FLOOR: _floor}


def apply_rules(rules: Sequence[Rule], unit, later, u):
    """What U becomes with a spike and without one, in a `NeuronUnit` whose members give the
    parameters and flags of the rules by their names.
    """
    spiked = silent = u
    for rule in rules:
        spiked, silent = _CIRCUITS[rule](unit, later, spiked, silent)
    return spiked, silent
