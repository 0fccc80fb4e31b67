"""Every testbench on every simulator that can run it: ``python -m sim.regression --help``."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

from rich.console import Console

from lbq_hw.commands import ending
from lbq_hw.commands.parser import Parser
from lbq_hw.sim import reports
from lbq_hw.sim.benches import BENCHES
from lbq_hw.sim.benches.harness import Settings
from lbq_hw.sim.reports import Result
from lbq_hw.sim.runner import CACHE, LIMIT, Run, compile_design, missing, simulate
from lbq_hw.sim.verilog import SimulatorError, convert

SIMULATORS = ("icarus", "verilator")
WAVES = Path("build/waves")
"""Where waves of failures go."""


def block(bench: str, shape: int) -> Any:
    """The design that a testbench drives."""
    return _module(bench).block(shape)


def shapes(bench: str) -> range:
    """Numbers of a testbench's shapes."""
    return range(len(_module(bench).SHAPES))


def run_bench(
    bench: str,
    *,
    simulator: str = "icarus",
    shape: int = 0,
    seed: int = 1,
    length: int = 1,
    spoil: bool = False,
    waves: Path | None = None,
    limit: float = LIMIT,
    cache: Path = CACHE,
) -> Result:
    """Build the block of a testbench and run all its tests, for `limit` seconds at most.

    See `Settings` for what they are told.
    """
    began = time.perf_counter()
    text = convert(block(bench, shape), name=bench)
    design = compile_design(
        text, top=bench, simulator=simulator, waves=waves is not None, cache=cache
    )
    settings = Settings(shape=shape, length=length, spoil=spoil)
    run = simulate(
        design,
        f"lbq_hw.sim.benches.{bench}",
        seed=seed,
        variables=settings.to_env(),
        waves=waves,
        limit=limit,
    )
    seconds = time.perf_counter() - began
    return Result(
        bench=bench, shape=shape, simulator=simulator, run=run, seconds=seconds, waves=waves
    )


def main(argv: list[str] | None = None) -> int:
    parser = Parser(
        prog="python -m sim.regression",
        description="Run the testbenches under cocotb; ends with exit code 1 where a test fails, 2 "
        "where a simulator cannot run one.",
    )
    parser.add_argument("bench", nargs="*", metavar="BENCH", help=f"of {', '.join(BENCHES)} (all)")
    parser.add_argument("--simulator", choices=SIMULATORS, help="default: all that can")
    parser.add_argument("--seed", type=int, default=1, help="of the random traffic (1)")
    parser.add_argument("--length", type=int, default=1, help="times the usual traffic (1)")
    parser.add_argument("--all-shapes", action="store_true", help="not only the first of each")
    parser.add_argument(
        "--limit", type=float, default=LIMIT, metavar="S", help=f"seconds per testbench ({LIMIT:g})"
    )
    parser.add_argument(
        "--waves",
        type=Path,
        metavar="DIR",
        help="write waves as FST, one file per testbench; without it, only of those that fail, to "
        f"{WAVES}",
    )
    parser.add_argument("--junit", type=Path, metavar="F", help="write the results as JUnit XML")
    parser.add_argument("--json", action="store_true", help="print one JSON object, no table")
    args = parser.parse_args(argv)
    for bench in args.bench:
        if bench not in BENCHES:
            parser.error(f"BENCH must be one of {', '.join(BENCHES)}, not {bench!r}")
    try:
        return _run_all(args)
    except (SimulatorError, ValueError) as error:
        return ending.refuse(error)


def _run_all(args: argparse.Namespace) -> int:
    console = Console(stderr=args.json)
    simulators = [args.simulator] if args.simulator else [s for s in SIMULATORS if not missing(s)]
    for simulator in SIMULATORS if args.simulator is None else ():
        if reason := missing(simulator):
            console.print(f"not on {simulator}: {reason}")
    if not simulators:
        raise SimulatorError("no simulator can run the testbenches")
    if args.simulator and (reason := missing(args.simulator)):
        raise SimulatorError(reason)
    results = []
    with console.status("running") as status:
        for simulator in simulators:
            for bench in args.bench or BENCHES:
                for shape in shapes(bench) if args.all_shapes else (0,):
                    status.update(f"{bench}, shape {shape}, {simulator}")
                    results.append(_run_one(bench, shape, simulator, args))
    if args.junit is not None:
        args.junit.parent.mkdir(parents=True, exist_ok=True)
        args.junit.write_text(reports.junit(results), encoding="utf-8")
    if args.json:
        print(json.dumps(reports.facts(results)))
    else:
        reports.show(results, console)
    if any(result.error for result in results):
        return 2
    return int(any(result.run.failures for result in results))


def _run_one(bench: str, shape: int, simulator: str, args: argparse.Namespace) -> Result:
    """One testbench; if it fails and no waves were asked for, once more with waves."""
    options = {"simulator": simulator, "shape": shape, "seed": args.seed, "length": args.length}
    options |= {"limit": args.limit}
    waves = (args.waves or WAVES) / f"{bench}-{shape}-{simulator}.fst"
    try:
        if args.waves is None:
            result = run_bench(bench, **options)
            if not result.run.failures:
                return result
        waves.parent.mkdir(parents=True, exist_ok=True)
        return run_bench(bench, waves=waves, **options)
    except SimulatorError as error:
        none = Run(tests=(), failures={}, seconds={})
        place = {"bench": bench, "shape": shape, "simulator": simulator}
        return Result(**place, run=none, seconds=0.0, error=str(error))


def _module(bench: str) -> ModuleType:
    return importlib.import_module(f"lbq_hw.sim.benches.{bench}")


if __name__ == "__main__":  # hands over to the module of the full name
    sys.exit(importlib.import_module("lbq_hw.sim.regression").main())
