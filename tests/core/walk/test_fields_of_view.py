# amaranth: UnusedElaboratable=no
"""FieldsOfView against products in Python: where each path looks at every position of a layer."""

from __future__ import annotations

import random
from typing import Any

import pytest
from amaranth import Value
from core.harness import Bench
from core.walk.positions import Position, advances, full_layer, positions, random_layer

from lbq_hw import isa
from lbq_hw.config import CoreConfig
from lbq_hw.core.walk.fields_of_view import FieldsOfView
from lbq_hw.core.walk.path_store import path_store
from lbq_hw.core.walk.places import MOVE_FIELDS
from lbq_hw.sim.models.programs import SHAPES, SMALL, Draw

NAMES = ("row", "col", "frame", "tile")


def random_paths(config: CoreConfig, seed: int, count: int) -> list[dict[str, int]]:
    draw = Draw(config, seed)
    words = [draw.tables["paths"][draw.path()] for _ in range(count)]
    return [isa.PATH.decode(config, word) for word in words]


def state(config: CoreConfig, path: dict[str, int], at: Position) -> tuple[int, ...]:
    """Where the field of view of a path is at a position."""
    row = path["row_init"] + at.row * path["row_step"] + at.wy * path["row_window"]
    col = path["column_init"] + at.column * path["column_step"] + at.wx * path["column_window"]
    tile = at.tile * path["tile_rows"] % (1 << config.weight_address_bits)
    return row, col, at.t * path["frame_words"], tile


class Paths:
    """Answers a `MovePort` from a list, in the cycle after a path was named.

    Where the block relies on it, the answer stays, and what is done shows at once; otherwise noise
    follows it.
    """

    def __init__(self, fields: FieldsOfView, paths: list[dict[str, int]], holds: bool) -> None:
        self.port, self.paths, self.holds = fields.paths, paths, holds
        port = fields.paths
        self.samples = [port.en, port.path, port.done, port.done_path, port.new.as_value()]
        self.current, self.old = [0] * len(paths), 0
        self.noise = random.Random(3)
        self.named: int | None = None
        self.done = True

    def set(self, ctx: Any) -> None:
        moves, old = self.port.move_fields, self.port.old
        if self.named is None:
            ctx.set(moves.as_value(), self.noise.getrandbits(moves.shape().size))
            ctx.set(old.as_value(), self.noise.getrandbits(old.shape().size))
            return
        ctx.set(moves, {name: self.paths[self.named][name] for name in MOVE_FIELDS})
        ctx.set(old.as_value(), self.old)

    def see(self, cycle: int, en: int, path: int, done: int, done_path: int, new: int) -> None:
        del cycle
        if en:
            self.named, self.old = path, self.current[path]
        elif not self.holds:
            self.named = None
        if done:
            self.current[done_path] = new
            self.old = new if self.holds else self.old


def run(
    config: CoreConfig, visited: list[Position], paths: list[dict[str, int]], period: int
) -> tuple[list[int], dict[str, Any]]:
    """Name all paths at every position, one per cycle; cycles of the first, and what was seen."""
    holds = path_store(config).holds
    fields = FieldsOfView(config, holds=holds)
    bench = Bench(fields)
    bench.add(Paths(fields, paths, holds))
    script: list[dict] = []
    for kind in advances(visited)[:-1]:
        for number in range(period):
            step = {"go": 1, "path": number} if number < len(paths) else {}
            script.append(step | {"kind": kind.value})
    signals = {"go": fields.go, "path": fields.path, "kind": Value.cast(fields.kind)}
    bench.script(signals, script)
    values = {name: Value.cast(fields.paths.new[name]) for name in NAMES}
    seen = bench.probe(done=fields.paths.done, done_path=fields.paths.done_path, **values)
    bench.run(extra=5)
    return [period * i for i in range(len(visited))], seen


@pytest.mark.parametrize("shape", range(len(SHAPES)))
@pytest.mark.parametrize("seed", range(3))
def test_every_path_is_where_the_products_say_two_cycles_after_it_is_named(
    shape: int, seed: int
) -> None:
    config = SHAPES[shape]
    visited = positions(config, random_layer(config, seed)[1])
    paths = random_paths(config, seed, min(2, config.layer_paths))
    # The next advance of a path comes three cycles after the one before.
    starts, seen = run(config, visited, paths, len(paths) + 2)
    done = [start + number + 2 for start in starts for number in range(len(paths))]
    assert [cycle for cycle, bit in enumerate(seen["done"]) if bit] == done
    assert [seen["done_path"][cycle] for cycle in done] == list(range(len(paths))) * len(visited)
    found = [tuple(seen[name][cycle] for name in NAMES) for cycle in done]
    assert found == [state(config, path, at) for at in visited for path in paths]


@pytest.mark.parametrize("config", [SMALL, SHAPES[2].with_(channels=40)], ids=["three", "one"])
def test_an_advance_two_cycles_after_the_one_before_would_be_too_soon(config: CoreConfig) -> None:
    visited = positions(config, full_layer(config)[1])
    [path] = random_paths(config, 3, 1)
    expected = [state(config, path, at) for at in visited]
    for period in (2, 3):
        starts, seen = run(config, visited, [path], period)
        found = [tuple(seen[name][start + 2] for name in NAMES) for start in starts]
        assert (found == expected) == (period == 3)


def test_a_frame_beyond_the_memory_stays_beyond_it() -> None:
    visited = positions(SMALL, full_layer(SMALL)[1] | {"time_last": 4})
    [path] = random_paths(SMALL, 1, 1)
    path["frame_words"] = SMALL.plane_words
    starts, seen = run(SMALL, visited, [path], 3)
    frames = [seen["frame"][start + 2] for start in starts]
    assert [frame >= SMALL.plane_words for frame in frames] == [at.t > 0 for at in visited]
    assert max(at.t for at in visited) == 4
