"""The units of neurons against the integer network's definition, for all values of small widths."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

from amaranth import Cat, Const, Mux, Signal, Value, signed

from lbq_hw.network.neuron import FLOOR, SUBTRACT, TO_ZERO, Rule
from lbq_hw.sim.proofs.contract import Bug, Contract, Proof

_ACC, _MEMBRANE, _PLANES, _DECAY, _SHIFT = 3, 6, 3, 2, 1


def _unit(code: ModuleType, kind: str, rules: Sequence[Rule], **more: Any) -> Contract:
    """Every channel in its cycle: another one in each, with other values.

    What is a layer's is the same in all cycles: capacity N, the shift and the flags.
    """
    c = Contract()
    sizes = {"acc_bits": _ACC, "membrane_bits": _MEMBRANE, "planes": _PLANES}
    sizes |= {"decay_bits": _DECAY, "shift_bits": _SHIFT}
    unit = c.add(getattr(code, kind)(**sizes, rules=rules, **more))
    at, membrane = unit.positions, signed(_MEMBRANE)
    first = min(at.acc, 1)
    given = {
        "acc": (c.any(signed(_ACC), "acc"), at.acc),
        "bias": (c.any(membrane, "bias"), 1),
        "v": (c.any(membrane, "v"), at.v),
        "theta": (c.any(membrane, "theta"), at.theta),
        "pooled": (c.any(_PLANES, "pooled"), at.end),
    }
    given |= {
        rule.name: (c.any(membrane, rule.name), at.theta) for rule in rules if rule.per_channel
    }
    for name, (value, position) in given.items():
        c.m.d.comb += getattr(unit, name).eq(c.before(value, position - first))
    decay = c.any(_DECAY + 1, "decay")
    for bit in range(_DECAY + 1):
        c.m.d.comb += unit.decay[bit].eq(c.before(decay[bit], at.decay(bit) - first))
    constant = {"capacity": _PLANES, "shift": _SHIFT, "fire": 1}
    constant |= {rule.name: 1 for rule in rules if not rule.per_channel}
    values = {name: value for name, (value, _) in given.items()}
    for name, bits in constant.items():
        values[name] = c.fixed(bits, name)
        c.m.d.comb += getattr(unit, name).eq(values[name])
    u, level, after = _definition(values, decay, rules)
    c.assume((values["theta"] >= 1) & (decay <= 1 << _DECAY) & (values["capacity"] >= 1))
    c.assume(_fits(u) & _fits(after))
    if FLOOR in rules:
        c.assume(values["floor"] <= 0)
    kept = u if more.get("keeps") is False else after
    pooled = Mux(values["pooled"] > level, values["pooled"], level)
    _equal(c, unit.next_v, kept, at.fire - first)
    _equal(c, unit.level, pooled, at.end - first)
    return c


def _definition(values: dict[str, Any], decay: Any, rules: Sequence[Rule]) -> tuple[Any, Any, Any]:
    """U, S and V of METHOD section 3, in numbers that are wide enough for all terms."""
    factor = Value.cast(Cat(decay, Const(0, 1))).as_signed()
    current = values["bias"] + (values["acc"] << values["shift"])
    u = ((factor * values["v"]) >> _DECAY) + current
    reached = [
        (u >= k * values["theta"]) & (k <= values["capacity"]) for k in range(1, 1 << _PLANES)
    ]
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


def _fits(value: Any) -> Any:
    half = 1 << _MEMBRANE - 1
    return (value >= -half) & (value < half)


def _equal(c: Contract, found: Any, wanted: Any, cycles: int) -> None:
    held = Signal(Value.cast(found).shape(), name="wanted")
    c.m.d.comb += held.eq(wanted)
    c.must(found == c.before(held, cycles), after=cycles)


_KINDS = {
    "NeuronUnit": ("lbq_hw.core.neurons.neuron_unit", "standard and spread", {}),
    "CompactUnit": ("lbq_hw.core.neurons.compact_unit", "compact", {}),
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


def _proof(kind: str, rules: str) -> Proof:
    module, profiles, more = _KINDS[kind]
    members, told = _RULES[rules]
    return Proof(
        name=f"{kind.lower()}-{rules}",
        says=f"neurons {told}, in {profiles} cores: U, S and V of all values, N of 1 to 7",
        module=module,
        contract=lambda code: _unit(code, kind, members, **more),
        bug=_BUGS[kind],
        cycles=12,
        always=True,
        fast=rules == "floor" and kind == "CompactUnit",
    )


PROOFS = tuple(_proof(kind, rules) for kind in _KINDS for rules in _RULES)
