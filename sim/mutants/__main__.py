"""How many planted faults the tests find: ``python -m sim.mutants --help``."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lbq_hw.commands import ending
from lbq_hw.commands.arguments import positive
from lbq_hw.commands.parser import Parser
from lbq_hw.commands.progress import image_bar
from lbq_hw.sim.mutants.equivalence import equivalent
from lbq_hw.sim.mutants.faults import Fault, plant
from lbq_hw.sim.mutants.suites import CORES, ROOT, suite
from lbq_hw.sim.sweep import engine
from lbq_hw.sim.verilator import BENCH, CACHE, TOP, build_bench

_EPILOG = """
A fault that survives is equivalent, or a test is missing: its cell tells where. Only faults that
change nothing in any state of the core are called equivalent; the score leaves them out.

examples:
  python -m sim.mutants --count 60 --core standard
  python -m sim.mutants --count 500 --json
"""


@dataclass(frozen=True, kw_only=True)
class Job:
    """A fault to look for in the build of a core."""

    core: str
    program: Path
    fault: int


@dataclass(frozen=True, kw_only=True)
class Found:
    """What has found a fault, or None."""

    job: Job
    by: str | None


def look(job: Job) -> Found:
    return Found(job=job, by=suite(job.core).finds(job.program, job.fault))


def examine(core: str, *, count: int, seed: int, workers: int) -> dict[str, Any]:
    """Plant faults in a core and look for each."""
    looking = suite(core)
    text, faults = plant(looking.stand, count=count, seed=seed)
    with tempfile.TemporaryDirectory() as folder:
        # Tests find the program by the name of its core.
        program = Path(folder) / looking.stand.config.digest
        program.symlink_to(build_bench(text, BENCH, top=TOP, cache=ROOT / CACHE).resolve())
        if (broken := looking.finds(program, 0)) is not None:
            raise SystemExit(f"error: the {core} core fails without a fault ({broken})")
        found: dict[int, str | None] = {}
        jobs = [Job(core=core, program=program, fault=fault.number) for fault in faults]
        with image_bar() as bar:
            task = bar.add_task(f"faults, {core}", total=len(faults))
            for done in engine.results(look, jobs, workers=workers):
                found[done.job.fault] = done.by
                bar.advance(task)
    alive = [fault for fault in faults if found[fault.number] is None]
    proven = zip(alive, equivalent(looking.stand, alive), strict=True)
    same = {fault.number for fault, equal in proven if equal}
    told = [_told(fault, found[fault.number], same) for fault in faults]
    return {"core": core, **_counted(told), "faults": told}


def _told(fault: Fault, by: str | None, same: set[int]) -> dict[str, Any]:
    told = asdict(fault)
    del told["command"]
    return told | {"killed_by": by, "equivalent": fault.number in same}


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
    parser.add_argument("--workers", type=positive, default=os.cpu_count(), metavar="N",
                        help="processes (one per processor)")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print one JSON object, no table")
    args = parser.parse_args(argv)
    if not (ROOT / "tests" / "simulators.py").is_file():
        parser.error("the tests are missing: call it in a clone of the repository")
    cores = args.core or CORES
    shares = [args.count // len(cores) + (i < args.count % len(cores)) for i in range(len(cores))]
    runs = [
        examine(core, count=share, seed=args.seed, workers=args.workers)
        for core, share in zip(cores, shares, strict=True)
        if share
    ]
    facts = {
        "date": datetime.now(UTC).date().isoformat(),
        "seed": args.seed,
        **_counted([fault for run in runs for fault in run["faults"]]),
        "cores": runs,
    }
    print(json.dumps(facts) if args.json else _spoken(facts))
    return 0


def _spoken(facts: dict[str, Any]) -> str:
    lines = [
        f"{run['core']}: {run['killed']} of {run['mutants']} faults are found, "
        f"{run['equivalent']} change nothing: {100 * run['score']:.1f} %"
        for run in (*facts["cores"], facts | {"core": "all"})
    ]
    for run in facts["cores"]:
        for fault in run["faults"]:
            if fault["killed_by"] is None and not fault["equivalent"]:
                where = f"{fault['cell']}.{fault['port']}[{fault['bit']}]"
                lines.append(f"  {run['core']}: {fault['mode']} of {where} {fault['source']}")
    return "\n".join(lines)


if __name__ == "__main__":  # hands over to the module of the full name
    sys.exit(ending.run(importlib.import_module("lbq_hw.sim.mutants.__main__").main))
