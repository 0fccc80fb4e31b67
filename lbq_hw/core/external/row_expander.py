"""Extends weights of fewer bits to the width of the weight memory."""

from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from lbq_hw.config import CoreConfig
from lbq_hw.isa import regions

__all__ = ["RowExpander"]


class RowExpander(wiring.Component):
    """Sign-extends the weights of a row that have fewer bits than the weight memory.

    ``row`` holds the slices of a row in their order of arrival, the last one in the highest bits. A
    row of narrow weights has fewer slices: they fill the upper part of ``row``, with the weights
    packed without gaps. The outputs are combinational.

    Parameters
    ----------
    config : `CoreConfig`
        A core with `narrow`.

    Members
    -------
    row : in
    narrow : in, a bit for each of the core's `narrow_bits`
        The row has this many bits per weight; if no bit is set, as many as the weight memory.
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
