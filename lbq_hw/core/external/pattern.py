"""Words that identify their addresses, for calibration and the memory test."""

from amaranth import Cat, Const, Value

__all__ = ["compute", "pattern"]

_HALF = 16


def _flips(bit: int) -> int:
    """Bits of a half word that a bit of the address inverts."""
    if bit == 0:
        return (1 << _HALF) - 1
    return 1 << bit if bit < _HALF else 3 << (bit - _HALF)


def compute(address: int, bits: int) -> int:
    """The word of an address.

    Each address bit inverts some bits of the word; the lowest inverts all of them. So words at
    neighbouring addresses differ in nearly all bits, and no two words of an aligned block of 65,536
    are equal. The upper half of a 32-bit word is the lower half, inverted.
    """
    low = 0
    for bit in range(address.bit_length()):
        if address >> bit & 1:
            low ^= _flips(bit)
    return low if bits == _HALF else low | (low ^ 0xFFFF) << _HALF


def pattern(address: Value, bits: int) -> Value:
    """The word of an address, in logic."""
    turned = [Const(0, 1)] * _HALF
    for bit in range(len(address)):
        for place in range(_HALF):
            if _flips(bit) >> place & 1:
                turned[place] = turned[place] ^ address[bit]
    low = Cat(turned)
    return low if bits == _HALF else Cat(low, ~low)
