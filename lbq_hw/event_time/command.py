"""``python -m lbq_hw.event_time``: the cost of recordings on a core that is driven by events."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markdown import Markdown

from lbq_hw import file, zoo
from lbq_hw.commands import ending
from lbq_hw.commands.arguments import add_dataset, command_parser, positive, reading
from lbq_hw.commands.progress import image_bar, show_notes
from lbq_hw.datasets import DatasetError
from lbq_hw.datasets.fitting import load_samples
from lbq_hw.event_time import tables
from lbq_hw.event_time.measured import measure

_EPILOG = """
examples:
  python -m lbq_hw.event_time --model nmnist --data folder/of/nmnist --limit 20
      visits by layer, and cycles and memory of each way to execute 20 recordings
  python -m lbq_hw.event_time --model net.lbq --data folder/of/nmnist --limit 20 --json > net.json
  python -m lbq_hw.event_time --markdown net.json
      the tables of docs/event-time.md

A position is visited at a timestep if it has an event, or if a membrane still reaches its
threshold. In a layer whose neurons have a bias, all positions are visited. Cycles are estimates:
scanner, lanes and neuron units follow the exact model, but the walker in front of them is assumed.
"""


def main(argv: list[str] | None = None, *, prog: str = "python -m lbq_hw.event_time") -> int:
    options = _parser(prog).parse_args(argv)
    try:
        facts = _read(options.markdown) if options.markdown else _measured(options)
    except (ValueError, DatasetError, OverflowError, MemoryError, OSError) as error:
        return ending.refuse(error)
    if options.json:
        print(json.dumps(facts))
    elif options.markdown:
        print(tables.markdown(facts), end="")
    else:
        Console().print(Markdown(tables.markdown(facts)))
    return 0


def _parser(prog: str) -> argparse.ArgumentParser:
    parser = command_parser(
        prog,
        "Estimate the cost of recordings on a core that is driven by events: visited positions, "
        "cycles and memory by layer.",
        _EPILOG,
    )
    parser.add_argument(
        "--model", default="nmnist", help="an .lbq file or a name of the zoo (default: nmnist)"
    )
    add_dataset(parser)
    parser.add_argument(
        "--others",
        type=positive,
        metavar="N",
        help="only for the first N recordings, compute the ways of execution that the plan does "
        "not choose, which takes longest (default: for all)",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object instead of tables")
    parser.add_argument(
        "--markdown", type=Path, metavar="F", help="print the tables from the --json output in F"
    )
    return parser


def _read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


def _measured(options: argparse.Namespace) -> dict[str, Any]:
    network = file.load(zoo.find(options.model))
    samples = load_samples(
        network,
        dataset=options.dataset,
        data=options.data,
        raw=None,
        limit=options.limit,
        reading=reading(options),
    )
    show_notes(samples.notes)
    with image_bar() as bar:
        task = bar.add_task(f"{network.name} on {samples.name}", total=len(samples.images))
        facts = measure(
            network, samples.images, others=options.others, go_on=lambda: bar.advance(task)
        )
    return {**samples.origin(), **facts}
