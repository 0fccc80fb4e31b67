"""Moves the windows of all paths of a layer: one addition a path and advance."""

from amaranth import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out

from lbq_hw import isa
from lbq_hw.config import CoreConfig, address_bits
from lbq_hw.core.memory.apart import APART
from lbq_hw.core.walk import records
from lbq_hw.core.walk.loops import Advance
from lbq_hw.core.walk.paths import MOVE_FIELDS
from lbq_hw.core.walk.places import PathState, further, offset_bits

__all__ = ["Windows"]


class Windows(wiring.Component):
    """Advances the window of one path after the other.

    Timing. A path named in cycle c has its new state on ``state`` in cycle c + 2. Its next advance
    may be named in cycle c + 3.

    Members
    -------
    kind : in, `Advance`
        Stable from the first path that is named to the last state.
    go, path : in
        Name a path by its number in the layer.
    moves : read port of the path's `MOVE_FIELDS`, seen from the other side
    done, done_path, state : out
        In cycle c + 2: `go`, `path` of cycle c, and the new `PathState`, less its ``number``.
    only : out
        The state of a layer's only path, if `layer_paths` is 1, from cycle c + 3 on.
    """

    def __init__(self, config: CoreConfig):
        self._config = config
        path_bits = address_bits(config.layer_paths)
        super().__init__(
            {
                "kind": In(Advance),
                "go": In(1),
                "path": In(path_bits),
                "moves": In(
                    memory.ReadPort.Signature(
                        addr_width=path_bits, shape=records.layout(isa.PATH, config, MOVE_FIELDS)
                    )
                ),
                "done": Out(1),
                "done_path": Out(path_bits),
                "state": Out(PathState(config)),
                "only": Out(PathState(config)),
            }
        )

    @property
    def config(self) -> CoreConfig:
        return self._config

    def elaborate(self, _platform):
        m = Module()
        c = self._config
        layout = data.StructLayout(
            {
                "row0": signed(c.row_offset_bits),
                "row": signed(c.row_offset_bits),
                "col0": signed(c.column_bits),
                "col": signed(c.column_bits),
                "frame": offset_bits(c),
                "tile": c.weight_address_bits,
            }
        )
        path, old, new = self.moves.data, Signal(layout), Signal(layout)

        fetched = Signal()
        fetched_path = Signal.like(self.path)
        row_a, row_b = Signal.like(old.row), Signal.like(old.row)
        col_a, col_b = Signal.like(old.col), Signal.like(old.col)
        frame_a, frame_b = Signal.like(old.frame), Signal.like(path.frame_words)
        tile_a, tile_b = Signal.like(old.tile), Signal.like(old.tile)
        row0, col0 = Signal.like(old.row0), Signal.like(old.col0)

        def is_(*kinds):
            return Cat(self.kind == kind for kind in kinds).any()

        new_row0 = is_(Advance.START, Advance.ROW)
        new_col0 = is_(Advance.START, Advance.ROW, Advance.COLUMN)
        m.d.comb += [
            self.moves.en.eq(self.go),
            self.moves.addr.eq(self.path),
            new.row.eq(row_a + row_b),
            new.row0.eq(Mux(new_row0, new.row, row0)),
            new.col.eq(col_a + col_b),
            new.col0.eq(Mux(new_col0, new.col, col0)),
            new.frame.eq(further(frame_a, frame_b) if c.timesteps > 1 else 0),
            new.tile.eq(tile_a + tile_b),
        ]
        for name in ("row", "col", "frame", "tile"):
            m.d.comb += [self.state[name].eq(new[name]), self.only[name].eq(old[name])]
        self._keep(m, old, new)

        m.d.sync += [
            fetched.eq(self.go),
            fetched_path.eq(self.path),
            self.done.eq(fetched),
            self.done_path.eq(fetched_path),
        ]
        # The only path's operands stay as they are for the two cycles.
        operands = m.d.comb if c.layer_paths == 1 else m.d.sync
        operands += [
            row0.eq(old.row0),
            col0.eq(old.col0),
            row_a.eq(old.row),
            row_b.eq(0),
            col_a.eq(old.col),
            col_b.eq(0),
            frame_a.eq(0),
            frame_b.eq(0),
            tile_a.eq(old.tile),
            tile_b.eq(0),
        ]
        with m.Switch(self.kind):
            with m.Case(Advance.START):
                operands += [row_a.eq(0), row_b.eq(path.row_init), tile_a.eq(0)]
                operands += [col_a.eq(0), col_b.eq(path.column_init)]
            with m.Case(Advance.TIMESTEP):
                operands += [frame_a.eq(old.frame), frame_b.eq(path.frame_words)]
            if c.window > 1:
                with m.Case(Advance.WINDOW_COLUMN):
                    operands += col_b.eq(path.column_window)
                with m.Case(Advance.WINDOW_ROW):
                    operands += [row_b.eq(path.row_window), col_a.eq(old.col0)]
            with m.Case(Advance.TILE):
                operands += [row_a.eq(old.row0), col_a.eq(old.col0), tile_b.eq(path.tile_rows)]
            with m.Case(Advance.COLUMN):
                operands += [row_a.eq(old.row0), tile_a.eq(0)]
                operands += [col_a.eq(old.col0), col_b.eq(path.column_step)]
            with m.Case(Advance.ROW):
                operands += [row_a.eq(old.row0), row_b.eq(path.row_step), tile_a.eq(0)]
                operands += [col_a.eq(0), col_b.eq(path.column_init)]
        return m

    def _keep(self, m, old, new):
        """The states of all paths. That of the only one needs no memory."""
        if self._config.layer_paths == 1:
            with m.If(self.done):
                m.d.sync += old.eq(new)
            return
        m.submodules.states = states = memory.Memory(
            shape=new.shape(), depth=self._config.layer_paths, init=[], attrs=APART
        )
        read, write = states.read_port(), states.write_port()
        m.d.comb += [
            read.en.eq(self.go),
            read.addr.eq(self.path),
            old.eq(read.data),
            write.en.eq(self.done),
            write.addr.eq(self.done_path),
            write.data.eq(new),
        ]
