"""How many planted faults the tests find: ``python -m sim.mutants --help``."""

from __future__ import annotations

import argparse
import importlib
import json
import math
import os
import resource
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lbq_hw.commands import ending
from lbq_hw.commands.arguments import positive
from lbq_hw.commands.parser import Parser
from lbq_hw.commands.progress import image_bar
from lbq_hw.sim.mutants import equivalence
from lbq_hw.sim.mutants.faults import Fault, plant
from lbq_hw.sim.mutants.reasons import reason
from lbq_hw.sim.mutants.suites import CORES, ROOT, Suite, suite
from lbq_hw.sim.sweep import engine
from lbq_hw.sim.verilator import BENCH, CACHE, TOP, build_bench
from lbq_hw.store import Store, key_of

_EPILOG = """
A fault that survives is equivalent, or a test is missing: its cell tells where. Only faults that
change nothing in any state of the core are called equivalent; the score leaves them out.

examples:
  python -m sim.mutants --count 60 --core standard
  python -m sim.mutants --count 500 --keep build/mutants.jsonl --json
"""
MOST_SECONDS = 600
"""Of a processor, for a core without a fault in all tests."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """A fault to look for in the build of a core, by one of its suite's searches."""

    core: str
    search: int
    program: Path
    fault: int


@dataclass(frozen=True, kw_only=True)
class Found:
    """What has found a fault, or None."""

    job: Job
    by: str | None


def look(job: Job) -> Found:
    search = suite(job.core).searches[job.search]
    return Found(job=job, by=search.finds(job.program, job.fault))


def examine(core: str, store: Store, *, count: int, seed: int, workers: int) -> dict[str, Any]:
    """Plant faults in a core and look for each that has no result in the store yet. What one search
    finds, the next ones do not look for.
    """
    looking = suite(core)
    text, faults = plant(looking.stand, count=count, seed=seed)
    found: dict[int, str] = {}
    for number, search in enumerate(looking.searches):
        sources = [path.read_text("utf-8") for path in (BENCH, *search.sources)]
        left = [fault for fault in faults if fault.number not in found]
        keys = {fault.number: key_of(core, text, sources, fault.number) for fault in left}
        if waiting := [fault for fault in left if keys[fault.number] not in store]:
            _look_for(waiting, looking, number, text, keys, store, workers)
        found |= {fault: store[key] for fault, key in keys.items() if store[key] is not None}
    alive = [fault for fault in faults if fault.number not in found]
    how = Path(equivalence.__file__).read_text("utf-8")
    shown = {fault.number: key_of(how, core, text, fault.number) for fault in alive}
    unknown = [fault for fault in alive if shown[fault.number] not in store]
    with image_bar() as bar:
        task = bar.add_task(f"equivalent, {core}", total=len(unknown))
        proven = equivalence.equivalent(looking.stand, unknown, workers=workers)
        for fault, equal in zip(unknown, proven, strict=True):
            store.add(shown[fault.number], equal)
            bar.advance(task)
    same = {number for number, key in shown.items() if store[key]}
    told = [_told(fault, found.get(fault.number), same) for fault in faults]
    return {"core": core, **_counted(told), "faults": told}


def _look_for(
    faults: Sequence[Fault],
    looking: Suite,
    number: int,
    text: str,
    keys: Mapping[int, str],
    store: Store,
    workers: int,
) -> None:
    """Build the core with its faults, look for each by a search of the suite, and store the result
    under its key.
    """
    with tempfile.TemporaryDirectory() as folder:
        # Tests find the program by the name of its core.
        program = Path(folder) / looking.stand.config.digest
        built = build_bench(text, BENCH, top=TOP, cache=ROOT / CACHE).resolve()
        _limit(program, built, MOST_SECONDS)
        began = _seconds()
        if (broken := looking.searches[number].finds(program, 0)) is not None:
            raise SystemExit(f"error: the {looking.name} core fails without a fault ({broken})")
        # With some faults the core never answers the host.
        _limit(program, built, math.ceil(5 + 3 * (_seconds() - began)))
        jobs = [
            Job(core=looking.name, search=number, program=program, fault=one.number)
            for one in faults
        ]
        with image_bar() as bar:
            task = bar.add_task(f"faults, {looking.name}", total=len(faults))
            for done in engine.results(look, jobs, workers=workers):
                store.add(keys[done.job.fault], done.by)
                bar.advance(task)


