"""Predict the cycles of a network: ``python -m lbq_hw.cycles --help``."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from lbq_hw import file, interpreter, zoo
from lbq_hw.arguments import add_data, positive, reading
from lbq_hw.compiler import Program, compile_network, smallest_for
from lbq_hw.config import CoreConfig
from lbq_hw.cycles import means, predict
from lbq_hw.datasets import DatasetError
from lbq_hw.datasets.fitting import load_dataset

_EPILOG = """
examples:
  python -m lbq_hw.cycles
      the digits network of the zoo on 16 lanes
  python -m lbq_hw.cycles --model mnist --lanes 32 --data folder/of/mnist --images 10 --json
  python -m lbq_hw.cycles --model net.lbq --core core.json --dataset mnist --data folder/of/mnist

the cycles are not estimated: they equal what the core's counters count, for each image.
  utilisation   bit-sparse ACs / (lanes x cycles), all overhead included; with pairs, a lane can
                add two weights in a cycle, and half of that
  limit         what most cycles of the layer are for:
    events      the lanes accumulate all the time; more lanes or a sparser network would help
    scanner     there are more words to read, or requests, than events; longer plane words or
                summary words would help
    walker      steps have fewer events than the walker needs cycles to prepare the next
    neurons     sums wait for the neuron units, or for levels to be written plane by plane; more
                units help if there are fewer of them than lanes / planes
    overhead    start, end and parts that wait for each other: a small layer
    memory      passes wait for the tape, in a core with external memory
"""


def main(argv: list[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    try:
        network = file.load(zoo.find(args.model))
        if args.core is not None:
            config = CoreConfig.from_json(args.core.read_text(encoding="utf-8"))
        else:
            config = smallest_for(network, lanes=args.lanes)
        program = compile_network(network, config)
        images = load_dataset(network, args.dataset, args.data, args.images, reading(args)).images
        facts = _report(program, images)
    except (DatasetError, OSError, OverflowError, TypeError, ValueError, MemoryError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if args.json:
        print(json.dumps(facts))
    else:
        _show(facts)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m lbq_hw.cycles",
        description="Predict the cycles that each layer of a network takes on a core, exactly.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--model", default="digits", help="an .lbq file or a name of the zoo (default: digits)"
    )
    cores = parser.add_mutually_exclusive_group()
    cores.add_argument(
        "--lanes", type=int, default=16, metavar="P", help="of the smallest core (default: 16)"
    )
    cores.add_argument("--core", type=Path, metavar="F", help="JSON file of a CoreConfig")
    parser.add_argument("--dataset", help="default: the one the model was trained on")
    add_data(parser)
    parser.add_argument(
        "--images", type=positive, default=1, metavar="N", help="test images, drawn (default: 1)"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    return parser


def _report(program: Program, images: NDArray[np.uint8]) -> dict[str, Any]:
    """One JSON-able object; counts are means per image, but for the cycles of the slowest one."""
    found = [predict(program, raw, interpreter.run(program, raw).levels) for raw in images]
    lanes, adders = program.config.lanes, program.config.adders
    slowest = max(means([image], adders=adders)["cycles"] for image in found)
    facts = means(found, adders=adders)
    return {"model": program.name, "lanes": lanes, **facts, "slowest_cycles": slowest}


def _show(facts: dict[str, Any]) -> None:
    images = "1 image"
    if facts["images"] > 1:
        images = f"the mean of {facts['images']} images, the slowest {facts['slowest_cycles']:,.0f}"
    table = Table(title=f"{facts['model']} on {facts['lanes']} lanes, {images}")
    numbers = {"cycles": "cycles", "events": "events", "null_events": "null events",
               "scanner_stalls": "no event", "neuron_stalls": "sum waits"}  # fmt: skip
    for heading in ("layer", *numbers.values(), "utilisation", "limit"):
        table.add_column(heading, justify="left" if heading in ("layer", "limit") else "right")
    for layer in facts["layers"]:
        cells = [f"{layer[name]:,.0f}" for name in numbers]
        table.add_row(escape(layer["name"]), *cells, f"{layer['utilisation']:.3f}", layer["limit"])
    table.add_section()
    totals = [f"{sum(layer[name] for layer in facts['layers']):,.0f}" for name in numbers]
    table.add_row("all", *totals, f"{facts['utilisation']:.3f}", "")
    console = Console()
    if not console.is_terminal:
        console = Console(width=120)
    console.print(table)
    console.print("Each cycle of the lanes is an event, a null event, or one of the two waits.")


if __name__ == "__main__":
    sys.exit(main())
