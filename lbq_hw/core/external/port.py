"""The port of a block that uses the external memory: accesses, and the words of reads.

In this folder, a word is a data word: as many bits as the chip has data pins.
"""

from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from lbq_hw.chips import Chip
from lbq_hw.chips.timing import DELAYS

__all__ = ["Access", "Capture", "MemoryPort"]


class Capture(data.StructLayout):
    """When a word is sampled at the data pins.

    As a number, it counts half cycles: the next larger capture samples half a cycle later.

    Members
    -------
    falling : bit
        At the falling edge of the clock, half a cycle after the rising one.
    delay : 3 bits
        Cycles in addition to the fixed latency of a read.
    """

    SETTINGS = 2 * DELAYS
    """Number of settings."""

    def __init__(self):
        super().__init__({"falling": 1, "delay": (DELAYS - 1).bit_length()})


class Access(data.StructLayout):
    """A read of consecutive words in one page, or a write of one word.

    Members
    -------
    write : bit
    address : bits of an address
        Address of the first word.
    more : bits of a column
        Number of words that a read returns after the first; it must not cross a page.
    data : bits of a word
        Data of a write.
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
    """The port of a block that uses a memory; the memory has it flipped.

    Members
    -------
    access : stream of `Access`, out
        Executed in order: a read sees all earlier writes.
    words : stream of words, in
        The words of all reads, in order.
    """

    def __init__(self, chip: Chip):
        super().__init__(
            {
                "access": Out(stream.Signature(Access(chip))),
                "words": In(stream.Signature(chip.data_bits)),
            }
        )