def _limit(program: Path, built: Path, seconds: int) -> None:
    """Make a program that runs another and ends it after some seconds of a processor's time."""
    program.write_text(f'#!/bin/sh\nulimit -t {seconds}\nexec "{built}" "$@"\n', encoding="utf-8")
    program.chmod(0o755)


def _seconds() -> float:
    """Processor time of all processes that this one has started and that have ended."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime


def _told(fault: Fault, by: str | None, same: set[int]) -> dict[str, Any]:
    told = asdict(fault)
    del told["command"]
    survived = by is None and fault.number not in same
    return told | {
        "killed_by": by and by.splitlines()[0],  # a simulator's next lines have paths
        "equivalent": fault.number in same,
        "reason": reason(fault) if survived else None,
    }


def _counted(faults: Sequence[dict[str, Any]]) -> dict[str, Any]:
    killed = sum(fault["killed_by"] is not None for fault in faults)
    same = sum(fault["equivalent"] for fault in faults)
    return {
        "mutants": len(faults),
        "killed": killed,
        "equivalent": same,
        "survived": len(faults) - killed - same,
        "score": killed / (len(faults) - same),
    }


def main(argv: list[str] | None = None) -> int:
    parser = Parser(
        prog="python -m lbq_hw.sim.mutants",
        description="Plant faults in cores and count those that networks and tests find.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--count", type=positive, default=60, metavar="N",
                        help="faults, shared among the cores (60)")  # fmt: skip
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="of the choice (1)")
    parser.add_argument("--core", choices=CORES, action="append",
                        help="may be repeated (all of them)")  # fmt: skip
    parser.add_argument("--keep", type=Path, metavar="FILE",
                        help="of results: a run that was ended goes on from there")  # fmt: skip
    parser.add_argument("--workers", type=positive, default=os.cpu_count(), metavar="N",
                        help="processes (one per processor)")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print one JSON object, no table")
    args = parser.parse_args(argv)
    if not (ROOT / "tests" / "simulators.py").is_file():
        parser.error("the tests are missing: call it in a clone of the repository")
    with tempfile.TemporaryDirectory() as folder:
        try:
            store = Store(args.keep or Path(folder) / "results.jsonl")
        except ValueError as error:
            parser.error(str(error))
        facts = _examined(args, store)
    print(json.dumps(facts) if args.json else _spoken(facts))
    return 0


def _examined(args: argparse.Namespace, store: Store) -> dict[str, Any]:
    """The results of all cores that are asked for."""
    cores = args.core or CORES
    shares = [args.count // len(cores) + (i < args.count % len(cores)) for i in range(len(cores))]
    runs = [
        examine(core, store, count=share, seed=args.seed, workers=args.workers)
        for core, share in zip(cores, shares, strict=True)
        if share
    ]
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "seed": args.seed,
        **_counted([fault for run in runs for fault in run["faults"]]),
        "cores": runs,
    }


def _spoken(facts: dict[str, Any]) -> str:
    lines = [
        f"{run['core']}: {run['killed']} of {run['mutants']} faults are found, "
        f"{run['equivalent']} change nothing: {100 * run['score']:.1f} %"
        for run in (*facts["cores"], facts | {"core": "all"})
    ]
    for run in facts["cores"]:
        for fault in run["faults"]:
            if fault["killed_by"] is None and not fault["equivalent"]:
                where = fault["wire"] or f"{fault['cell']}.{fault['port']}[{fault['bit']}]"
                said = fault["reason"] or "not explained"
                lines.append(
                    f"  {run['core']}: {fault['mode']} of {where}, {fault['source']}: {said}"
                )
    return "\n".join(lines)


if __name__ == "__main__":  # hands over to the module of the full name
    sys.exit(ending.run(importlib.import_module("lbq_hw.sim.mutants.__main__").main))
