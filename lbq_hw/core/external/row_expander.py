"""Weights of few bits, made as wide as the weight memory has them."""

from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from lbq_hw.config import CoreConfig
from lbq_hw.isa import regions

__all__ = ["RowExpander"]


class RowExpander(wiring.Component):
    """Extends the sign of every weight of a row that has fewer bits than the weight memory.

    ``row`` holds the slices of a row as they came, the last of them in the highest bits. A row of
    fewer bits has fewer slices: it begins above the bits that the missing ones would fill, and its
    weights lie one behind the other. All outputs follow in the same cycle.

    Parameters
    ----------
    config : `CoreConfig`
        With `narrow`.

    Members
    -------
    row : in
    narrow : in, a bit for each of the core's `narrow_bits`
        The row has so many bits per weight; if no bit is set, as many as the weight memory.
    expanded : out
        The row that is stored.
    """

    def __init__(self, config: CoreConfig):
        self._config = config
        width = config.lanes * config.weight_bits
        super().__init__(
            {
                "row": In(width),
                "narrow": In(len(config.narrow_bits)),
                "expanded": Out(width),
            }
        )

    def elaborate(self, _platform):
        m = Module()
        c, row = self._config, self.row
        m.d.comb += self.expanded.eq(row)
        for index, bits in enumerate(c.narrow_bits):
            first = len(row) - regions.row_slices(c, bits) * regions.weight_slice_bits(c)
            with m.If(self.narrow[index]):
                for lane in range(c.lanes):
                    weight = row[first + lane * bits :][:bits].as_signed()
                    wide = self.expanded.word_select(lane, c.weight_bits)
                    m.d.comb += wide.eq(weight)
        return m
