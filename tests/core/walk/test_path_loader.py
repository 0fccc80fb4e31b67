# amaranth: UnusedElaboratable=no
"""PathLoader against the records of its table: how long they load, and when each is there."""

from __future__ import annotations

import pytest
from core.harness import Bench, ones

from lbq_hw import isa
from lbq_hw.config import CoreConfig
from lbq_hw.core.walk.path_loader import PathLoader
from lbq_hw.isa.record import SLICE
from lbq_hw.sim.models.programs import SHAPES, SMALL, Draw

OUTSIDE = SMALL.with_external()
CONFIGS = [*SHAPES, OUTSIDE]


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
    """Load layers of these first and last paths; what was seen, and when each was started.

    A layer starts `wait` cycles after the one before.
    """
    loader = PathLoader(config)
    bench = Bench(loader)
    bench.store(loader.table, slices(config, records))
    script: list[dict] = [{}]
    starts = []
    for first, last in layers:
        starts.append(len(script))
        script += [{"start": int(i == 0), "first": first, "last": last} for i in range(wait)]
    signals = {name: getattr(loader, name) for name in ("start", "first", "last")}
    bench.script(signals, script)
    told = {name: getattr(loader, name) for name in ("loading", "bad", "bad_at")}
    out = {"en": loader.o.en, "path": loader.o.path, "record": loader.o.record.as_value()}
    seen = bench.probe(**told, **out)
    bench.run(extra=2)
    return seen, starts


@pytest.mark.parametrize("shape", range(len(CONFIGS)))
@pytest.mark.parametrize("first", [0, 2])
def test_the_paths_of_a_layer_are_loaded_in_the_cycles_that_are_stated(
    shape: int, first: int
) -> None:
    config = CONFIGS[shape]
    records, parts = random_paths(config, shape), isa.PATH.slices(config)
    count, later = config.layer_paths, int(config.external > 0)
    wait = count * parts + 5 + later
    seen, [start] = load(config, records, [(first, first + count - 1)], wait)
    assert ones(seen["loading"]) == list(range(start + 1, start + 1 + count * parts + 1 + later))
    assert ones(seen["bad"]) == []
    complete = [start + (number + 1) * parts + 2 + later for number in range(count)]
    assert ones(seen["en"]) == complete
    for number, cycle in enumerate(complete):
        assert (seen["path"][cycle], seen["record"][cycle]) == (number, records[first + number])
    assert set(seen["record"][complete[-1] :]) == {records[first + count - 1]}


@pytest.mark.parametrize("config", [SMALL, OUTSIDE], ids=["inside", "outside"])
@pytest.mark.parametrize("number", [0, 1, 2])
def test_an_illegal_path_ends_the_load_at_once_and_is_told_until_the_next(
    number: int, config: CoreConfig
) -> None:
    records, parts = random_paths(config, 1), isa.PATH.slices(config)
    slot = isa.PATH.slots(config)["lanes"]
    records[3 + number] |= 15 << slot.offset
    later = int(config.external > 0)
    wait = 3 * parts + 6 + later
    seen, [_, start, again] = load(config, records, [(0, 2), (3, 5), (0, 0)], wait)
    told = start + 1 + (number + 1) * parts + 2 + later
    # The last record is there before it is looked at.
    until = min(told, start + 1 + 3 * parts + 1 + later)
    assert [c for c in ones(seen["loading"]) if start < c <= again] == list(range(start + 1, until))
    assert ones(seen["bad"]) == list(range(told, again + 1))
    assert set(seen["bad_at"][told : again + 1]) == {3 + number}
    # Nothing after it is loaded.
    assert len([cycle for cycle in ones(seen["en"]) if start < cycle <= again]) == number + 1
