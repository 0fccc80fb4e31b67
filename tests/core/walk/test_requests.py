# amaranth: UnusedElaboratable=no
"""Requests against clipping and cutting in Python's integers, run by run."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

import pytest
from core.harness import Bench, ones

from lbq_hw.config import CoreConfig
from lbq_hw.core.payload import ScanKind
from lbq_hw.core.walk.places import RUN_FIELDS, paths_ride
from lbq_hw.core.walk.requests import Requests
from lbq_hw.sim.models.programs import SHAPES, SMALL, without_rest
from lbq_hw.sim.models.traffic import Stall, never, stalls

END = {"end": 1, "none": 1}
CLOSE = {"kind": ScanKind.END, "end": 1}


def random_run(source: random.Random, config: CoreConfig) -> dict[str, int]:
    """A run of which something may count, in the plane memory."""
    identity = int(source.random() < 0.3) * config.identities
    top_low, left_low = source.randint(0, 5), source.randint(0, 20)
    return {
        "end": int(source.random() < 0.3),
        "none": 0,
        "base": source.randrange(100),
        "top": source.randint(-6, 20),
        "left": source.randint(-20, 50),
        "length_last": source.choice((0, source.randrange(50))),
        "row_low": top_low,
        "row_high": top_low + source.randint(0, 15),
        "column_low": left_low,
        "column_high": left_low + source.randint(0, 40),
        "identity": identity,
        "lanes": source.randint(1, config.lanes) * config.identities,
        "number": source.randrange(config.param_tiles) % 3,
        "weight": source.randrange(config.weight_rows),
        "exponent": source.randint(0, config.exponents),
    }


def cut(config: CoreConfig, run: dict[str, int]) -> list[dict[str, Any]] | None:
    """The requests of a run; None where it reaches beyond the plane memory."""
    low = max(run["left"], run["column_low"])
    high = min(run["left"] + run["length_last"], run["column_high"])
    if not run["row_low"] <= run["top"] <= run["row_high"] or low > high:
        return []
    if run["identity"]:
        if low != run["left"]:
            return []
        low = high = run["left"] + run["number"] * config.lanes
    begin = run["base"] + run["top"] + low // config.word
    end = run["base"] + run["top"] + high // config.word
    if end >= config.plane_words:
        return None
    lo, hi = low % config.word, high % config.word
    if run["identity"]:
        hi = (lo + run["lanes"] - 1) % config.word
    size, found = config.summary, []
    for span in range(begin // size, end // size + 1):
        words = range(max(begin, span * size), min(end, span * size + size - 1) + 1)
        row = run["weight"]
        if not run["identity"]:
            row -= run["left"]
            row += (span * size - run["base"] - run["top"]) * config.word
        found.append(
            {
                "kind": ScanKind.IDENTITY if run["identity"] else ScanKind.CONV,
                "end": int(run["end"] and span == end // size),
                "span": span,
                "want": sum(1 << word % size for word in words),
                "lo": lo,
                "hi": hi,
                "lo_en": int(begin in words),
                "lo_at": begin % size,
                "hi_en": int(end in words),
                "hi_at": end % size,
                "row": row % (1 << config.weight_address_bits),
                "exponent": run["exponent"],
            }
        )
    return found


def model(config: CoreConfig, runs: Iterable[dict]) -> list[list[dict[str, Any]]]:
    """The requests of each run or end; after the first beyond the memory, of ends alone."""
    found, outside = [], False
    for run in runs:
        requests = [] if run["none"] else cut(config, run)
        outside |= requests is None
        requests = [] if outside or requests is None else requests
        found.append(requests or [CLOSE] * run["end"])
    return found


def random_runs(config: CoreConfig, seed: int, count: int = 60) -> list[dict]:
    """Runs that have one path in common where a layer has no more."""
    source = random.Random(seed)
    runs: list[dict] = []
    common: dict[str, int] = {}
    while len(runs) < count:
        run = random_run(source, config) | common
        if not paths_ride(config):
            common = {name: run[name] for name in RUN_FIELDS}
        if cut(config, run) is not None:
            runs.append(END if source.random() < 0.2 else run)
    return [*runs, END]


def payload(config: CoreConfig, run: dict[str, int]) -> dict[str, Any]:
    """A run or end as the stream has it: its path apart, and only where paths ride along."""
    members = {name: value for name, value in run.items() if name not in RUN_FIELDS}
    if run["none"] or not paths_ride(config):
        return members
    return members | {"path": {name: run[name] for name in RUN_FIELDS}}


def run(
    config: CoreConfig, runs: list[dict], *, i_stall: Stall = never, o_stall: Stall = never,
    stop: int = 0, clear_at: int | None = None,
) -> tuple[Any, Any, dict]:  # fmt: skip
    requests = Requests(config)
    bench = Bench(requests)
    bench.hold((requests.stop, stop))
    if not paths_ride(config):
        only = next(run for run in runs if not run["none"])
        bench.hold((requests.scan_fields, {name: only[name] for name in RUN_FIELDS}))
    if clear_at is not None:
        bench.script({"clear": requests.clear}, [{}] * clear_at + [{"clear": 1}])
    driver = bench.drive(requests.i, [payload(config, run) for run in runs], stall=i_stall)
    taken = bench.monitor(requests.o, stall=o_stall)
    seen = bench.probe(closed=requests.closed, outside=requests.outside)
    bench.run(extra=40)
    return driver, taken, seen


def flat(parts: list[list[dict]]) -> list[dict]:
    return [request for part in parts for request in part]


@pytest.mark.parametrize("shape", range(len(SHAPES)))
@pytest.mark.parametrize("seed", range(4))
def test_runs_are_clipped_and_cut_under_random_stalls(shape: int, seed: int) -> None:
    config = SHAPES[shape]
    runs = random_runs(config, seed)
    i_stall, o_stall = stalls(seed, 0.3), stalls(seed + 9, 0.4)
    _, taken, seen = run(config, runs, i_stall=i_stall, o_stall=o_stall)
    assert without_rest(taken.payloads) == flat(model(config, runs))
    ends = [c for c, p in zip(taken.cycles, taken.payloads, strict=True)
            if p["end"]]  # fmt: skip
    assert ones(seen["closed"]) == ends
    assert not any(seen["outside"])


@pytest.mark.parametrize("shape", range(len(SHAPES)))
def test_one_request_per_cycle_the_first_three_cycles_after_its_run(shape: int) -> None:
    config = SHAPES[shape]
    runs = random_runs(config, 3)
    driver, taken, _ = run(config, runs)
    parts = model(config, runs)
    assert any(len(part) == 0 for part in parts)
    cycle, expected = driver.cycles[0] + 3, []
    for part in parts:  # one that has no request takes a cycle, too
        expected += range(cycle, cycle + len(part))
        cycle += max(1, len(part))
    assert taken.cycles == expected


@pytest.mark.parametrize("shape", range(len(SHAPES)))
@pytest.mark.parametrize("rate", [0.0, 0.4])
def test_a_run_beyond_the_memory_is_dropped_with_all_that_follow(shape: int, rate: float) -> None:
    config = SHAPES[shape]
    runs = random_runs(config, 0)
    number = next(i for i in range(20, 60) if not runs[i]["none"] and cut(config, runs[i]))
    end = cut(config, runs[number])[-1]
    beyond = end["span"] * config.summary + end["hi_at"]
    farther = config.plane_words - beyond
    # The run before it reaches the last word that there is.
    inside = dict(runs[number], base=runs[number]["base"] + farther - 1)
    outside = dict(runs[number], base=runs[number]["base"] + farther)
    runs[number : number + 1] = [inside, outside]
    _, taken, seen = run(config, runs, o_stall=stalls(2, rate))
    assert without_rest(taken.payloads) == flat(model(config, runs))
    [first, *_] = told = ones(seen["outside"])
    assert told == list(range(first, len(seen["outside"])))
    if rate:
        return
    at = len(seen["outside"]) - 5
    _, _, seen = run(config, runs, clear_at=at)
    assert ones(seen["outside"]) == list(range(first, at + 1))


def test_a_stop_drops_all_runs_but_no_end() -> None:
    runs = random_runs(SMALL, 8)
    _, taken, _ = run(SMALL, runs, stop=1)
    assert without_rest(taken.payloads) == [CLOSE] * sum(run["end"] for run in runs)
