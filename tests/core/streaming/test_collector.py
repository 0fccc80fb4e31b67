# amaranth: UnusedElaboratable=no
"""A collector against words and rows that are put together level by level."""

from __future__ import annotations

import random
from typing import Any

import pytest
from core.harness import Bench, ones
from core.streaming.layers import (
    CONFIGS,
    SMALL,
    Fields,
    layer_record,
    random_layer,
    random_rows,
    tiles_of,
)

from lbq_hw.core.streaming.collector import MapCollector
from lbq_hw.core.streaming.layouts import Beat
from lbq_hw.streaming.config import StreamConfig

Cycle = dict[str, Any]


def random_cycle(c: StreamConfig, source: random.Random) -> Cycle:
    """A cycle without a beat: nobody must look at what is there."""
    beat = {name: source.getrandbits(field.width) for name, field in Beat(c)}
    levels = [source.getrandbits(c.planes) for _ in range(c.units)]
    return {"start": 0, "valid": 0, "beat": beat, "levels": levels, "hot": 1}


def layer_cycles(c: StreamConfig, layer: Fields, source: random.Random, rate: float) -> list[Cycle]:
    """A start, then the beats of a layer: a cycle apart where sums are taken, or more."""
    cycles = [random_cycle(c, source) | {"start": 1}]
    for tile in tiles_of(c, layer, random_rows(layer, source)):
        quiet = source.random() < 0.5
        cycles.append(random_cycle(c, source))
        for beat in tile.beats:
            while source.random() < rate:
                cycles.append(random_cycle(c, source))
            cycle = random_cycle(c, source) | {"valid": 1, "beat": beat}
            if beat["valid"]:
                most = 1 if quiet else 2 << layer["planes_last"]
                cycle["levels"] = [source.randrange(most) for _ in range(c.units)]
                cycle["hot"] = int(source.random() < 0.2)
            cycles.append(cycle)
    return [cycle | {"layer": layer} for cycle in cycles]


class Expected:
    """What the cycles of some layers must bring."""

    def __init__(self, c: StreamConfig, cycles: list[Cycle]) -> None:
        self.levels: dict[int, Fields] = {}
        self.maps: dict[int, Fields] = {}
        self.done: list[int] = []
        lanes, row, fires, heats = [0] * c.lanes, 0, False, False
        filled = hot = 0
        for at, cycle in enumerate(cycles, 1):
            layer, beat = cycle["layer"], cycle["beat"]
            row = layer["map"] if cycle["start"] else row
            if not cycle["valid"]:
                continue
            if beat["valid"]:
                first = beat["group"] * c.units
                lanes[first : first + c.units] = cycle["levels"]
                fires, heats = fires or any(cycle["levels"]), heats or cycle["hot"]
            if beat["tile_end"]:
                for plane in range((layer["planes_last"] + 1) * (not layer["readout"])):
                    word = sum((s >> plane & 1) << lane for lane, s in enumerate(lanes))
                    self.levels[at + plane] = {"addr": beat["level"] + plane, "data": word}
                lanes = [0] * c.lanes
            if beat["visit_end"]:
                filled, hot = filled | fires << beat["column"], hot | heats << beat["column"]
                fires = heats = False
            if beat["row_end"]:
                if not layer["readout"]:
                    self.maps[at] = {"addr": row, "data": filled, "hot": hot}
                filled, hot, row = 0, 0, row + 1
            if beat["layer_end"]:
                self.done.append(at)


def run(c: StreamConfig, cycles: list[Cycle]) -> dict[str, list[int]]:
    bench = Bench(MapCollector(c))
    block: Any = bench.block
    bench.script(
        {
            "start": block.start, "layer": block.layer, "valid": block.i.valid,
            "beat": block.i.payload, "levels": block.levels, "hot": block.hot,
        },
        cycles,
    )  # fmt: skip
    seen = bench.probe(
        level_en=block.o_levels.en, level_addr=block.o_levels.addr, level_data=block.o_levels.data,
        map_en=block.o_maps.en, map_addr=block.o_maps.addr, map_data=block.o_maps.data,
        hot=block.hot_row, done=block.done,
    )  # fmt: skip
    bench.run()
    return seen


@pytest.mark.parametrize("rate", [0, 0.3])
@pytest.mark.parametrize("name", CONFIGS)
def test_planes_and_rows_are_written_in_the_cycles_after_their_last_beat(
    name: str, rate: float
) -> None:
    c, source = CONFIGS[name], random.Random(name)
    cycles = []
    for readout in (0, 0, 1, 0):
        cycles += layer_cycles(c, random_layer(c, source, readout=readout), source, rate)
        cycles += [cycles[-1] | random_cycle(c, source)] * c.planes
    expected, seen = Expected(c, cycles), run(c, cycles)
    assert ones(seen["done"]) == expected.done
    assert {
        cycle: {"addr": seen["level_addr"][cycle], "data": seen["level_data"][cycle]}
        for cycle in ones(seen["level_en"])
    } == expected.levels
    assert {
        cycle: {
            "addr": seen["map_addr"][cycle],
            "data": seen["map_data"][cycle],
            "hot": seen["hot"][cycle],
        }
        for cycle in ones(seen["map_en"])
    } == expected.maps


def test_a_tile_that_ends_before_the_planes_of_the_last_one_are_written_is_told() -> None:
    layer, source = layer_record(SMALL, planes_last=2), random.Random(1)
    quiet = random_cycle(SMALL, source) | {"layer": layer}
    beat = dict.fromkeys((name for name, _ in Beat(SMALL)), 0) | {"tile_end": 1}
    ends = quiet | {"valid": 1, "beat": beat}
    run(SMALL, [ends, quiet, quiet, ends, quiet])
    said = "^Assertion violated: a tile ends while another is written$"
    with pytest.raises(AssertionError, match=said):
        run(SMALL, [ends, quiet, ends, quiet])
