"""Where the slices of an item of the tape go."""

from amaranth import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from lbq_hw.config import CoreConfig
from lbq_hw.core.host.addresses import exists, place
from lbq_hw.isa import regions, tape
from lbq_hw.isa.record import SLICE
from lbq_hw.isa.regions import Region

__all__ = ["TapePlace"]

_WHOLE = (Region.WEIGHTS, Region.PARAMS)
"""Regions of which an item has whole entries."""


class TapePlace(wiring.Component):
    """Holds the address of a slice, and goes on from the last slice of an entry to the next entry.

    Timing. The address changes in the cycle after ``load`` or ``step``; all else follows from it in
    the same cycle.

    Members
    -------
    load, given : in
        Take this address.
    step : in
        To the next slice.
    address : out
    named : out, a bit for each `Region`
        The region, if an item may write it.
    exists : out
        An item may write this slice.
    partway : out
        This is not the first slice of its entry, in a region that is written by whole entries.
    """

    def __init__(self, config: CoreConfig):
        self._config = config
        super().__init__(
            {
                "load": In(1),
                "given": In(SLICE),
                "step": In(1),
                "address": Out(SLICE),
                "named": Out(len(Region)),
                "exists": Out(1),
                "partway": Out(1),
            }
        )

    def elaborate(self, _platform):
        m = Module()
        c, address = self._config, self.address
        slices, entries = regions.slices(c), regions.entries(c)
        named = [address[regions.SHIFT :] == kind if kind in tape.WRITTEN else 0 for kind in Region]
        partway = []
        # All ones behind the last slice of an entry, so that 1 more is the next entry.
        filled = Signal(max((slices[kind] - 1).bit_length() for kind in tape.WRITTEN))
        for kind in tape.WRITTEN:
            part, _ = place(c, address, kind)
            with m.If(self.named[kind] & (part == slices[kind] - 1)):
                m.d.comb += filled.eq((1 << len(part)) - 1)
            if kind in _WHOLE:
                partway.append(self.named[kind] & part.any())
        m.d.comb += [
            self.named.eq(Cat(named)),
            self.exists.eq(exists(c, address, list(self.named))),
            self.partway.eq(Cat(partway).any()),
        ]
        # One bit more than any entry needs: behind the last entry there is an address, too.
        used = 1 + max(
            ceil_log2(entries[kind]) + (slices[kind] - 1).bit_length() for kind in tape.WRITTEN
        )
        with m.If(self.load):
            m.d.sync += address.eq(self.given)
        with m.Elif(self.step):
            m.d.sync += address[:used].eq((address[:used] | filled) + 1)
        return m
