# amaranth: UnusedElaboratable=no
"""Blocks between the level words and the sums, each against a model of its contract."""

from __future__ import annotations

import random
from typing import Any

import pytest
from core.harness import Bench, Driver
from streams import stream_network

from lbq_hw.core.streaming.lanes import StreamLanes
from lbq_hw.core.streaming.scanner import WordScanner
from lbq_hw.sim.ends import Script
from lbq_hw.sim.models.traffic import never, stalls
from lbq_hw.streaming.compiler import compile_stream
from lbq_hw.streaming.config import StreamConfig


def config(identities: int) -> StreamConfig:
    """A core with identities, or without."""
    for seed in range(40):
        found = compile_stream(stream_network(seed), lanes=4, units=2, horizon=16).config
        if found.identities == identities and found.shifts and found.weight_rows > 32:
            return found
    raise AssertionError("no such network")


def words(c: StreamConfig, count: int, seed: int) -> list[dict[str, int]]:
    source = random.Random(seed)
    return [
        {
            "word": source.choice((0, source.randrange(1 << c.lanes))),
            "row": source.randrange(c.weight_rows - c.lanes),
            "shift": source.randrange(c.shifts + 1),
            "identity": source.randrange(1 + c.identities),
            "end": int(source.random() < 0.3 or number == count - 1),
        }
        for number in range(count)
    ]


def events_of(c: StreamConfig, word: dict[str, int]) -> list[dict[str, int]]:
    """The events of one word."""
    lanes, every = c.lanes if c.identities else 1, (1 << (c.lanes if c.identities else 1)) - 1
    bits = [i for i in range(c.lanes) if word["word"] >> i & 1]
    rows = [(word["row"] + i, every) for i in bits]
    if word["identity"] and bits:
        rows = [(word["row"], word["word"] & (1 << lanes) - 1)]
    if not rows and word["end"]:
        rows = [(word["row"], 0)]
    last = len(rows) - 1
    return [
        {"row": row, "shift": word["shift"], "mask": mask, "end": int(word["end"] and i == last)}
        for i, (row, mask) in enumerate(rows)
    ]


def without_row(event: dict[str, int]) -> dict[str, int]:
    """An event without lanes may have any row."""
    return event | {"row": event["row"] if event["mask"] else 0}


@pytest.mark.parametrize("identities", [0, 1])
@pytest.mark.parametrize("rate", [0, 0.5])
def test_a_scanner_makes_an_event_of_each_bit(identities: int, rate: float) -> None:
    c = config(identities)
    given = words(c, 40, 1)
    expected = [event for word in given for event in events_of(c, word)]
    bench = Bench(WordScanner(c))
    bench.add(Driver(bench.block.i, given, stalls(2, rate) if rate else never))
    taken = bench.monitor(bench.block.o, len(expected), stall=stalls(3, rate) if rate else never)
    bench.run()
    assert [without_row(e) for e in taken.payloads] == [without_row(e) for e in expected]
    if not rate:  # a cycle per event, and one per word of 0 that does not end a tile
        silent = [max(1, len(events_of(c, word))) for word in given]
        assert taken.cycles[-1] == sum(silent)


@pytest.mark.parametrize("identities", [0, 1])
@pytest.mark.parametrize("rate", [0, 0.5])
def test_lanes_add_shifted_weights_up_to_the_end_of_a_tile(identities: int, rate: float) -> None:
    c = config(identities)
    source, half = random.Random(4), 1 << (c.weight_bits - 1)
    table = [[source.randrange(-half, half) for _ in range(c.lanes)] for _ in range(c.weight_rows)]
    given = [e for word in words(c, 30, 5) for e in events_of(c, word | {"shift": 0})]
    bench = Bench(StreamLanes(c))
    block: Any = bench.block
    mask = (1 << c.weight_bits) - 1
    rows = [sum((w & mask) << c.weight_bits * i for i, w in enumerate(row)) for row in table]
    writes = [{"addr": i, "data": row, "en": 1} for i, row in enumerate(rows)]
    port = block.weights
    bench.add(Script({"addr": port.addr, "data": port.data, "en": port.en}, writes))
    wait = iter([True] * len(rows))
    late = stalls(6, rate) if rate else never
    bench.add(Driver(block.i, given, lambda: next(wait, False) or late()))
    expected, sums = [], [0] * c.lanes
    for event in given:
        lanes = event["mask"] if c.identities else event["mask"] * ((1 << c.lanes) - 1)
        for i in range(c.lanes):
            sums[i] += table[event["row"]][i] * (lanes >> i & 1)
        if event["end"]:
            expected.append(sums)
            sums = [0] * c.lanes
    taken = bench.monitor(block.o, len(expected), stall=stalls(7, rate) if rate else never)
    bench.run()
    assert taken.payloads == expected
