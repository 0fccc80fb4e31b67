"""Collects the output of the neurons: level words, rows of the map, rows of the hot map."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from lbq_hw.config import address_bits
from lbq_hw.core.fabric.contracts import must
from lbq_hw.core.streaming.layouts import Beat, layer_of
from lbq_hw.streaming.config import StreamConfig

__all__ = ["MapCollector"]


class MapCollector(wiring.Component):
    """Writes the planes of each tile, one per cycle. Writes each row of the map and of the hot map
    once, when the row ends. A readout writes nothing.

    Timing. The planes of a tile are written from the cycle after the tile's last beat on, a row in
    the cycle after the row's last beat. If the layer ends there, ``done`` is 1 in that cycle. The
    ends of two tiles must be at least as many cycles apart as a level has planes.

    Members
    -------
    start : in
        A layer begins.
    layer : in
    i : stream of `Beat`, always ready
    levels, hot : in
        Levels of the beat's group, and which of its neurons are hot.
    o_levels : write port of level words
    o_maps : write port of rows
        Map and hot map are written at the same address; ``hot_row`` is the data of the hot map.
    done : out
    """

    def __init__(self, config: StreamConfig):
        self._config = c = config
        port = memory.WritePort.Signature
        super().__init__(
            {
                "start": In(1),
                "layer": In(layer_of(c)),
                "i": In(stream.Signature(Beat(c), always_ready=True)),
                "levels": In(data.ArrayLayout(c.planes, c.units)),
                "hot": In(1),
                "o_levels": In(port(addr_width=address_bits(c.level_words), shape=c.lanes)),
                "o_maps": In(port(addr_width=address_bits(c.map_rows), shape=c.columns)),
                "hot_row": Out(c.columns),
                "done": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        c, layer, beat = self._config, self.layer, self.i.payload
        planes = data.ArrayLayout(c.lanes, c.planes)
        kept, whole, out = Signal(planes), Signal(planes), Signal(planes)
        m.d.comb += whole.eq(kept)
        group = Signal(data.ArrayLayout(c.units, c.planes))
        for plane in range(c.planes):
            m.d.comb += group[plane].eq(Cat(level[plane] for level in self.levels))
            for number in range(c.groups):
                with m.If(beat.valid & (beat.group == number)):
                    place = whole[plane].word_select(number, c.units)
                    m.d.comb += place.eq(group[plane])
        left, tile_ends = Signal(range(c.planes + 1)), Signal()
        m.d.comb += [
            tile_ends.eq(self.i.valid & beat.tile_end & ~layer.readout),
            self.o_levels.en.eq(left != 0),
            self.o_levels.data.eq(out[0]),
        ]
        with m.If(self.i.valid):
            m.d.sync += kept.eq(Mux(beat.tile_end, 0, whole.as_value()))
        with m.If(tile_ends):
            m.d.sync += [
                out.eq(whole),
                left.eq(layer.planes_last + 1),
                self.o_levels.addr.eq(beat.level),
            ]
        with m.Elif(left != 0):
            m.d.sync += [
                out.eq(out.as_value() >> c.lanes),
                left.eq(left - 1),
                self.o_levels.addr.eq(self.o_levels.addr + 1),
            ]
        must(m, platform, ~(tile_ends & (left > 1)), "a tile ends while another is written")
        self._rows(m, beat, group)
        return m

    def _rows(self, m, beat, group):
        """Accumulates the bits of a row, and writes them at its end."""
        c, layer = self._config, self.layer
        filled, hot, fills, becomes_hot = Signal(), Signal(), Signal(), Signal()
        row, hot_row, number = Signal(c.columns), Signal(c.columns), Signal.like(self.o_maps.addr)
        new_row, new_hot = Signal(c.columns), Signal(c.columns)
        column = (1 << beat.column)[: c.columns]
        m.d.comb += [
            fills.eq(filled | (beat.valid & group.as_value().any())),
            becomes_hot.eq(hot | (beat.valid & self.hot)),
            new_row.eq(row | Mux(fills & beat.visit_end, column, 0)),
            new_hot.eq(hot_row | Mux(becomes_hot & beat.visit_end, column, 0)),
        ]
        m.d.sync += [self.o_maps.en.eq(0), self.done.eq(0)]
        with m.If(self.i.valid):
            m.d.sync += [
                filled.eq(fills & ~beat.visit_end),
                hot.eq(becomes_hot & ~beat.visit_end),
                row.eq(Mux(beat.row_end, 0, new_row)),
                hot_row.eq(Mux(beat.row_end, 0, new_hot)),
                self.done.eq(beat.layer_end),
            ]
            with m.If(beat.row_end):
                m.d.sync += [
                    self.o_maps.en.eq(~layer.readout),
                    self.o_maps.addr.eq(number),
                    self.o_maps.data.eq(new_row),
                    self.hot_row.eq(new_hot),
                    number.eq(number + 1),
                ]
        with m.If(self.start):
            m.d.sync += number.eq(layer.map)
