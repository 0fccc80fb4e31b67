"""The loops of a layer: their counters, and which loop advances after a step."""

from amaranth import Module, Signal, signed
from amaranth.lib import data, enum, wiring
from amaranth.lib.wiring import In, Out

from lbq_hw import isa
from lbq_hw.config import CoreConfig
from lbq_hw.core.walk import records

__all__ = ["Advance", "LoopState", "Loops"]


class Advance(enum.Enum, shape=3):
    """The loop that advances; all loops inside it restart. See `lbq_hw.isa`."""

    START = 0
    TIMESTEP = 1
    WINDOW_COLUMN = 2
    WINDOW_ROW = 3
    TILE = 4
    COLUMN = 5
    ROW = 6
    END = 7


class LoopState(data.StructLayout):
    """Position of a step in the loops.

    Members
    -------
    tile : unsigned
    first_t, last_t : bit
        The first timestep; the last timestep that has a step, in a static layer the only one.
    pool_first, pool_last : bit
        The first and the last position of the max-pool window that lies inside the layer.
    """

    def __init__(self, config: CoreConfig):
        super().__init__(
            {
                "tile": records.layout(isa.LAYER, config)["tiles_last"].shape,
                "first_t": 1,
                "last_t": 1,
                "pool_first": 1,
                "pool_last": 1,
            }
        )


