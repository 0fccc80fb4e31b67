"""Finds the output positions of a layer that must be computed in this step."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out

from lbq_hw.config import address_bits
from lbq_hw.core.streaming.layouts import Place, Visit, layer_of, paths_of
from lbq_hw.streaming.config import StreamConfig

__all__ = ["VisitFinder", "lowest"]


def lowest(bits):
    """The lowest set bit alone."""
    return (bits & -bits)[: len(bits)]


class VisitFinder(wiring.Component):
    """Walks over the rows of a layer's output and offers the columns to visit.

    For each path it ORs the map rows under the windows of an output row, and dilates the result by
    the width of a window. A column is visited if its window has a set bit, if it is hot, or if the
    patrol is there; with `always`, all columns of the layer are visited. Empty map rows are not
    dilated. A row without a visit makes one mark, without ``real``.

    Timing. A row takes 1 cycle and, unless `always`, for each path a cycle per row of the window, 1
    to test the result, and, if a bit is set, max(`left`, `right`) to dilate and 1 to pick the
    columns. Each mark then takes one cycle, or more until it is taken.

    Members
    -------
    start : in
        The layer begins; ``layer`` and ``paths`` are valid from the same cycle on.
    layer, paths : in
        LAYER record, PATH records.
    patrol : in
        Row and column that the patrol visits in layers that leak.
    maps, hot : read ports of a map and of the hot map
    o : stream of `Visit`
    """

    def __init__(self, config: StreamConfig):
        self._config = c = config
        port = memory.ReadPort.Signature(addr_width=address_bits(c.map_rows), shape=c.columns)
        super().__init__(
            {
                "start": In(1),
                "layer": In(layer_of(c)),
                "paths": In(paths_of(c)),
                "patrol": In(Place(c)),
                "maps": In(port),
                "hot": In(port),
                "o": Out(stream.Signature(Visit(c))),
            }
        )

    def elaborate(self, _platform):
        m = Module()
        c, layer = self._config, self.layer
        y, found = Signal(c.side_bits), Signal(c.columns)
        number, row, top = (
            Signal(address_bits(c.layer_paths)),
            Signal(c.side_bits),
            Signal(range(-(1 << c.side_bits) - 1, 1 << (2 * c.side_bits + 1))),
        )
        path = self.paths[number]
        within, reads = Signal(), Signal()
        joined, found_columns = Signal(c.columns), Signal(c.columns)
        source = (top + row)[: len(self.maps.addr)]
        m.d.comb += [
            self.maps.en.eq(0),
            self.hot.en.eq(0),
            top.eq(y * path.row_step + path.row_init),
            within.eq((top + row >= path.row_low) & (top + row <= path.row_high)),
            self.maps.addr.eq(path.map + source),
            self.hot.addr.eq(layer.map + y),
            found_columns.eq(joined | Mux(reads, self.maps.data, 0)),
        ]
        last_path = Signal()
        m.d.comb += last_path.eq(number == layer.paths_last)
        spread = _Spread(c)
        picked = spread.picked(m, path)
        extra = Signal(c.columns)
        with m.If(~layer.readout):
            m.d.comb += extra.eq(self.hot.data)
        if c.leaks:
            with m.If(layer.leaks & (self.patrol.row == y)):
                m.d.comb += extra.eq(
                    Mux(layer.readout, 0, self.hot.data) | (1 << self.patrol.column)[: c.columns]
                )
        inside = Cat(layer.columns_last >= x for x in range(c.columns))

        def next_path(bits):
            """Go to the next path, or to the visits, when the bits of a path are known."""
            with m.If(last_path):
                m.d.sync += found.eq((found | bits | extra) & inside)
                m.next = "Emit"
            with m.Else():
                m.d.sync += [found.eq(found | bits), number.eq(number + 1)]
                m.next = "Join"
            m.d.sync += [joined.eq(0), row.eq(0)]

        m.d.sync += reads.eq(0)
        with m.FSM():
            with m.State("Idle"), m.If(self.start):
                m.d.sync += y.eq(0)
                m.next = "Row"
            with m.State("Row"):
                m.d.comb += self.hot.en.eq(1)
                m.d.sync += [number.eq(0), found.eq(Mux(layer.always, inside, 0))]
                with m.If(layer.always):
                    m.next = "Emit"
                with m.Else():
                    m.next = "Join"
            with m.State("Join"):
                m.d.comb += self.maps.en.eq(within)
                m.d.sync += [reads.eq(within), joined.eq(found_columns), row.eq(row + 1)]
                with m.If(row == path.rows_last):
                    m.next = "Look"
            with m.State("Look"):
                spread.load(m, found_columns)
                with m.If(~found_columns.any()):
                    next_path(0)
                with m.Elif((path.left | path.right).any()):
                    m.next = "Spread"
                with m.Else():
                    m.next = "Pick"
            with m.State("Spread"):
                spread.move(m, path)
                with m.If((spread.count + 1 >= path.left) & (spread.count + 1 >= path.right)):
                    m.next = "Pick"
            with m.State("Pick"):
                next_path(picked)
            with m.State("Emit"):
                self._emit(m, y, found)
        return m

    def _emit(self, m, y, found):
        layer, one, mark = self.layer, lowest(found), self.o.payload.mark
        real, taken, row_end = Signal(), Signal(), Signal()
        column = Signal(self._config.side_bits)
        for x in range(self._config.columns):
            with m.If(one[x]):
                m.d.comb += column.eq(x)
        m.d.comb += [
            real.eq(found.any()),
            row_end.eq(found == one),
            self.o.valid.eq(1),
            taken.eq(self.o.ready),
            self.o.payload.row.eq(y),
            mark.column.eq(column),
            mark.real.eq(real),
            mark.row_end.eq(row_end),
            mark.layer_end.eq(row_end & (y == layer.rows_last)),
        ]
        with m.If(taken):
            m.d.sync += found.eq(found ^ one)
            with m.If(row_end):
                m.d.sync += y.eq(y + 1)
                m.next = "Row"
                with m.If(y == layer.rows_last):
                    m.next = "Idle"


class _Spread:
    """Bits of a map row, dilated to the right and to the left by one column per cycle."""

    def __init__(self, config: StreamConfig):
        width = max(config.reach, config.columns)
        self._steps = [s for s in range(64) if config.column_steps >> s & 1]
        self._columns = config.columns
        self._up = Signal(width, name="spread_up")
        self._down = Signal(width, name="spread_down")
        self._all = Signal(width, name="spread_all")
        self.count = Signal(config.side_bits, name="spread_count")

    def load(self, m, bits):
        m.d.sync += [
            self._up.eq(bits),
            self._down.eq(bits),
            self._all.eq(bits),
            self.count.eq(0),
        ]

    def move(self, m, path):
        up, down = Signal.like(self._up), Signal.like(self._down)
        m.d.comb += [
            up.eq(Mux(self.count < path.left, self._up << 1, self._up)),
            down.eq(Mux(self.count < path.right, self._down >> 1, self._down)),
        ]
        m.d.sync += [
            self._up.eq(up),
            self._down.eq(down),
            self._all.eq(self._all | up | down),
            self.count.eq(self.count + 1),
        ]

    def picked(self, m, path):
        """The bit for each output column."""
        bits = Signal(self._columns)
        for step in self._steps:
            with m.If(path.column_step == step):
                m.d.comb += bits.eq(self._all[:: step or 1])
        return bits
