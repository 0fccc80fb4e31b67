# amaranth: UnusedElaboratable=no
"""Segments against the records of a layer: every step as its runs, errors in program order."""

from __future__ import annotations

import random
from typing import Any

import pytest
from core.harness import Bench
from core.walk.placed import (
    END,
    Store,
    decoded,
    fetched,
    only_ends,
    only_path,
    placed,
    random_states,
    random_tables,
    riding,
)

from lbq_hw import isa
from lbq_hw.config import CoreConfig
from lbq_hw.core.walk.segments import Segments
from lbq_hw.core.walk.tables import Table
from lbq_hw.sim.models.programs import SHAPES, SMALL, Tables, slices
from lbq_hw.sim.models.traffic import never, stalls


def run(
    config: CoreConfig, tables: Tables, states: list[list[dict]], *, rate: float = 0.0,
    baked: bool = True, stop_at: int | None = None,
) -> tuple[Store, Any, dict]:  # fmt: skip
    """Steps, one per list of states: when they opened, what came, what was seen."""
    init = {name: tables[name] for name in ("segments", "runs")} if baked else {}
    segments = Segments(config, **init)
    bench = Bench(segments)
    layer = isa.LAYER.decode(config, tables["layers"][0])
    paths = [isa.PATH.decode(config, word) for word in tables["paths"]]
    bench.hold(
        (segments.scan_fields, only_path(config, paths)),
        (segments.segment_first, layer["segment_first"]),
        (segments.segment_last, layer["segment_last"]),
        (segments.paths_last, layer["path_last"] - layer["path_first"]),
    )
    writes = [] if baked else slices(config, tables)
    bench.drive(segments.i_record, writes)
    bench.script({"begin": segments.begin}, [{}] * len(writes) + [{"begin": 1}])
    if stop_at is not None:
        bench.script({"stop": segments.stop}, [{}] * stop_at + [{"stop": 1}] * 500)
    stall = stalls(1, rate) if rate else never
    steps = bench.add(Store(segments, config, paths, states, after=len(writes) + 2, stall=stall))
    taken = bench.monitor(segments.o, stall=stalls(2, rate) if rate else never)
    seen = bench.probe(failed=segments.failed, error=segments.error, at=segments.error_at)
    bench.run(extra=120)
    return steps, taken, seen


def work(config: CoreConfig, seed: int, steps: int, segments: int = 1) -> tuple[Tables, list, list]:
    """Tables of a layer, states of its steps, and the runs of each step."""
    source = random.Random(seed)
    tables = random_tables(config, seed, segments)
    records = decoded(config, tables)
    states = [random_states(config, source, len(records["paths"])) for _ in range(steps)]
    expected = []
    for step in states:
        found = [placed(config, item, records["runs"]) for item in fetched(records, step)]
        expected.append(riding(config, [run for part in found for run in part]))
    return tables, states, expected


def flat(parts: list[list[dict]]) -> list[dict]:
    return [item for part in parts for item in part]


@pytest.mark.parametrize("shape", range(len(SHAPES)))
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("rate", [0.0, 0.4])
def test_every_step_has_the_runs_of_its_segments_the_last_with_its_end(
    shape: int, seed: int, rate: float
) -> None:
    config = SHAPES[shape]
    tables, states, expected = work(config, seed, steps=8)
    _, taken, seen = run(config, tables, states, rate=rate)
    assert only_ends(taken.payloads) == flat(expected)
    assert not any(seen["failed"] + seen["error"])


def test_records_that_are_written_are_used() -> None:
    tables, states, expected = work(SMALL, 4, steps=3)
    _, taken, _ = run(SMALL, tables, states, baked=False)
    assert only_ends(taken.payloads) == flat(expected)
    assert any(item["table"] == Table.RUNS for item in slices(SMALL, tables))


@pytest.mark.parametrize("shape", range(len(SHAPES)))
def test_one_run_per_cycle_the_first_five_cycles_after_open(shape: int) -> None:
    config = SHAPES[shape]
    tables, states, expected = work(config, 1, steps=8, segments=3)
    steps, taken, _ = run(config, tables, states)
    first = steps.opens[0] + 5
    assert taken.cycles == list(range(first, first + len(flat(expected))))


def broken(record: Any, words: list[int], number: int, field: str) -> list[int]:
    """Records of which one has an illegal field."""
    slot = record.slots(SMALL)[field]
    words = list(words)
    words[number] |= (1 << slot.width) - 1 << slot.offset
    return words


@pytest.mark.parametrize("rate", [0.0, 0.4])
@pytest.mark.parametrize("segment", [None, 0, 1, 2])
@pytest.mark.parametrize("run_of", [None, 0, 1, 2])
def test_the_first_error_in_program_order_is_told_and_only_ends_follow(
    rate: float, segment: int | None, run_of: int | None
) -> None:
    tables, states, expected = work(SMALL, 1, steps=4, segments=3)
    records = decoded(SMALL, tables)
    errors = []
    before: list[dict] = []
    for number, item in enumerate(fetched(records, states[0])):
        if number == segment and not errors:
            errors.append((isa.Error.SEGMENT, number))
        runs = placed(SMALL, item, records["runs"])
        path = item["path"]
        illegal = None if run_of is None else paths_run(records, run_of)
        if not errors and illegal in range(path["run_first"], path["run_last"] + 1):
            before += runs[: illegal - path["run_first"]]
            errors.append((isa.Error.RUN, illegal))
        before += [] if errors else runs
    if segment is not None:
        tables["segments"] = broken(isa.SEGMENT, tables["segments"], segment, "weight")
    if run_of is not None:
        tables["runs"] = broken(isa.RUN, tables["runs"], paths_run(records, run_of), "weight")
    _, taken, seen = run(SMALL, tables, states, rate=rate)
    if not errors:
        assert only_ends(taken.payloads) == flat(expected)
        return
    assert only_ends(taken.payloads) == before + [END] * 4
    assert seen["failed"][-1] == 1
    assert (seen["error"][-1], seen["at"][-1]) == errors[0]


def paths_run(records: dict, segment: int) -> int:
    """The last run of a segment's path."""
    return records["paths"][records["segments"][segment]["path"]]["run_last"]


def test_a_stop_leaves_the_ends_of_all_steps_and_no_error() -> None:
    tables, states, expected = work(SMALL, 1, steps=6, segments=3)
    _, taken, seen = run(SMALL, tables, states, stop_at=4)
    came = only_ends(taken.payloads)
    whole = came.index(END)
    assert 0 < whole < len(expected[0])
    assert came == expected[0][:whole] + [END] * 6
    assert not any(seen["error"])