class Loops(wiring.Component):
    """Counts through the loops of `lbq_hw.isa`: rows, columns, tiles, pool positions, timesteps.

    Positions of a pool window above the layer's first row or left of its first column are counted,
    but ``step_exists`` is 0 there. Positions below the last row or right of the last column are
    skipped.

    Timing. After ``start`` or ``go`` in cycle c, ``kind`` and ``state.tile`` are valid from cycle
    c + 1 on, ``step_exists`` and the rest of ``state`` from c + 2 on, and ``following`` from c + 3
    on. The next ``go`` is allowed in c + 3.

    Members
    -------
    layer : in
        The LAYER record; stable from ``start`` on.
    start : in
        Go to the first position of the layer.
    go : in
        Go to the next position.
    kind : out, `Advance`
        The loop that advanced last.
    following : out, `Advance`
        The loop that advances next; END after the last position of the layer.
    step_exists : out
        There is a step at this position.
    state : out, `LoopState`
    """

    def __init__(self, config: CoreConfig):
        self._config = config
        super().__init__(
            {
                "layer": In(records.layout(isa.LAYER, config)),
                "start": In(1),
                "go": In(1),
                "kind": Out(Advance),
                "following": Out(Advance),
                "step_exists": Out(1),
                "state": Out(LoopState(config)),
            }
        )

    def elaborate(self, _platform):
        m = Module()
        layer, coordinate = self.layer, signed(self._config.coordinate_bits)
        # `y0`, `x0`: first row and column of the pool window; `y`, `x`: row and column of the
        # window's position `wy`, `wx`.
        at = Signal(
            data.StructLayout(
                {
                    "row": layer.rows_last.shape(),
                    "column": layer.columns_last.shape(),
                    "wy": layer.window_rows_last.shape(),
                    "wx": layer.window_columns_last.shape(),
                    "t": layer.time_last.shape(),
                    "y0": coordinate,
                    "x0": coordinate,
                    "y": coordinate,
                    "x": coordinate,
                }
            )
        )
        self._look(m, at)
        with m.If(self.start):
            self._start(m, at)
        with m.Elif(self.go):
            self._go_on(m, at)
        return m

    def _look(self, m, at):
        """Locate this position; a cycle later, select the loop that advances next."""
        c, layer, state = self._config, self.layer, self.state
        y_in, x_in = Signal(), Signal()
        y_first, x_first = Signal(), Signal()
        y_last, x_last = Signal(), Signal()
        if c.window > 1:
            m.d.sync += [
                y_in.eq((at.y >= 0) & (at.y <= layer.conv_rows_last)),
                x_in.eq((at.x >= 0) & (at.x <= layer.conv_columns_last)),
                y_last.eq((at.wy == layer.window_rows_last) | (at.y >= layer.conv_rows_last)),
                x_last.eq((at.wx == layer.window_columns_last) | (at.x >= layer.conv_columns_last)),
                y_first.eq((at.wy == 0) | (at.y == 0)),
                x_first.eq((at.wx == 0) | (at.x == 0)),
            ]
        else:
            m.d.comb += [bit.eq(1) for bit in (y_in, x_in, y_last, x_last, y_first, x_first)]
        # With one timestep the time loop never advances.
        several = c.timesteps > 1
        m.d.sync += state.last_t.eq((at.t == layer.time_last) | layer.static if several else 1)
        m.d.comb += [
            self.step_exists.eq(y_in & x_in),
            state.first_t.eq(at.t == 0),
            state.pool_first.eq(y_first & x_first),
            state.pool_last.eq(y_last & x_last),
        ]
        with m.If(self.step_exists & ~state.last_t if several else 0):
            m.d.sync += self.following.eq(Advance.TIMESTEP)
        with m.Elif(y_in & ~x_last):
            m.d.sync += self.following.eq(Advance.WINDOW_COLUMN)
        with m.Elif(~y_last):
            m.d.sync += self.following.eq(Advance.WINDOW_ROW)
        with m.Elif(state.tile != layer.tiles_last):
            m.d.sync += self.following.eq(Advance.TILE)
        with m.Elif(at.column != layer.columns_last):
            m.d.sync += self.following.eq(Advance.COLUMN)
        with m.Elif(at.row != layer.rows_last):
            m.d.sync += self.following.eq(Advance.ROW)
        with m.Else():
            m.d.sync += self.following.eq(Advance.END)

    def _start(self, m, at):
        """Go to the layer's first position."""
        layer = self.layer
        m.d.sync += [self.kind.eq(Advance.START), self.state.tile.eq(0)]
        m.d.sync += [at[name].eq(0) for name in ("row", "column", "wy", "wx", "t")]
        m.d.sync += [at.y0.eq(layer.window_row_init), at.y.eq(layer.window_row_init)]
        m.d.sync += [at.x0.eq(layer.window_column_init), at.x.eq(layer.window_column_init)]

    def _go_on(self, m, at):
        """Advance the loop `following`; the counters of the loops inside it restart."""
        layer, tile = self.layer, self.state.tile
        m.d.sync += [self.kind.eq(self.following), at.t.eq(0)]
        with m.Switch(self.following):
            with m.Case(Advance.TIMESTEP):
                m.d.sync += at.t.eq(at.t + 1)
            with m.Case(Advance.WINDOW_COLUMN):
                m.d.sync += [at.wx.eq(at.wx + 1), at.x.eq(at.x + 1)]
            with m.Case(Advance.WINDOW_ROW):
                m.d.sync += [at.wx.eq(0), at.x.eq(at.x0), at.wy.eq(at.wy + 1), at.y.eq(at.y + 1)]
            with m.Default():
                m.d.sync += [at.wx.eq(0), at.x.eq(at.x0), at.wy.eq(0), at.y.eq(at.y0), tile.eq(0)]
        with m.Switch(self.following):
            with m.Case(Advance.TILE):
                m.d.sync += tile.eq(tile + 1)
            with m.Case(Advance.COLUMN):
                right = at.x0 + layer.window_column_step
                m.d.sync += [at.column.eq(at.column + 1), at.x0.eq(right), at.x.eq(right)]
            with m.Case(Advance.ROW):
                below = at.y0 + layer.window_row_step
                left = layer.window_column_init
                m.d.sync += [at.row.eq(at.row + 1), at.y0.eq(below), at.y.eq(below)]
                m.d.sync += [at.column.eq(0), at.x0.eq(left), at.x.eq(left)]
