"""The destination addresses of the slices in a tape item."""

from amaranth import Cat, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from lbq_hw.config import CoreConfig
from lbq_hw.core.host.addresses import exists, place
from lbq_hw.isa import regions, tape
from lbq_hw.isa.record import SLICE
from lbq_hw.isa.regions import Region

__all__ = ["MixedPlace", "TapePlace"]

_WHOLE = (Region.WEIGHTS, Region.PARAMS)
"""Regions that an item writes by whole entries."""


class TapePlace(wiring.Component):
    """Holds the address of a slice, and steps from the last slice of an entry to the next entry.

    Timing. The address changes in the cycle after ``load`` or ``step``. The other outputs are
    combinational functions of the address.

    Members
    -------
    load, item_slice : in
        Load ``item_slice`` as the address.
    step : in
        Go to the next slice.
    address : out
    in_region : out, a bit for each `Region`
        The region of the address, if an item may write it.
    exists : out
        An item may write this slice.
    partway : out
        In a region that is written by whole entries, this is not the first slice of its entry.
    """

    def __init__(self, config: CoreConfig):
        self._config = config
        super().__init__(
            {
                "load": In(1),
                "item_slice": In(SLICE),
                "step": In(1),
                "address": Out(SLICE),
                "in_region": Out(len(Region)),
                "exists": Out(1),
                "partway": Out(1),
            }
        )

    def elaborate(self, _platform):
        m = Module()
        c, address = self._config, self.address
        slices, entries = regions.slices(c), regions.entries(c)
        in_region = [self._names(kind) if kind in tape.WRITTEN else 0 for kind in Region]
        partway = []
        # All slice bits are 1 at the last slice of an entry, so that adding 1 carries into the
        # entry.
        filled = Signal(max((slices[kind] - 1).bit_length() for kind in tape.WRITTEN))
        for kind in tape.WRITTEN:
            part, _ = place(c, address, kind)
            with m.If(self._is_last(kind, part)):
                m.d.comb += filled.eq((1 << len(part)) - 1)
            if kind in _WHOLE:
                partway.append(self.in_region[kind] & part.any())
        m.d.comb += [
            self.in_region.eq(Cat(in_region)),
            self.exists.eq(exists(c, address, list(self.in_region))),
            self.partway.eq(Cat(partway).any()),
        ]
        # One bit more than the entries need, so that the address does not wrap after the last
        # entry.
        used = 1 + max(
            ceil_log2(entries[kind]) + (slices[kind] - 1).bit_length() for kind in tape.WRITTEN
        )
        with m.If(self.load):
            m.d.sync += address.eq(self.item_slice)
        with m.Elif(self.step):
            m.d.sync += address[:used].eq((address[:used] | filled) + 1)
        return m

    def _names(self, kind: Region) -> Value:
        """Whether the address is in this region."""
        return self.address[regions.SHIFT :] == kind

    def _is_last(self, kind: Region, part: Value) -> Value:
        """Whether this is the last slice of an entry of this region."""
        return self.in_region[kind] & (part == regions.slices(self._config)[kind] - 1)


class MixedPlace(TapePlace):
    """As `TapePlace`, for a core whose tape may also have weight rows of narrow weights."""

    def _names(self, kind: Region) -> Value:
        if kind != Region.WEIGHTS:
            return super()._names(kind)
        numbers = tape.row_bits(self._config)
        return Cat(self.address[regions.SHIFT :] == number for number in numbers).any()

    def _is_last(self, kind: Region, part: Value) -> Value:
        if kind != Region.WEIGHTS:
            return super()._is_last(kind, part)
        return is_last_of_row(self._config, self.address)


def is_last_of_row(config: CoreConfig, address: Value) -> Value:
    """Whether a tape address is the last slice of a weight row, of any weight width."""
    part, _ = place(config, address, Region.WEIGHTS)
    return Cat(
        (address[regions.SHIFT :] == number) & (part == regions.row_slices(config, bits) - 1)
        for number, bits in tape.row_bits(config).items()
    ).any()
