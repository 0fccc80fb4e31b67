# amaranth: UnusedElaboratable=no
"""RunFetch against sums of records and states: every run in its place, and the illegal ones."""

from __future__ import annotations

import random
from typing import Any

import pytest
from core.harness import Bench, ones
from core.walk.placed import (
    END,
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
from lbq_hw.config import CoreConfig, Profile
from lbq_hw.core.walk.run_fetch import RunFetch, SpreadRunFetch, TapeRunFetch, run_fetch
from lbq_hw.sim.models.programs import SHAPES, SMALL
from lbq_hw.sim.models.traffic import Stall, never, stalls

CONFIGS = [
    *SHAPES,
    SMALL.with_external(),
    SMALL.with_(profile=Profile.SPREAD),
]


def work(config: CoreConfig, seed: int, steps: int = 4) -> tuple[list[int], list[dict], list[dict]]:
    """Packed runs, segments to drive, and what must come out, each with its path."""
    source = random.Random(seed)
    tables = random_tables(config, seed)
    records = decoded(config, tables)
    given: list[dict] = []
    expected: list[dict] = []
    for _ in range(steps):
        segments = fetched(records, random_states(config, source, len(records["paths"])))
        given += segments
        for segment in segments:
            expected += placed(config, segment, records["runs"])
    return tables["runs"], given, expected


def run(
    config: CoreConfig, runs: list[int], given: list[dict], *,
    i_stall: Stall = never, o_stall: Stall = never, stop: int = 0, clear_at: int = 10_000,
) -> tuple[Any, Any, dict]:  # fmt: skip
    fetch = run_fetch(config)(config)
    bench = Bench(fetch)
    bench.store(fetch.runs, runs)
    paths = [given[0]["path"]]
    bench.hold((fetch.stop, stop), (fetch.scan_fields, only_path(config, paths)))
    driver = bench.drive(fetch.i, riding(config, given), stall=i_stall)
    taken = bench.monitor(fetch.o, stall=o_stall)
    seen = bench.probe(bad=fetch.bad, bad_at=fetch.bad_at, dropping=fetch.dropping)
    if clear_at < 10_000:
        bench.script({"clear": fetch.clear}, [{}] * clear_at + [{"clear": 1}, {}])
    bench.run(extra=20)
    return driver, taken, seen


@pytest.mark.parametrize("shape", range(len(CONFIGS)))
@pytest.mark.parametrize("seed", range(3))
def test_segments_become_their_runs_under_random_stalls(shape: int, seed: int) -> None:
    config = CONFIGS[shape]
    runs, given, expected = work(config, seed)
    i_stall, o_stall = stalls(seed, 0.3), stalls(seed + 1, 0.4)
    _, taken, seen = run(config, runs, given, i_stall=i_stall, o_stall=o_stall)
    assert only_ends(taken.payloads) == riding(config, expected)
    assert not any(seen["bad"] + seen["dropping"])


@pytest.mark.parametrize("shape", range(len(CONFIGS)))
def test_one_run_per_cycle_the_first_two_cycles_after_its_segment(shape: int) -> None:
    config = CONFIGS[shape]
    runs, given, expected = work(config, 7, steps=6)
    driver, taken, _ = run(config, runs, given)
    first = driver.cycles[0] + 2
    assert taken.cycles == list(range(first, first + len(expected)))
    lonely = run(config, runs, given[:1])
    assert lonely[1].cycles[0] == lonely[0].cycles[0] + 2


def spoiled(config: CoreConfig, seed: int) -> tuple[list[int], list[dict], list[dict], int]:
    """Work with an illegal run in the last segment of a step, what comes out, and which it is."""
    runs, given, expected = work(config, seed)
    at = given[-1]["path"]["run_last"]
    field = isa.RUN.slots(config)["weight"]
    number = next(
        i for i, item in enumerate(given)
        if item["path"]["run_first"] <= at <= item["path"]["run_last"]
    )  # fmt: skip
    records = [isa.RUN.decode(config, word) for word in runs]
    before = [run for item in given[:number] for run in placed(config, item, records)]
    before += placed(config, given[number], records)[:-1]
    assert not any(item["end"] for item in given[:number])
    runs = list(runs)
    runs[at] |= (1 << field.width) - 1 << field.offset
    return runs, given, before + [END] * sum(item["end"] for item in expected), at


@pytest.mark.parametrize("shape", range(len(CONFIGS)))
@pytest.mark.parametrize("rate", [0.0, 0.4])
def test_an_illegal_run_is_dropped_with_all_that_follow_but_ends(shape: int, rate: float) -> None:
    config = CONFIGS[shape]
    runs, given, expected, at = spoiled(config, shape)
    _, taken, seen = run(config, runs, given, o_stall=stalls(3, rate))
    assert only_ends(taken.payloads) == riding(config, expected)
    [bad] = ones(seen["bad"])
    assert seen["bad_at"][bad] == at
    assert ones(seen["dropping"]) == list(range(bad + 1, len(seen["dropping"])))


def test_a_stop_keeps_an_error_quiet_and_a_clear_ends_the_dropping() -> None:
    runs, given, _, _ = spoiled(SMALL, 0)
    _, _, seen = run(SMALL, runs, given, stop=1)
    assert not any(seen["bad"] + seen["dropping"])
    _, _, seen = run(SMALL, runs, given)
    [bad] = ones(seen["bad"])
    late = len(seen["bad"]) - 10
    _, _, seen = run(SMALL, runs, given, clear_at=late)
    assert ones(seen["dropping"]) == list(range(bad + 1, late + 1))


def test_a_core_has_the_fetch_of_its_profile() -> None:
    configs = (SMALL, SMALL.with_(profile=Profile.SPREAD), SMALL.with_external())
    assert [run_fetch(config) for config in configs] == [RunFetch, SpreadRunFetch, TapeRunFetch]
