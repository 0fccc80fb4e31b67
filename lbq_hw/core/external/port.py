"""How a block uses the external memory: requests to read, words that come, words to write.

A word in this room is a data word: what the data pins of the chip carry in a cycle.
"""

from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from lbq_hw.core.external.chips import Chip

__all__ = ["Capture", "MemoryPort", "ReadRequest", "WordWrite"]

DELAYS = 8
"""Delays that a capture can have, in cycles."""


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


class ReadRequest(data.StructLayout):
    """A linear read.

    Members
    -------
    address : bits of an address
        Of the first word.
    more : bits of an address
        Words after the first. Past the memory's end they come from its beginning.
    """

    def __init__(self, chip: Chip):
        super().__init__({"address": chip.address_bits, "more": chip.address_bits})


class WordWrite(data.StructLayout):
    """A word and its address.

    Members
    -------
    address : bits of an address
    data : bits of a word
    """

    def __init__(self, chip: Chip):
        super().__init__({"address": chip.address_bits, "data": chip.data_bits})


class MemoryPort(wiring.Signature):
    """What a block that uses a memory has; the memory has it flipped.

    Members
    -------
    read : stream of `ReadRequest`, out
    words : stream of words, in
        Those of all requests, in their order.
    write : stream of `WordWrite`, out
    """

    def __init__(self, chip: Chip):
        super().__init__(
            {
                "read": Out(stream.Signature(ReadRequest(chip))),
                "words": In(stream.Signature(chip.data_bits)),
                "write": Out(stream.Signature(WordWrite(chip))),
            }
        )
