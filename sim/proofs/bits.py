"""Functions of the bits of a word, such as the lowest set bit, proven for all words."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from amaranth import Const, Mux, Value

from lbq_hw.sim.proofs.contract import Bug, Contract, Proof

_MODULE = "lbq_hw.core.scan.bits"


def _count(bits: Any) -> Any:
    """How many bits are set: their sum."""
    total: Any = Const(0, 1)
    for bit in bits:
        total = total + bit
    return total


def _lowest(bits: Any) -> Any:
    """The number of the lowest set bit, searched from bit 0 on."""
    number: Any = Const(0, 1)
    for place in reversed(range(len(bits))):
        number = Mux(bits[place], place, number)
    return number


def _take_lowest(code: ModuleType, width: int) -> Contract:
    c = Contract()
    bits = c.any(width, "bits")
    lowest, others = (Value.cast(value) for value in code.take_lowest(bits))
    c.must(Mux(bits == 0, lowest == 0, lowest == (1 << _lowest(bits))[:width]))
    c.must((lowest | others) == bits)
    c.must((lowest & others) == 0)
    return c


def _at_least(code: ModuleType, width: int) -> Contract:
    c = Contract()
    bits = c.any(width, "bits")
    for count in (1, 2, 3):
        c.must(code.at_least(c.m, count, bits) == (_count(bits) >= count))
    return c


def _encode(code: ModuleType, width: int) -> Contract:
    c = Contract()
    bits = c.any(width, "bits")
    c.assume(bits == (1 << _lowest(bits))[:width])
    c.must(code.encode(bits) == _lowest(bits))
    return c


def _count_byte(code: ModuleType) -> Contract:
    c = Contract()
    bits = c.any(8, "bits")
    c.must(code.count_byte(bits) == _count(bits))
    return c


def _words(width: int) -> tuple[Proof, ...]:
    common: dict[str, Any] = {"module": _MODULE, "fast": width == 8}
    return (
        Proof(
            name=f"take-lowest-{width}",
            says=f"take_lowest of every word of {width} bits: the lowest set bit, and the others",
            contract=lambda code: _take_lowest(code, width),
            bug=Bug(old="(-bits)[", new="(~bits)["),
            **common,
        ),
        Proof(
            name=f"at-least-{width}",
            says=f"at_least of every word of {width} bits: whether 1, 2 or 3 bits are set",
            contract=lambda code: _at_least(code, width),
            bug=Bug(old="(a1 & b2) | (a2 & b1)", new="(a1 & b2)"),
            **common,
        ),
        Proof(
            name=f"encode-{width}",
            says=f"encode of every one-hot word of {width} bits: the number of its bit",
            contract=lambda code: _encode(code, width),
            bug=Bug(old="if i >> j & 1", new="if i >> j & 1 and i != 5"),
            **common,
        ),
    )


PROOFS = (
    *(proof for width in (8, 16, 32, 64) for proof in _words(width)),
    Proof(
        name="count-byte",
        says="the number of set bits of every byte",
        module=_MODULE,
        contract=_count_byte,
        bug=Bug(old="two & ~four", new="two"),
    ),
)
