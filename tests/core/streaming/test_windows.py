# amaranth: UnusedElaboratable=no
"""Blocks that find positions and fetch what their windows see, each against its contract."""

from __future__ import annotations

import random
from typing import Any

import pytest
from core.harness import Bench
from streams import stream_network

from lbq_hw.core.streaming.event_input import EventInput
from lbq_hw.core.streaming.finder import VisitFinder
from lbq_hw.core.streaming.row_fetch import RowFetch
from lbq_hw.core.streaming.tap_fetch import TapFetch
from lbq_hw.sim.ends import Hold, Script, Store
from lbq_hw.sim.models.traffic import Stall, never, stalls
from lbq_hw.streaming import records
from lbq_hw.streaming.compiler import compile_stream
from lbq_hw.streaming.config import StreamConfig
from lbq_hw.streaming.machine import layers_of
from lbq_hw.streaming.program import StreamProgram
from lbq_hw.streaming.records import StreamRegion

Fields = dict[str, int]
SEEDS = (2, 5, 11)


def drawn(seed: int) -> tuple[StreamProgram, Fields, list[Fields], list[int]]:
    """A program, the records of its layer with most windows, and maps with a few bits."""
    program = compile_stream(stream_network(seed), lanes=4, units=2, horizon=16)
    layer, paths = max(layers_of(program), key=lambda found: found[0]["rows_last"])
    source, c = random.Random(seed), program.config
    width = 1 << c.columns
    maps = [source.randrange(width) & source.randrange(width) for _ in range(c.map_rows)]
    return program, layer, paths, [m * (source.random() < 0.6) for m in maps]


def layer_and_paths(c: StreamConfig, paths: list[Fields]) -> list[Fields]:
    missing = c.layer_paths - len(paths)
    return [*paths, *[dict.fromkeys((f.name for f in records.path_fields(c)), 0)] * missing]


def late(seed: int, rate: float) -> Stall:
    return stalls(seed, rate) if rate else never


@pytest.mark.parametrize("rate", [0, 0.5])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_finder_offers_what_windows_and_the_hot_map_reach(seed: int, rate: float) -> None:
    program, layer, paths, maps = drawn(seed)
    layer, c = layer | {"always": 0, "readout": 0}, program.config
    source = random.Random(seed)
    hot = [source.randrange(1 << c.columns) & source.randrange(1 << c.columns) for _ in maps]
    bench = Bench(VisitFinder(c))
    block: Any = bench.block
    bench.add(Hold([(block.layer, layer), (block.paths, layer_and_paths(c, paths))]))
    bench.add(Script({"start": block.start}, [{"start": 1}]))
    bench.add(Store(block.maps, maps, 1))
    bench.add(Store(block.hot, hot, 1))
    expected, cycles = [], 0
    for y in range(layer["rows_last"] + 1):
        found, taken = hot[layer["map"] + y], 1
        if layer["leaks"] and y == 0:
            found |= 1  # the patrol is at row 0, column 0
        for path in paths:
            top = y * path["row_step"] + path["row_init"]
            rows = range(top, top + path["rows_last"] + 1)
            seen = [maps[path["map"] + r] for r in rows if path["row_low"] <= r <= path["row_high"]]
            joined = 0
            for bits in seen:
                joined |= bits
            taken += len(rows) + 1
            taken += max(path["left"], path["right"]) + 1 if joined else 0
            for x in range(layer["columns_last"] + 1):
                at = x * path["column_step"]
                near = range(max(0, at - path["left"]), at + path["right"] + 1)
                found |= any(joined >> n & 1 for n in near) << x
        columns = [x for x in range(layer["columns_last"] + 1) if found >> x & 1]
        ends = y == layer["rows_last"]
        row = [{"column": x, "real": 1, "row_end": 0, "layer_end": 0} for x in columns]
        row = row or [{"column": 0, "real": 0, "row_end": 0, "layer_end": 0}]
        row[-1] |= {"row_end": 1, "layer_end": int(ends)}
        expected += [(y, mark) for mark in row]
        cycles += taken + len(row)
    visits = bench.monitor(block.o, len(expected), stall=late(3, rate))
    bench.run()
    assert visits.payloads == [{"row": y, "mark": mark} for y, mark in expected]
    if not rate:
        assert visits.cycles[-1] == cycles


