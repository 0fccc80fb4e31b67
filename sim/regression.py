"""Every testbench on every simulator that can run it: ``python -m sim.regression --help``."""

from __future__ import annotations

import argparse
import importlib
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from rich.console import Console

from lbq_hw import file, zoo
from lbq_hw.commands import ending
from lbq_hw.commands.arguments import add_reading, command_parser, positive, reading
from lbq_hw.commands.progress import show_notes
from lbq_hw.datasets import DatasetError
from lbq_hw.datasets.fitting import load_samples, noise
from lbq_hw.sim import own_network, reports
from lbq_hw.sim.benches import BENCHES
from lbq_hw.sim.benches.harness import Settings
from lbq_hw.sim.own_network import run_network
from lbq_hw.sim.reports import Result
from lbq_hw.sim.runner import CACHE, LIMIT, Run, compile_design, missing, simulate
from lbq_hw.sim.verilog import SimulatorError, convert
from lbq_hw.sizing import FitError

SIMULATORS = ("icarus", "verilator")
WAVES = Path("build/waves")
"""Folder for the waves of failed testbenches."""


_EPILOG = """
examples:
  python -m sim.regression --all-shapes
      every block of the core in every profile: what make regression runs, in some minutes
  python -m sim.regression lanes scanner --all-shapes --seed 7 --length 3
      two testbenches with another seed and three times the traffic
  python -m sim.regression --model net.lbq --data DIR --images 2
      a network of your own on the whole core, against the golden model's tensors
  python -m sim.regression --all-shapes --junit build/junit.xml
      for CI; waves of what fails are in build/waves
"""


@dataclass(frozen=True, kw_only=True)
class Job:
    """A testbench of one shape on one simulator; `run` takes the folder for its waves."""

    bench: str
    shape: int
    simulator: str
    run: Callable[..., Result]


def block(bench: str, shape: int) -> Any:
    """The design that a testbench drives."""
    return _module(bench).block(shape)


def verilog(bench: str, shape: int) -> str:
    """The Verilog of that design, with the testbench's other sources."""
    return convert(block(bench, shape), name=bench) + getattr(_module(bench), "VERILOG", "")


