"""Command line of the sweep: ``python -m sim.sweep``."""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lbq_hw.commands import ending, extras
from lbq_hw.commands.arguments import command_parser, not_negative, positive
from lbq_hw.commands.progress import image_bar
from lbq_hw.sim.sweep import engine
from lbq_hw.sim.sweep.shapes import KINDS, Result, Shape, run
from lbq_hw.sim.sweep.store import Store, Sweep
from lbq_hw.sim.verilog import SimulatorError

OUT = Path("build/sweep/results.jsonl")
_EPILOG = """
examples:
  python -m sim.sweep --networks 40 --shapes 4
      two cores with their program on the chip, one with external memory, a streaming one
  python -m sim.sweep --networks 10000
      200 shapes on all processors; a sweep that was stopped goes on where it ended
  python -m sim.sweep --networks 10000 --scheduler tcp://10.0.0.1:8786
      on the workers of a Dask scheduler
Every level, logit and cycle count is compared. The first difference ends the sweep with exit code
1; its network is made as small as possible, and written as a test beside the results.
"""


def shapes_of(sweep: Sweep) -> list[Shape]:
    """The jobs of a sweep; the networks are distributed evenly."""
    each, more = divmod(sweep.networks, sweep.shapes)
    return [
        Shape(seed=sweep.seed, number=number, networks=each + (number < more))
        for number in range(sweep.shapes)
    ]


def main(argv: Sequence[str] | None = None, *, prog: str = "python -m sim.sweep") -> int:
    parser = command_parser(
        prog,
        "Run random networks on random cores, and compare with golden and the cycle model.",
        _EPILOG,
    )
    parser.add_argument("--networks", type=positive, default=200, metavar="N", help="total (200)")
    parser.add_argument(
        "--shapes", type=positive, metavar="N", help="cores to build (1 per 50 networks, at least "
        "4)"
    )  # fmt: skip
    parser.add_argument("--seed", type=not_negative, default=0, metavar="S", help="(0)")
    parser.add_argument("--out", type=Path, default=OUT, metavar="F", help=f"results ({OUT})")
    parser.add_argument(
        "--workers", type=positive, default=os.cpu_count() or 1, metavar="N",
        help="processes; 1 starts no cluster (one per processor)",
    )  # fmt: skip
    parser.add_argument("--scheduler", metavar="ADDRESS", help="use the Dask cluster at ADDRESS")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args(argv)
    shapes = args.shapes or max(len(KINDS), args.networks // 50)
    if shapes > args.networks:
        parser.error(f"--shapes must be at most --networks ({args.networks}), not {shapes}")
    sweep = Sweep(seed=args.seed, shapes=shapes, networks=args.networks, sources=engine.sources())
    began = time.perf_counter()
    try:
        store = Store(args.out, sweep)
        found = swept(sweep, store, workers=args.workers, scheduler=args.scheduler)
    except ModuleNotFoundError as error:
        return ending.refuse(extras.remedy(error))
    except (ValueError, SimulatorError, engine.VersionError, OSError) as error:
        return ending.refuse(error)
    summary = facts(sweep, store, seconds=time.perf_counter() - began)
    if found is not None:
        folder = args.out.with_suffix("") / f"shape-{found.number}"
        assert found.case is not None
        assert found.difference is not None
        told = f"Shape {found.number} of seed {sweep.seed}, {found.difference}"
        found.case.write(folder, told)
        trial = found.case.trials[-1]
        summary |= {"case": str(folder), "case_layers": len(trial.network.layers)}
    print(json.dumps(summary) if args.json else spoken(summary))
    return 0 if found is None else 1


def swept(sweep: Sweep, store: Store, *, workers: int, scheduler: str | None) -> Result | None:
    """Run the shapes without a result; returns the first result with a difference."""
    shapes = shapes_of(sweep)
    missing = [shape for shape in shapes if shape.number not in store.results]
    done = sweep.networks - sum(shape.networks for shape in missing)
    with image_bar() as bar:
        task = bar.add_task("networks", total=sweep.networks, completed=done)
        for result in engine.results(run, missing, workers=workers, scheduler=scheduler):
            store.add(result)
            bar.advance(task, result.networks)
            if result.difference is not None:
                return result
    return None


def facts(sweep: Sweep, store: Store, *, seconds: float) -> dict[str, Any]:
    """One object for JSON; `core_seconds` is the sum over all processes and earlier runs."""
    done = store.results.values()
    differences = [result for result in done if result.difference is not None]
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "seed": sweep.seed,
        "sources": sweep.sources,
        "shapes": len(done),
        "builds": len({result.build for result in done}),
        "networks": sum(result.networks for result in done),
        "by_kind": {
            kind: sum(result.networks for result in done if result.kind == kind)
            for kind in dict.fromkeys(KINDS)
        },
        "inputs": sum(result.inputs for result in done),
        "cycles": sum(result.cycles for result in done),
        "differences": len(differences),
        "difference": differences[0].difference if differences else None,
        "seconds": round(seconds, 1),
        "core_seconds": round(sum(result.seconds for result in done), 1),
    }


def spoken(facts: dict[str, Any]) -> str:
    """A line or two for people."""
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in facts["by_kind"].items())
    line = (
        f"{facts['networks']:,} networks ({kinds}) on {facts['shapes']:,} cores, "
        f"{facts['cycles']:,} cycles: {facts['differences']} differences"
    )
    if "case" not in facts:
        return line
    layers = f"{facts['case_layers']} layer{'s' if facts['case_layers'] > 1 else ''}"
    return f"{line}\n{facts['difference']}\na test with a network of {layers}: {facts['case']}"


if __name__ == "__main__":  # hands over to the module of the full name
    sys.exit(ending.run(importlib.import_module("lbq_hw.sim.sweep.__main__").main))
