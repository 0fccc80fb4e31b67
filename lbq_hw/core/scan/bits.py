"""Find the lowest set bit, count set bits, and encode a one-hot value as a number."""

from amaranth import Cat, Const, Module, Signal, Value
from amaranth.utils import ceil_log2

__all__ = ["at_least", "count_byte", "encode", "take_lowest"]


def take_lowest(bits: Value) -> tuple[Value, Value]:
    """Splits off the lowest set bit: returns it and the other bits, from one carry chain."""
    negative = (-bits)[: len(bits)]
    return bits & negative, bits & ~negative


def at_least(m: Module, count: int, bits: Value) -> Value:
    """Whether at least `count` bits are set, for a count of 1 to 3, by a tree of gates.

    The tree is faster than the carry chain of `take_lowest`, and works in parallel with it. The
    number of bits must be a power of two.
    """
    one, two, three = bits, Const(0, len(bits)), Const(0, len(bits))
    while len(one) > 1:
        half = len(one) // 2
        merged = [Signal(half, name=f"at_least_{n + 1}_of_{len(bits) // half}") for n in range(3)]
        (a1, b1), (a2, b2), (a3, b3) = ((v[:half], v[half:]) for v in (one, two, three))
        m.d.comb += [
            merged[0].eq(a1 | b1),
            merged[1].eq(a2 | b2 | (a1 & b1)),
            merged[2].eq(a3 | b3 | (a1 & b2) | (a2 & b1)),
        ]
        one, two, three = merged
    return (one, two, three)[count - 1]


def count_byte(bits: Value) -> Value:
    """Number of set bits among 8: one gate per bit for the count of each half, and one adder."""
    halves = []
    for a, b, c, d in (bits[:4], bits[4:]):
        two = (a & b) | (c & d) | ((a | b) & (c | d))
        four = a & b & c & d
        halves.append(Cat(a ^ b ^ c ^ d, two & ~four, four))
    return halves[0] + halves[1]


def encode(lowest: Value) -> Value:
    """One-hot to binary: the index of the set bit."""
    width = len(lowest)
    return Cat(
        Cat(lowest[i] for i in range(width) if i >> j & 1).any() for j in range(ceil_log2(width))
    )