def runs_on(bench: str, simulator: str) -> bool:
    """Whether a testbench runs on a simulator; almost all run on every one."""
    return simulator in getattr(_module(bench), "SIMULATORS", SIMULATORS)


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

    `Settings` explains the other parameters.
    """
    began = time.perf_counter()
    design = compile_design(
        verilog(bench, shape), top=bench, simulator=simulator, waves=waves is not None, cache=cache
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


def main(argv: list[str] | None = None, *, prog: str = "python -m sim.regression") -> int:
    parser = _parser(prog)
    args = parser.parse_args(argv)
    for bench in args.bench:
        if bench not in BENCHES:
            parser.error(f"BENCH must be one of {', '.join(BENCHES)}, not {bench!r}")
    if args.model and args.bench:
        parser.error("give testbenches or a model, not both")
    try:
        return _run_all(args)
    except (OSError, TypeError, ValueError, FitError, DatasetError, SimulatorError) as error:
        return ending.refuse(error)


def _parser(prog: str) -> argparse.ArgumentParser:
    parser = command_parser(
        prog,
        "Run the testbenches under cocotb. Exit code 1: a test fails; 2: a simulator cannot run a "
        "testbench.",
        _EPILOG,
    )
    parser.add_argument(
        "bench", nargs="*", metavar="BENCH", help=f"testbenches to run: {', '.join(BENCHES)} (all)"
    )
    parser.add_argument(
        "--simulator", choices=SIMULATORS, help="default: every simulator that can run testbenches"
    )
    parser.add_argument("--seed", type=int, default=1, help="seed of the random traffic (1)")
    parser.add_argument(
        "--length", type=positive, default=1, help="factor on the amount of traffic (1)"
    )
    parser.add_argument(
        "--all-shapes",
        action="store_true",
        help="every shape of each testbench, not only its first",
    )
    parser.add_argument(
        "--workers", type=positive, metavar="N", help="simulations at a time (one per processor)"
    )
    parser.add_argument(
        "--limit",
        type=float,
        default=LIMIT,
        metavar="S",
        help=f"time limit per testbench, in seconds ({LIMIT:g})",
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
    own = parser.add_argument_group("a network of your own, on the whole core")
    own.add_argument(
        "--model",
        metavar="NAME",
        help="an .lbq file or a zoo name; runs instead of the testbenches",
    )
    own.add_argument("--lanes", type=positive, default=16, metavar="P", help="4 to 256 (16)")
    own.add_argument(
        "--dataset", help="default: the dataset that the model was trained on, or noise if unknown"
    )
    own.add_argument("--data", metavar="PATH", help="its folder, or an .npz file of your own")
    add_reading(own)
    own.add_argument("--raw", metavar="F", help="images of a .npy file instead")
    own.add_argument(
        "--images", type=positive, default=1, metavar="N", help="test images, drawn at random (1)"
    )
    return parser


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
    jobs: list[Job] = list((_own if args.model else _jobs)(args, simulators))
    if not jobs:
        raise SimulatorError(f"{', '.join(args.bench)} does not run on {', '.join(simulators)}")
    results: list[Result] = []
    with console.status("running") as status:
        for result in _results(jobs, args):
            results.insert(0, result)
            status.update(f"{len(results)} of {len(jobs)}: {result.name}")
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


def _jobs(args: argparse.Namespace, simulators: Sequence[str]) -> Iterator[Job]:
    """Every testbench in every shape that was asked for."""
    common = {"seed": args.seed, "length": args.length, "limit": args.limit}
    for simulator in simulators:
        for bench in filter(partial(runs_on, simulator=simulator), args.bench or BENCHES):
            for shape in shapes(bench) if args.all_shapes else (0,):
                options = common | {"shape": shape, "simulator": simulator}
                run = partial(run_bench, bench, **options)
                yield Job(bench=bench, shape=shape, simulator=simulator, run=run)


def _own(args: argparse.Namespace, simulators: Sequence[str]) -> Iterator[Job]:
    """The user's own network, on every simulator."""
    network = file.load(zoo.find(args.model))
    if args.dataset or args.data or args.raw or "dataset" in network.meta:
        given = {"dataset": args.dataset, "data": args.data, "raw": args.raw}
        samples = load_samples(network, **given, limit=args.images, reading=reading(args))
        show_notes(samples.notes)
        images = samples.images
    else:
        images = noise(network, args.images)
    for simulator in simulators:
        options = {"lanes": args.lanes, "simulator": simulator, "limit": args.limit}
        run = partial(run_network, network, images, **options)
        yield Job(bench=own_network.BENCH, shape=0, simulator=simulator, run=run)


def _results(jobs: Sequence[Job], args: argparse.Namespace) -> Iterator[Result]:
    """The result of each job. The last job starts first: it is the whole core, which takes
    longest.
    """
    run = partial(_run_one, wanted=args.waves)
    workers = min(args.workers or os.cpu_count() or 1, len(jobs))
    if workers == 1:
        yield from map(run, reversed(jobs))
        return
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(run, reversed(jobs))


def _run_one(job: Job, *, wanted: Path | None) -> Result:
    """One testbench; if it fails and no waves were asked for, once more with waves."""
    waves = (wanted or WAVES) / f"{job.bench}-{job.shape}-{job.simulator}.fst"
    try:
        if wanted is None:
            result = job.run()
            if not result.run.failures:
                return result
        waves.parent.mkdir(parents=True, exist_ok=True)
        return job.run(waves=waves)
    except SimulatorError as error:
        none = Run(tests=(), failures={}, seconds={})
        place = {"bench": job.bench, "shape": job.shape, "simulator": job.simulator}
        return Result(**place, run=none, seconds=0.0, error=str(error))


def _module(bench: str) -> ModuleType:
    return importlib.import_module(f"lbq_hw.sim.benches.{bench}")


if __name__ == "__main__":  # hands over to the module of the full name
    sys.exit(importlib.import_module("lbq_hw.sim.regression").main())