@pytest.mark.parametrize("rate", [0, 0.5])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_row_fetch_brings_the_bits_of_every_row(seed: int, rate: float) -> None:
    program, layer, paths, maps = drawn(seed)
    c, rows = program.config, list(program.image[StreamRegion.ROWS])
    source = random.Random(seed)
    given = [
        {
            "row": source.randrange(layer["rows_last"] + 1),
            "column": source.randrange(layer["columns_last"] + 1),
        }
        for _ in range(12)
    ]
    expected = []
    for place in given:
        for tile in range(layer["tiles_last"] + 1):
            for number, path in enumerate(paths):
                left = place["column"] * path["column_step"] + path["column_init"]
                for j in range(path["rows_last"] + 1):
                    row = place["row"] * path["row_step"] + path["row_init"] + j
                    inside = path["row_low"] <= row <= path["row_high"]
                    line = (maps[path["map"] + row] & path["mask"]) if inside else 0
                    width = path["window_last"] + 1
                    bits = [left + i >= 0 and line >> (left + i) & 1 for i in range(width)]
                    last = number == len(paths) - 1 and j == path["rows_last"]
                    expected.append(
                        {
                            "bits": sum(bit << i for i, bit in enumerate(bits)),
                            "base": rows[path["map"] + row] if inside else None,
                            "left": left,
                            "tap": path["tap"] + j * width,
                            "path": number,
                            "tile": tile,
                            "tile_row": tile * layer["tile_rows"],
                            "end": int(last),
                        }
                    )
    bench = Bench(RowFetch(c))
    block: Any = bench.block
    bench.add(Hold([(block.layer, layer), (block.paths, layer_and_paths(c, paths))]))
    bench.add(Store(block.maps, maps, 1))
    bench.add(Store(block.rows, rows, 1))
    bench.drive(block.i, given, stall=late(5, rate))
    taken = bench.monitor(block.o, len(expected), stall=late(6, rate))
    bench.run()
    for found, wanted in zip(taken.payloads, expected, strict=True):
        assert found == wanted | {
            "base": found["base"] if wanted["base"] is None else wanted["base"]
        }
    if not rate:
        assert taken.cycles == list(range(1, len(expected) + 1))


@pytest.mark.parametrize("rate", [0, 0.5])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_tap_fetch_brings_the_words_of_every_pixel(seed: int, rate: float) -> None:
    program, layer, paths, _ = drawn(seed)
    c, taps = program.config, list(program.image[StreamRegion.TAPS])
    source = random.Random(seed)
    levels = [source.randrange(1 << c.lanes) for _ in range(c.level_words)]
    given, expected, cycles = [], [], 0
    for _ in range(30):
        number = source.randrange(len(paths))
        path, tile = paths[number], source.randrange(layer["tiles_last"] + 1)
        width = path["window_last"] + 1
        row = {
            "bits": source.randrange(1 << width) * source.randrange(2),
            "base": 0,
            "left": source.randrange(2),
            "tap": path["tap"],
            "path": number,
            "tile": tile,
            "tile_row": tile * layer["tile_rows"],
            "end": source.randrange(2),
        }
        given.append(row)
        found = []
        for i in (i for i in range(width) if row["bits"] >> i & 1):
            entry = taps[row["tap"] + i]
            planes = path["planes_last"] + 1
            for word in [tile] if path["identity"] else range(path["words_last"] + 1):
                for plane in range(planes):
                    at = (row["left"] + i) * path["pixel"] + word * planes + plane
                    first = (entry >> 1) + row["tile_row"]
                    found.append(
                        {
                            "word": levels[at % len(levels)] * (entry & 1),
                            "row": first + (0 if path["identity"] else word * c.lanes),
                            "shift": plane + path["exponent"],
                            "identity": path["identity"],
                            "end": 0,
                        }
                    )
        if row["end"]:
            found = found or [{"word": 0, "row": None, "shift": None, "identity": None}]
            found[-1]["end"] = 1
        expected += found
        cycles += max(1, len(found))
    bench = Bench(TapFetch(c))
    block: Any = bench.block
    bench.add(Hold([(block.paths, layer_and_paths(c, paths))]))
    bench.add(Store(block.levels, levels, 1))
    bench.add(Store(block.taps, taps, 1))
    driver = bench.drive(block.i, given, stall=late(7, rate))
    taken = bench.monitor(block.o, len(expected), stall=late(8, rate))
    bench.run()
    for found, wanted in zip(taken.payloads, expected, strict=True):
        assert all(found[name] == value for name, value in wanted.items() if value is not None)
    if not rate:
        assert driver.cycles[-1] == cycles - max(1, len(found_of_last(given, expected)))


def found_of_last(given: list[Fields], expected: list[Any]) -> list[Any]:
    """Words of the last row that was given."""
    bits, end = given[-1]["bits"], given[-1]["end"]
    if not bits:
        return expected[-1:] if end else []
    count = 0
    for item in reversed(expected):
        if item["end"] and count:
            break
        count += 1
    return expected[-count:]


def test_an_event_sets_its_levels_and_its_bit() -> None:
    program, *_ = drawn(2)
    c, rows = program.config, list(program.image[StreamRegion.ROWS])
    bench = Bench(EventInput(c))
    block: Any = bench.block
    events = [(0, 1, 0, 1), (1, 0, c.input_planes - 1, 0), (1, 1, 0, 1)]
    bench.add(Store(block.maps, [0b10] * c.map_rows, 1))
    bench.add(Store(block.rows, rows, 1))
    driver = bench.drive(block.i, [records.event_word(*event) for event in events])
    seen = bench.probe(
        en=block.o_maps.en, addr=block.o_maps.addr, data=block.o_maps.data,
        word=block.o_levels.addr, value=block.o_levels.data,
    )  # fmt: skip
    bench.run(extra=1)
    for cycle, (x, y, plane, value) in zip(driver.cycles, events, strict=True):
        written = {name: history[cycle] for name, history in seen.items()}
        word = rows[y] + x * c.input_planes + plane
        bits = 0b10 | 1 << x
        assert written == {"en": 1, "addr": y, "data": bits, "word": word, "value": value}
    assert driver.cycles == [1, 4, 7]
