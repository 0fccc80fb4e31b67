"""The circuits of the rules by which neurons change their membranes: see `lbq_hw.network.neuron`.

Each circuit takes two candidates for the new membrane, with and without a spike, from the rule
before it, and returns the same two. The spike itself arrives late, and selects one of the two at
the end. `later` delays a value of the parameter memory by a cycle, to the cycle of U.
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
    """The new membrane with and without a spike, in a `NeuronUnit` that has the parameters and
    flags of the rules as members of the same names.
    """
    spiked = silent = u
    for rule in rules:
        spiked, silent = _CIRCUITS[rule](unit, later, spiked, silent)
    return spiked, silent
