"""Every testbench on every simulator that can run it: ``python -m sim.regression --help``."""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from rich.console import Console
from rich.table import Table

from sim.benches import BENCHES
from sim.benches.harness import Settings
from sim.runner import CACHE, LIMIT, Run, compile_design, missing, simulate
from sim.verilog import SimulatorError, convert

SIMULATORS = ("icarus", "verilator")


@dataclass(frozen=True, kw_only=True)
class Result:
    """One testbench of one shape on one simulator."""

    bench: str
    shape: int
    simulator: str
    run: Run
    seconds: float


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
        f"sim.benches.{bench}",
        seed=seed,
        variables=settings.to_env(),
        waves=waves,
        limit=limit,
    )
    seconds = time.perf_counter() - began
    return Result(bench=bench, shape=shape, simulator=simulator, run=run, seconds=seconds)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
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
        "--waves", type=Path, metavar="DIR", help="write waves, one file per testbench"
    )
    args = parser.parse_args(argv)
    for bench in args.bench:
        if bench not in BENCHES:
            parser.error(f"BENCH must be one of {', '.join(BENCHES)}, not {bench!r}")
    try:
        return _run_all(args)
    except (SimulatorError, ValueError) as error:
        print(f"regression: {error}", file=sys.stderr)
        return 2


def _run_all(args: argparse.Namespace) -> int:
    console = Console()
    simulators = [args.simulator] if args.simulator else [s for s in SIMULATORS if not missing(s)]
    for simulator in SIMULATORS if args.simulator is None else ():
        if reason := missing(simulator):
            console.print(f"not on {simulator}: {reason}")
    if not simulators:
        raise SimulatorError("no simulator can run the testbenches")
    if args.waves is not None:
        args.waves.mkdir(parents=True, exist_ok=True)
    results = []
    with console.status("running") as status:
        for simulator in simulators:
            for bench in args.bench or BENCHES:
                for shape in shapes(bench) if args.all_shapes else (0,):
                    status.update(f"{bench}, shape {shape}, {simulator}")
                    kind = "fst" if simulator == "icarus" else "vcd"
                    waves = args.waves and args.waves / f"{bench}-{shape}.{kind}"
                    options = {"seed": args.seed, "length": args.length, "waves": waves}
                    options |= {"limit": args.limit}
                    results.append(run_bench(bench, simulator=simulator, shape=shape, **options))
    _show(results, console)
    return int(any(result.run.failures for result in results))


def _show(results: list[Result], console: Console) -> None:
    table = Table(title="regression")
    for heading in ("bench", "shape", "simulator", "tests", "failed", "seconds"):
        table.add_column(heading, justify="left" if heading in ("bench", "simulator") else "right")
    for result in results:
        counts = (len(result.run.tests), len(result.run.failures))
        numbers = (*(str(count) for count in counts), f"{result.seconds:.1f}")
        table.add_row(result.bench, str(result.shape), result.simulator, *numbers)
    console.print(table)
    for result in results:
        for name, text in result.run.failures.items():
            console.print(f"{result.bench}, {name}: {text}", markup=False)


def _module(bench: str) -> ModuleType:
    return importlib.import_module(f"sim.benches.{bench}")


if __name__ == "__main__":
    sys.exit(main())
