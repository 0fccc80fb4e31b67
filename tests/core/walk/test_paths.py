# amaranth: UnusedElaboratable=no
"""Paths against the records of its table: how long they load, and what is read afterwards."""

from __future__ import annotations

import pytest
from amaranth import Value
from core.harness import Bench, ones

from lbq_hw import isa
from lbq_hw.config import CoreConfig
from lbq_hw.core.walk.paths import MOVE_FIELDS, SCAN_FIELDS, Paths
from lbq_hw.isa.record import SLICE
from sim.models.programs import SHAPES, SMALL, Draw


def random_paths(config: CoreConfig, seed: int) -> list[int]:
    draw = Draw(config, seed)
    while len(draw.tables["paths"]) < config.paths:
        draw.tables["runs"].clear()
        draw.path()
    return draw.tables["paths"]


def slices(config: CoreConfig, records: list[int]) -> list[int]:
    parts = isa.PATH.slices(config)
    stride = 1 << (parts - 1).bit_length()
    return [record >> SLICE * i & (1 << SLICE) - 1 for record in records for i in range(stride)]


def load(
    config: CoreConfig, records: list[int], layers: list[tuple[int, int]], wait: int
) -> tuple[dict[str, list[int]], list[int]]:
    """Load layers of these first and last paths, then read all of the block; and when that began.

    A layer starts `wait` cycles after the one before.
    """
    paths = Paths(config)
    bench = Bench(paths)
    bench.store(paths.table, slices(config, records))
    script: list[dict] = [{}]
    starts = []
    for first, last in layers:
        starts.append(len(script))
        script += [{"start": int(i == 0), "first": first, "last": last} for i in range(wait)]
    begin = len(script)
    script += [{"en": 1, "addr": number} for number in range(config.layer_paths)]
    signals = {name: getattr(paths, name) for name in ("start", "first", "last")}
    bench.script(signals, script)
    for port in (paths.moves, paths.scans):
        bench.script({"en": port.en, "addr": port.addr}, script)
    views = {f"moves_{name}": Value.cast(paths.moves.data[name]) for name in MOVE_FIELDS}
    views |= {f"scans_{name}": Value.cast(paths.scans.data[name]) for name in SCAN_FIELDS}
    seen = bench.probe(loading=paths.loading, bad=paths.bad, bad_at=paths.bad_at, **views)
    bench.run(extra=2)
    return seen, [*starts, begin]


def loaded(seen: dict[str, list[int]], cycle: int) -> list[list[int]]:
    """What the block gives in a cycle: fields of `MOVE_FIELDS`, then of `SCAN_FIELDS`."""
    moves = [seen[f"moves_{name}"][cycle] for name in MOVE_FIELDS]
    return [moves, [seen[f"scans_{name}"][cycle] for name in SCAN_FIELDS]]


def whole(config: CoreConfig, record: int) -> list[list[int]]:
    values = isa.PATH.decode(config, record)
    return [[values[name] for name in MOVE_FIELDS], [values[name] for name in SCAN_FIELDS]]


@pytest.mark.parametrize("shape", range(len(SHAPES)))
@pytest.mark.parametrize("first", [0, 2])
def test_the_paths_of_a_layer_are_loaded_in_the_cycles_that_are_stated(
    shape: int, first: int
) -> None:
    config = SHAPES[shape]
    records, parts = random_paths(config, shape), isa.PATH.slices(config)
    count = config.layer_paths
    wait = count * parts + 5
    seen, [start, begin] = load(config, records, [(first, first + count - 1)], wait)
    assert ones(seen["loading"]) == list(range(start + 1, start + 1 + count * parts + 2))
    assert ones(seen["bad"]) == []
    for number in range(count):
        # In the cycle after the read; the only path is there without one.
        found = loaded(seen, begin + number + 1)
        assert found == whole(config, records[first + number])
    if count == 1:
        assert loaded(seen, start + parts + 3) == whole(config, records[first])
    else:
        assert loaded(seen, begin) != whole(config, records[first])


@pytest.mark.parametrize("number", [0, 1, 2])
def test_an_illegal_path_ends_the_load_at_once_and_is_told_until_the_next(number: int) -> None:
    records, parts = random_paths(SMALL, 1), isa.PATH.slices(SMALL)
    slot = isa.PATH.slots(SMALL)["lanes"]
    records[3 + number] |= 15 << slot.offset
    wait = 3 * parts + 6
    seen, starts = load(SMALL, records, [(0, 2), (3, 5), (0, 0)], wait)
    _, start, again, begin = starts
    told = start + 1 + (number + 1) * parts + 2
    assert [c for c in ones(seen["loading"]) if start < c <= again] == list(range(start + 1, told))
    assert ones(seen["bad"]) == list(range(told, again + 1))
    assert set(seen["bad_at"][told : again + 1]) == {3 + number}
    # Nothing after it was loaded: those of the layer before are still there.
    for left in range(number + 1, 3):
        assert loaded(seen, begin + left + 1) == whole(SMALL, records[left])
