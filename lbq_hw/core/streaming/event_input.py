"""Writes the events of a step into the input's levels and its map."""

from amaranth import Module
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In

from lbq_hw.config import address_bits
from lbq_hw.isa.record import SLICE
from lbq_hw.streaming.config import StreamConfig
from lbq_hw.streaming.records import PLANE_BITS, X_BITS, Y_BITS

__all__ = ["EventInput"]


class EventInput(wiring.Component):
    """Writes one plane of one pixel, a bit per channel, and sets the pixel's bit of the map.

    Events are not checked: an event beyond the input is lost or lands in a row of another tensor.
    The host must not send such an event.

    Timing. One event per three cycles: its rows are read in the first and written in the third.

    Members
    -------
    i : stream of `records.event_word`
    maps, rows : read ports
    o_maps, o_levels : write ports
    """

    def __init__(self, config: StreamConfig):
        self._config = c = config
        rows, words = address_bits(c.map_rows), address_bits(c.level_words)
        read, write = memory.ReadPort.Signature, memory.WritePort.Signature
        super().__init__(
            {
                "i": In(stream.Signature(SLICE)),
                "maps": In(read(addr_width=rows, shape=c.columns)),
                "rows": In(read(addr_width=rows, shape=words)),
                "o_maps": In(write(addr_width=rows, shape=c.columns)),
                "o_levels": In(write(addr_width=words, shape=c.lanes)),
            }
        )

    def elaborate(self, _platform):
        m = Module()
        c, word = self._config, self.i.payload
        x, y = word[:X_BITS], word[X_BITS : X_BITS + Y_BITS]
        plane = word[X_BITS + Y_BITS :][:PLANE_BITS]
        channels = word[X_BITS + Y_BITS + PLANE_BITS :][: c.input_channels]
        m.d.comb += [
            self.maps.en.eq(0),
            self.rows.en.eq(0),
            self.maps.addr.eq(y),
            self.rows.addr.eq(y),
            self.o_maps.addr.eq(y),
            self.o_maps.data.eq(self.maps.data | (1 << x)[: c.columns]),
            self.o_levels.addr.eq(self.rows.data + x * c.input_planes + plane),
            self.o_levels.data.eq(channels),
        ]
        with m.FSM():
            with m.State("Wait"), m.If(self.i.valid):
                m.d.comb += [self.maps.en.eq(1), self.rows.en.eq(1)]
                m.next = "Write"
            with m.State("Write"):
                m.d.comb += [self.o_maps.en.eq(1), self.o_levels.en.eq(1), self.i.ready.eq(1)]
                m.next = "Settle"
            with m.State("Settle"):
                m.next = "Wait"
        return m
