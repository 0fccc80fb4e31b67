"""How a block uses the external memory: accesses, and words that come.

A word in this room is a data word: what the data pins of the chip carry in a cycle.
"""

from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from lbq_hw.chips import Chip
from lbq_hw.chips.timing import DELAYS

__all__ = ["Access", "Capture", "MemoryPort"]


class Capture(data.StructLayout):
    """When a word is taken from the data pins.

    As a number, it counts half cycles: the next one takes the word half a cycle later.

    Members
    -------
    falling : bit
        At the falling edge of the clock, half a cycle after the rising one.
    delay : 3 bits
        Cycles, besides those that every read takes.
    """

    SETTINGS = 2 * DELAYS
    """Number of settings."""

    def __init__(self):
        super().__init__({"falling": 1, "delay": (DELAYS - 1).bit_length()})


class Access(data.StructLayout):
    """A read of words side by side in one page, or a write of one word.

    Members
    -------
    write : bit
    address : bits of an address
        Of the first word.
    more : bits of a column
        Words after the first that a read brings, none of them in the next page.
    data : bits of a word
        Of a write.
    """

    def __init__(self, chip: Chip):
        super().__init__(
            {
                "write": 1,
                "address": chip.address_bits,
                "more": chip.column_bits,
                "data": chip.data_bits,
            }
        )


class MemoryPort(wiring.Signature):
    """What a block that uses a memory has; the memory has it flipped.

    Members
    -------
    access : stream of `Access`, out
        Carried out in their order: a read gives what the writes before it have left.
    words : stream of words, in
        Those of all reads.
    """

    def __init__(self, chip: Chip):
        super().__init__(
            {
                "access": Out(stream.Signature(Access(chip))),
                "words": In(stream.Signature(chip.data_bits)),
            }
        )
