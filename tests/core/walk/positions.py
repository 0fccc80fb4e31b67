"""The positions of a layer, from its record alone: the loops of `lbq_hw.isa` as Python's loops."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from lbq_hw import isa
from lbq_hw.config import CoreConfig
from lbq_hw.core.walk.loops import Advance
from lbq_hw.sim.models.programs import draw_tables

_LOOPS = (
    Advance.ROW,
    Advance.COLUMN,
    Advance.TILE,
    Advance.WINDOW_ROW,
    Advance.WINDOW_COLUMN,
    Advance.TIMESTEP,
)


class Position(NamedTuple):
    """Counters of the loops, whether there is a step, and which ends of its loops it is."""

    row: int
    column: int
    tile: int
    wy: int
    wx: int
    t: int
    here: int
    first_t: int
    last_t: int
    pool_first: int
    pool_last: int

    @property
    def ends(self) -> tuple[int, ...]:
        return self.first_t, self.last_t, self.pool_first, self.pool_last


def _places(first: int, last: int, conv_last: int) -> list[tuple[int, int, int, int]]:
    """Along one side of a window: offset, whether it exists, whether it is the first, the last."""
    found = []
    for offset in range(last + 1):
        at = first + offset
        if offset and at > conv_last:
            break
        begins, ends = offset == 0 or at == 0, offset == last or at == conv_last
        found.append((offset, int(0 <= at <= conv_last), int(begins), int(ends)))
    return found


def positions(config: CoreConfig, layer: dict[str, int]) -> list[Position]:
    """All positions that are passed through, in order, with a step or without."""

    def visit() -> Iterator[Position]:
        for row in range(layer["rows_last"] + 1):
            y = layer["window_row_init"] + row * layer["window_row_step"]
            for column in range(layer["columns_last"] + 1):
                x = layer["window_column_init"] + column * layer["window_column_step"]
                for tile in range(layer["tiles_last"] + 1):
                    yield from window(row, column, tile, y, x)

    def window(row: int, column: int, tile: int, y: int, x: int) -> Iterator[Position]:
        if config.window == 1:
            rows = columns = [(0, 1, 1, 1)]
        else:
            rows = _places(y, layer["window_rows_last"], layer["conv_rows_last"])
            columns = _places(x, layer["window_columns_last"], layer["conv_columns_last"])
        last = 0 if layer["static"] else layer["time_last"]
        for wy, y_in, y_first, y_last in rows:
            for wx, x_in, x_first, x_last in columns if y_in else columns[:1]:
                for t in range(last + 1 if y_in and x_in else 1):
                    pool = (y_first & x_first, y_last & x_last)
                    ends = (int(t == 0), int(t == last), *pool)
                    yield Position(row, column, tile, wy, wx, t, y_in & x_in, *ends)

    return list(visit())


def advances(visited: list[Position]) -> list[Advance]:
    """How each position is reached, then END."""
    kinds = [Advance.START]
    for before, after in pairwise(visited):
        changed = [a != b for a, b in zip(before[:6], after[:6], strict=True)]
        kinds.append(_LOOPS[changed.index(True)])
    return [*kinds, Advance.END]


def random_layer(config: CoreConfig, seed: int) -> tuple[int, dict[str, int]]:
    """A legal LAYER record, packed and as its fields, of at most 200 positions."""
    while True:
        [word] = draw_tables(config, seed, layers=1)["layers"]
        layer = isa.LAYER.decode(config, word)
        if len(positions(config, layer)) <= 200:
            return word, layer
        seed += 1


def full_layer(config: CoreConfig) -> tuple[int, dict[str, int]]:
    """A layer that goes through all loops, with windows that reach beyond every side."""
    _, layer = random_layer(config, 0)
    layer |= {"rows_last": 1, "columns_last": 1, "tiles_last": 1, "time_last": 1, "static": 0}
    layer |= {"window_rows_last": 2, "window_columns_last": 2, "param": 0, "readout": 0}
    layer |= {"window_row_init": -1, "window_column_init": -1}
    layer |= {"window_row_step": 2, "window_column_step": 2}
    layer |= {"conv_rows_last": 2, "conv_columns_last": 2}
    layer |= {"planes_last": 1, "out_plane": 3, "out_frame": 6, "out_row": 2, "out_pitch": 16}
    return isa.LAYER.encode(config, layer), layer
