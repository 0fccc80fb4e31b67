"""Moves the fields of view of a layer's paths, by one addition per path."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from lbq_hw.config import CoreConfig, address_bits
from lbq_hw.core.walk.loops import Advance
from lbq_hw.core.walk.path_store import MovePort
from lbq_hw.core.walk.places import further

__all__ = ["FieldsOfView"]


class FieldsOfView(wiring.Component):
    """Advances the fields of view of the paths, one path after the other.

    Timing. The field of view of a path that ``go`` selects in cycle c is ``done`` in cycle c + 2.
    The same path may be selected again in cycle c + 3.

    Parameters
    ----------
    config : `CoreConfig`
    holds : bool
        Whether ``move_fields`` and ``old`` of ``paths`` are stable until cycle c + 2.
        Otherwise they are valid only in cycle c + 1, and registers keep them.

    Members
    -------
    kind : in, `Advance`
        Stable from the first ``go`` until the last path is ``done``.
    go, path : in
        Select a path by its number in the layer.
    paths : `MovePort`
    """

    def __init__(self, config: CoreConfig, *, holds: bool):
        self._config = config
        self._holds = holds
        super().__init__(
            {
                "kind": In(Advance),
                "go": In(1),
                "path": In(address_bits(config.layer_paths)),
                "paths": Out(MovePort(config)),
            }
        )

    @property
    def config(self) -> CoreConfig:
        return self._config

    def elaborate(self, _platform):
        m = Module()
        c, port = self._config, self.paths
        path, old, new = port.move_fields, port.old, port.new

        fetched = Signal()
        fetched_path = Signal.like(self.path)
        row_a, row_b = Signal.like(old.row), Signal.like(old.row)
        col_a, col_b = Signal.like(old.col), Signal.like(old.col)
        frame_a, frame_b = Signal.like(old.frame), Signal.like(path.frame_words)
        tile_a, tile_b = Signal.like(old.tile), Signal.like(old.tile)
        pools = c.window > 1
        # Without pool windows, every window has a single position.
        old_row0, old_col0 = (old.row0, old.col0) if pools else (old.row, old.col)

        def is_(*kinds):
            return Cat(self.kind == kind for kind in kinds).any()

        m.d.comb += [
            port.en.eq(self.go),
            port.path.eq(self.path),
            new.row.eq(row_a + row_b),
            new.col.eq(col_a + col_b),
            new.frame.eq(further(frame_a, frame_b) if c.timesteps > 1 else 0),
            new.tile.eq(tile_a + tile_b),
        ]

        m.d.sync += [
            fetched.eq(self.go),
            fetched_path.eq(self.path),
            port.done.eq(fetched),
            port.done_path.eq(fetched_path),
        ]
        operands = m.d.comb if self._holds else m.d.sync
        operands += [
            row_a.eq(old.row),
            row_b.eq(0),
            col_a.eq(old.col),
            col_b.eq(0),
            frame_a.eq(0),
            frame_b.eq(0),
            tile_a.eq(old.tile),
            tile_b.eq(0),
        ]
        if pools:
            row0, col0 = Signal.like(old.row0), Signal.like(old.col0)
            operands += [row0.eq(old.row0), col0.eq(old.col0)]
            new_row0 = is_(Advance.START, Advance.ROW)
            new_col0 = is_(Advance.START, Advance.ROW, Advance.COLUMN)
            m.d.comb += [
                new.row0.eq(Mux(new_row0, new.row, row0)),
                new.col0.eq(Mux(new_col0, new.col, col0)),
            ]
        with m.Switch(self.kind):
            with m.Case(Advance.START):
                operands += [row_a.eq(0), row_b.eq(path.row_init), tile_a.eq(0)]
                operands += [col_a.eq(0), col_b.eq(path.column_init)]
            with m.Case(Advance.TIMESTEP):
                operands += [frame_a.eq(old.frame), frame_b.eq(path.frame_words)]
            if pools:
                with m.Case(Advance.WINDOW_COLUMN):
                    operands += col_b.eq(path.column_window)
                with m.Case(Advance.WINDOW_ROW):
                    operands += [row_b.eq(path.row_window), col_a.eq(old_col0)]
            with m.Case(Advance.TILE):
                operands += [row_a.eq(old_row0), col_a.eq(old_col0), tile_b.eq(path.tile_rows)]
            with m.Case(Advance.COLUMN):
                operands += [row_a.eq(old_row0), tile_a.eq(0)]
                operands += [col_a.eq(old_col0), col_b.eq(path.column_step)]
            with m.Case(Advance.ROW):
                operands += [row_a.eq(old_row0), row_b.eq(path.row_step), tile_a.eq(0)]
                operands += [col_a.eq(0), col_b.eq(path.column_init)]
        return m
