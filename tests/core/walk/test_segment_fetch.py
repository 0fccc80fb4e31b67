# amaranth: UnusedElaboratable=no
"""SegmentFetch against the records of a layer: segments with their paths and states, in order."""

from __future__ import annotations

import random
from typing import Any

import pytest
from amaranth import Elaboratable, Module, Signal
from core.harness import Bench, ones
from core.walk.placed import (
    END,
    Store,
    decoded,
    fetched,
    only_ends,
    random_states,
    random_tables,
    riding,
)

from lbq_hw import isa
from lbq_hw.config import CoreConfig
from lbq_hw.core.walk.segment_fetch import SegmentFetch
from lbq_hw.sim.models.programs import SHAPES, SMALL, Tables
from lbq_hw.sim.models.traffic import Stall, never, stalls


class Closed(Elaboratable):
    """The block with its own error, or one from behind, on ``failed``, as `Segments` has it."""

    def __init__(self, config: CoreConfig) -> None:
        self.fetch = SegmentFetch(config)
        self.stop = Signal()

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        m.submodules.fetch = self.fetch
        m.d.comb += self.fetch.failed.eq(self.fetch.dropping | self.stop)
        return m


def run(
    config: CoreConfig, tables: Tables, states: list[list[dict]], *, stall: Stall = never,
    stop_at: int | None = None, clear_at: int | None = None,
) -> tuple[Any, Any, dict]:  # fmt: skip
    """Steps, one per list of states: when they opened, what came, what was seen."""
    block = Closed(config)
    fetch = block.fetch
    bench = Bench(block)
    layer = isa.LAYER.decode(config, tables["layers"][0])
    paths = [isa.PATH.decode(config, word) for word in tables["paths"]]
    bench.store(fetch.segments, tables["segments"])
    bench.hold(
        (fetch.segment_first, layer["segment_first"]),
        (fetch.segment_last, layer["segment_last"]),
        (fetch.paths_last, layer["path_last"] - layer["path_first"]),
    )
    bench.script({"begin": fetch.begin}, [{"begin": 1}])
    if stop_at is not None:
        bench.script({"stop": block.stop}, [{}] * stop_at + [{"stop": 1}] * 200)
    if clear_at is not None:
        bench.script({"clear": fetch.clear}, [{}] * clear_at + [{"clear": 1}])
    steps = bench.add(Store(fetch, config, paths, states, after=3))
    taken = bench.monitor(fetch.o, stall=stall)
    seen = bench.probe(bad=fetch.bad, bad_at=fetch.bad_at, dropping=fetch.dropping)
    bench.run(extra=20)
    return steps, taken, seen


def work(config: CoreConfig, seed: int, steps: int, segments: int = 1) -> tuple[Tables, list, list]:
    """Tables of a layer, states of its steps, and what must come."""
    source = random.Random(seed)
    tables = random_tables(config, seed, segments)
    records = decoded(config, tables)
    states = [random_states(config, source, len(records["paths"])) for _ in range(steps)]
    expected = [segment for step in states for segment in fetched(records, step)]
    return tables, states, riding(config, expected)


@pytest.mark.parametrize("shape", range(len(SHAPES)))
@pytest.mark.parametrize("seed", range(4))
def test_every_step_has_the_segments_of_the_layer_the_last_with_its_end(
    shape: int, seed: int
) -> None:
    config = SHAPES[shape]
    tables, states, expected = work(config, seed, steps=12)
    _, taken, seen = run(config, tables, states, stall=stalls(seed, 0.4))
    assert only_ends(taken.payloads) == expected
    assert not any(seen["bad"] + seen["dropping"])


def test_one_segment_per_cycle_the_first_three_cycles_after_open() -> None:
    tables, states, expected = work(SMALL, 0, steps=6, segments=3)
    assert len(expected) == 6 * 3
    steps, taken, _ = run(SMALL, tables, states)
    first = steps.opens[0] + 3
    assert taken.cycles == list(range(first, first + len(expected)))


def with_fields(tables: Tables, number: int, **changes: int) -> Tables:
    """Tables with other fields of a segment, legal or not."""
    segments = list(tables["segments"])
    for name, value in changes.items():
        slot = isa.SEGMENT.slots(SMALL)[name]
        segments[number] &= ~((1 << slot.width) - 1 << slot.offset)
        segments[number] |= value << slot.offset
    return tables | {"segments": segments}


def level(steps: int) -> tuple[Tables, list, list]:
    """Three segments of one exponent."""
    tables, states, expected = work(SMALL, 0, steps=steps, segments=3)
    for number in range(3):
        tables = with_fields(tables, number, exponent=9)
    return tables, states, [item | {"exponent": 9} for item in expected]


@pytest.mark.parametrize(
    ("number", "change"),
    [
        (0, {"weight": SMALL.weight_rows}),
        (2, {"weight": SMALL.weight_rows}),
        (0, {"path": 3}),
        (1, {"path": 2}),  # which exists, but not in this layer
        (1, {"exponent": 10}),
        (2, {"exponent": 31}),
    ],
    ids=str,
)
@pytest.mark.parametrize("rate", [0.0, 0.4])
def test_an_illegal_segment_is_dropped_with_all_that_follow_but_ends(
    number: int, change: dict, rate: float
) -> None:
    tables, states, expected = level(4)
    assert len(tables["paths"]) == 2
    tables = with_fields(tables, number, **change)
    _, taken, seen = run(SMALL, tables, states, stall=stalls(1, rate))
    assert only_ends(taken.payloads) == expected[:number] + [END] * 4
    [bad] = ones(seen["bad"])
    assert seen["bad_at"][bad] == number
    assert ones(seen["dropping"]) == list(range(bad + 1, len(seen["dropping"])))
    at = len(seen["dropping"]) - 5
    _, _, seen = run(SMALL, tables, states, stall=stalls(1, rate), clear_at=at)
    assert ones(seen["dropping"]) == list(range(bad + 1, at + 1))


def test_a_step_may_begin_with_a_larger_exponent_than_the_one_before_ended_with() -> None:
    tables, states, expected = level(4)
    tables = with_fields(tables, 0, exponent=10)
    for number in range(0, len(expected), 3):
        expected[number] = expected[number] | {"exponent": 10}
    _, taken, seen = run(SMALL, tables, states)
    assert only_ends(taken.payloads) == expected
    assert not any(seen["bad"])


def test_an_error_behind_leaves_only_ends() -> None:
    tables, states, expected = work(SMALL, 0, steps=6, segments=3)
    illegal = with_fields(tables, 0, weight=SMALL.weight_rows)
    _, taken, seen = run(SMALL, illegal, states, stop_at=0)
    assert only_ends(taken.payloads) == [END] * 6
    assert not any(seen["bad"] + seen["dropping"])
    _, taken, _ = run(SMALL, tables, states, stop_at=6)
    came = only_ends(taken.payloads)
    whole = came.index(END)
    assert (came[:whole], came.count(END)) == (expected[:whole], 6)
    assert 0 < whole < 3
