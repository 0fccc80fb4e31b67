"""Fetches the rows of the windows at a position."""

from amaranth import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out

from lbq_hw.config import address_bits
from lbq_hw.core.streaming.layouts import Place, RowItem, layer_of, paths_of
from lbq_hw.streaming.config import StreamConfig

__all__ = ["RowFetch"]


class RowFetch(wiring.Component):
    """Makes a `RowItem` for every tile, path and row of the window, in this order of loops.

    Timing. One row is requested per cycle, and offered in the next cycle. A place is taken with its
    last row.

    Members
    -------
    layer, paths : in
    i : stream of `Place`
    o : stream of `RowItem`
    maps, rows : read ports
        Map rows, and the level word of each row's first pixel.
    """

    def __init__(self, config: StreamConfig):
        self._config = c = config
        bits = address_bits(c.map_rows)
        port = memory.ReadPort.Signature
        super().__init__(
            {
                "layer": In(layer_of(c)),
                "paths": In(paths_of(c)),
                "i": In(stream.Signature(Place(c))),
                "o": Out(stream.Signature(RowItem(c))),
                "maps": In(port(addr_width=bits, shape=c.columns)),
                "rows": In(port(addr_width=bits, shape=address_bits(c.level_words))),
            }
        )

    def elaborate(self, _platform):
        m = Module()
        c, layer, place = self._config, self.layer, self.i.payload
        tile, number = Signal(address_bits(c.tiles)), Signal(address_bits(c.layer_paths))
        row, tap = Signal(c.side_bits), Signal(address_bits(c.taps))
        tile_row = Signal(address_bits(c.weight_rows))
        path = self.paths[number]
        source_row = Signal(range(-(1 << c.side_bits) - 1, 1 << (2 * c.side_bits + 1)))
        within, asks = Signal(), Signal()
        ends = {name: Signal(name=f"last_{name}") for name in ("row", "path", "tile")}
        m.d.comb += [
            source_row.eq(place.row * path.row_step + path.row_init + row),
            within.eq((source_row >= path.row_low) & (source_row <= path.row_high)),
            ends["row"].eq(row == path.rows_last),
            ends["path"].eq(ends["row"] & (number == layer.paths_last)),
            ends["tile"].eq(ends["path"] & (tile == layer.tiles_last)),
            asks.eq(self.i.valid & (~self.o.valid | self.o.ready)),
            self.i.ready.eq(asks & ends["tile"]),
            self.maps.addr.eq(path.map + source_row[: len(self.maps.addr)]),
            self.rows.addr.eq(self.maps.addr),
            self.maps.en.eq(asks),
            self.rows.en.eq(asks),
        ]
        with m.If(asks):
            m.d.sync += [row.eq(row + 1), tap.eq(tap + path.window_last + 1)]
            with m.If(ends["row"]):
                m.d.sync += [row.eq(0), tap.eq(0), number.eq(number + 1)]
            with m.If(ends["path"]):
                m.d.sync += [
                    number.eq(0),
                    tile.eq(tile + 1),
                    tile_row.eq(tile_row + layer.tile_rows),
                ]
            with m.If(ends["tile"]):
                m.d.sync += [tile.eq(0), tile_row.eq(0)]
        self._offer(m, asks, within, {
            "left": place.column * path.column_step + path.column_init,
            "tap": path.tap + tap,
            "path": number,
            "tile": tile,
            "tile_row": tile_row,
            "end": ends["path"],
        })  # fmt: skip
        return m

    def _offer(self, m, asks, within, given):
        """Offer the row that was requested in the previous cycle."""
        c, item = self._config, self.o.payload
        found = Signal()
        with m.If(asks):
            m.d.sync += [self.o.valid.eq(1), found.eq(within)]
        with m.Elif(self.o.ready):
            m.d.sync += self.o.valid.eq(0)
        for name, value in given.items():
            kept = Signal.like(item[name], name=f"asked_{name}")
            with m.If(asks):
                m.d.sync += kept.eq(value)
            m.d.comb += item[name].eq(kept)
        path = self.paths[item.path]
        line = Cat(Const(0, c.padding), self.maps.data & path.mask)
        shift = Signal(range(c.side + c.padding + 1))
        width = Cat(path.window_last >= i for i in range(c.window))
        outside = Signal()
        place = Signal(signed(c.side_bits + 4))
        m.d.comb += [
            place.eq(item.left + c.padding),
            shift.eq(place),
            outside.eq(place >= c.columns + c.padding),
            item.base.eq(self.rows.data),
            item.bits.eq(Mux(found & ~outside, (line >> shift) & width, 0)),
        ]
