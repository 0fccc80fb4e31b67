"""The units of neurons against the integer network's definition, for all values of small widths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from types import ModuleType
from typing import Any

from amaranth import Cat, Const, Mux, Signal, Value, signed

from lbq_hw.network.neuron import FLOOR, SUBTRACT, TO_ZERO, Rule
from lbq_hw.sim.proofs.contract import Bug, Contract, Proof


@dataclass(frozen=True, kw_only=True)
class _Sizes:
    """Bits of a unit, as its parameters name them."""

    acc_bits: int = 3
    membrane_bits: int = 6
    planes: int = 3
    decay_bits: int = 2
    shift_bits: int = 1


_USUAL = _Sizes()
_SMALL = _Sizes(acc_bits=2, membrane_bits=4, planes=2, decay_bits=1, shift_bits=0)


def _unit(code: ModuleType, kind: str, rules: Sequence[Rule], bits: _Sizes) -> Contract:
    """Every cycle brings another channel, with values of its own.

    What is a layer's is the same in all cycles: capacity N, the shift and the flags.
    """
    c = Contract()
    unit = c.add(getattr(code, kind)(**asdict(bits), rules=rules))
    at, membrane = unit.positions, signed(bits.membrane_bits)
    first = min(at.acc, 1)
    given = {
        "acc": (c.any(signed(bits.acc_bits), "acc"), at.acc),
        "bias": (c.any(membrane, "bias"), 1),
        "v": (c.any(membrane, "v"), at.v),
        "theta": (c.any(membrane, "theta"), at.theta),
        "pooled": (c.any(bits.planes, "pooled"), at.end),
    }
    given |= {
        rule.name: (c.any(membrane, rule.name), at.theta) for rule in rules if rule.per_channel
    }
    for name, (value, position) in given.items():
        c.m.d.comb += getattr(unit, name).eq(c.before(value, position - first))
    decay = c.any(bits.decay_bits + 1, "decay")
    for bit in range(bits.decay_bits + 1):
        c.m.d.comb += unit.decay[bit].eq(c.before(decay[bit], at.decay(bit) - first))
    constant = {"capacity": bits.planes, "shift": bits.shift_bits, "fire": 1}
    constant |= {rule.name: 1 for rule in rules if not rule.per_channel}
    values = {name: value for name, (value, _) in given.items()}
    for name, width in constant.items():
        values[name] = c.fixed(width, name)
        c.m.d.comb += getattr(unit, name).eq(values[name])
    u, level, after = _definition(values, decay, rules, bits)
    c.assume((values["theta"] >= 1) & (values["capacity"] >= 1))
    c.assume(decay <= 1 << bits.decay_bits)
    half = 1 << bits.membrane_bits - 1
    for value in (u, after):
        c.assume((value >= -half) & (value < half))
    if FLOOR in rules:
        c.assume(values["floor"] <= 0)
    pooled = Mux(values["pooled"] > level, values["pooled"], level)
    _equal(c, unit.next_v, after, at.fire - first)
    _equal(c, unit.level, pooled, at.end - first)
    return c


def _definition(
    values: dict[str, Any], decay: Any, rules: Sequence[Rule], bits: _Sizes
) -> tuple[Any, Any, Any]:
    """U, S and V of METHOD section 3, in numbers that are wide enough for all terms."""
    factor = Value.cast(Cat(decay, Const(0, 1))).as_signed()
    current = values["bias"] + (values["acc"] << values["shift"])
    u = ((factor * values["v"]) >> bits.decay_bits) + current
    steps = range(1, 1 << bits.planes)
    reached = [(u >= k * values["theta"]) & (k <= values["capacity"]) for k in steps]
    level = sum(reached, start=Const(0, 1))
    spike = values["fire"] & (u >= values["theta"])
    after: Any = u
    for rule in rules:
        if rule is SUBTRACT:
            after = Mux(spike, after - values["reset"], after)
        elif rule is TO_ZERO:
            after = Mux(spike & values["to_zero"], 0, after)
        else:
            low = values["fire"] & (after < values["floor"])
            after = Mux(low, values["floor"], after)
    return u, level, after


def _equal(c: Contract, found: Any, wanted: Any, cycles: int) -> None:
    held = Signal(Value.cast(found).shape(), name="wanted")
    c.m.d.comb += held.eq(wanted)
    c.must(found == c.before(held, cycles), after=cycles)


_KINDS = {
    "NeuronUnit": ("neuron_unit", "standard and spread"),
    "CompactUnit": ("compact_unit", "compact"),
}
_RULES = {
    "subtract": ((SUBTRACT,), "that subtract a reset"),
    "to-zero": ((SUBTRACT, TO_ZERO), "that subtract, or reset to zero"),
    "floor": ((SUBTRACT, TO_ZERO, FLOOR), "of every rule, with a floor"),
}
_BUGS = {
    "NeuronUnit": Bug(old="self.fire & (u >= theta)", new="self.fire & (u > theta)"),
    "CompactUnit": Bug(old="bits = Cat(~remainder[-1], bits)", new="bits = Cat(bits[0], bits)"),
}


def _proof(kind: str, rules: str, name: str, bits: _Sizes) -> Proof:
    module, profiles = _KINDS[kind]
    members, told = _RULES[rules]
    most = (1 << bits.planes) - 1
    return Proof(
        name=f"{kind.lower()}-{name}",
        says=f"neurons {told}, in {profiles} cores: U, S and V for all inputs, membranes of "
        f"{bits.membrane_bits} bits, N of 1 to {most}",
        module=f"lbq_hw.core.neurons.{module}",
        contract=lambda code: _unit(code, kind, members, bits),
        bug=_BUGS[kind],
        cycles=12,
        always=True,
        fast=bits is _SMALL,
    )


PROOFS = (
    *(_proof(kind, "floor", "small", _SMALL) for kind in _KINDS),
    *(_proof(kind, rules, rules, _USUAL) for kind in _KINDS for rules in _RULES),
)
