"""A network's needs and its speed, before anything is built: ``lbq plan --help``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from lbq_hw import boards, cycles, file, flow, golden, units
from lbq_hw.chips.timing import reader_timing
from lbq_hw.commands import ending, extras
from lbq_hw.commands.arguments import command_parser
from lbq_hw.commands.progress import image_bar
from lbq_hw.compiler import compile_network
from lbq_hw.config import CoreConfig
from lbq_hw.datasets import DatasetError
from lbq_hw.flow import arguments
from lbq_hw.host import estimate
from lbq_hw.network import Network
from lbq_hw.sizing import FitError, Refusal, SizedCore, survey
from lbq_hw.sizing.door import faster_clock, line_of

_EPILOG = """
examples:
  python -m lbq_hw.plan --model mnist
      a table of all boards: which hold the network, and how fast (estimates)
  python -m lbq_hw.plan --model mnist-4bit --board icebreaker --data folder/of/mnist
      the core for one board, the resources it takes (estimates), and its cycles by layer
  python -m lbq_hw.plan --model net.lbq --core core.json --images 10 --json
      the cycles by layer on a core of your own: JSON of a CoreConfig, such as the config.json of
      a build

Cycles by layer are not estimates: for each image, they equal the core's own counters.
  utilisation   bit-sparse ACs / (lanes x cycles), with all overhead; with pairs, half of that,
                since a lane can add two weights in a cycle
  limit         the part of the core that takes most cycles of the layer:
    events      the lanes accumulate all the time; more lanes or a sparser network would help
    scanner     there are more words to read, or requests, than events; longer plane words or
                summary words would help
    walker      a step has fewer events than the walker needs cycles to prepare the next step
    neurons     sums wait for the neuron units, or for levels to be written plane by plane; more
                units help if there are fewer of them than lanes / planes
    overhead    start, end, and parts that wait for each other, as in a small layer
    memory      passes wait for the tape, in a core with external memory
"""
_COLUMNS = ("board", "host", "core", "lanes", "clock", "LUTs", "BRAM",
            "weights", "Mbaud")  # fmt: skip
_FIELDS = ("board", "fits", "short", "lanes", "memory", "clock_hz", "luts", "block_rams", "cycles",
           "seconds", "baud", "link_seconds", "images_per_second")  # fmt: skip
_NUMBERS = {"cycles": "cycles", "events": "events", "null_events": "null events",
            "scanner_stalls": "no event", "neuron_stalls": "sum waits"}  # fmt: skip


def main(argv: list[str] | None = None, *, prog: str = "python -m lbq_hw.plan") -> int:
    args = _parser(prog).parse_args(argv)
    try:
        options = arguments.options(args)
        job = flow.Job(options, boards.find(args.board or "sim"), Path())
        job.network = file.load(options.model)
        if args.board is None and args.core is None:
            _what_fits(job, as_json=args.json)
            return 0
        facts = _planned(job, args.core)
    except (FitError, DatasetError, ValueError, TypeError) as error:  # of the user's request
        return ending.refuse(error)
    except (OverflowError, MemoryError, OSError) as error:
        return ending.refuse(error)
    except ModuleNotFoundError as error:
        return ending.refuse(extras.remedy(error))
    if args.json:
        print(json.dumps(facts))
    else:
        _show(facts)
    return 0


def _parser(prog: str) -> argparse.ArgumentParser:
    parser = command_parser(
        prog,
        "Show which boards hold a network; or, for one board or core, the cycles of each layer.",
        _EPILOG,
    )
    arguments.add_core(parser)
    parser.set_defaults(model="digits")
    parser.add_argument(
        "--core",
        type=Path,
        metavar="F",
        help="JSON file of a CoreConfig, used instead of sizing a core",
    )
    arguments.add_images(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    return parser


def _what_fits(job: flow.Job, *, as_json: bool) -> None:
    """Print which boards hold the network, and how fast each of them would be."""
    name, busy = job.network.name, job.activity
    with image_bar() as bar:
        task = bar.add_task(f"sizing {name} for every board", total=len(boards.fabrics()))
        found = survey.survey(
            job.network,
            busy=busy,
            options=job.options.sizing,
            done=lambda count: bar.advance(task, count),
        )
    lines = [_line(job.network, board, sized) for board, sized in found.items()]
    if as_json:
        print(json.dumps({"model": name, "activity": busy.source, "boards": lines}))
        return
    title = f"{name}: images/s, estimated: a host at the board's highest rate, and the core alone"
    table = Table(box=box.SIMPLE, title=title, pad_edge=False, padding=(0, 1, 0, 0))
    for number, heading in enumerate(_COLUMNS):
        table.add_column(heading, justify="right" if number else "left", no_wrap=True)
    for line in lines:
        if line["fits"]:
            table.add_row(*_row(line))
    console = Console(soft_wrap=True, highlight=False, markup=False)
    console.print(table)
    for line in lines:
        if not line["fits"]:
            console.print(f"{line['board']} does not hold it: {'; '.join(line['short'])}")
    if busy.remark:
        console.print(f"These figures hold {busy.remark}.")


def _line(network: Network, board: str, found: SizedCore | Refusal) -> dict[str, Any]:
    """One JSON-able object; except for lanes and memory, all numbers of the core are estimates."""
    if isinstance(found, Refusal):
        return dict.fromkeys(_FIELDS) | {
            "board": board,
            "fits": False,
            "short": list(found.reasons),
        }
    core, guess = found.config, found.estimate
    memory = "external" if core.external else "internal"
    taken = (None, None) if guess is None else (guess.luts, guess.block_rams)
    line = line_of(boards.find(board), found.clock_hz)
    pace = line.pace(found.opening, clock_hz=found.clock_hz, cycles=found.cycles)
    made = estimate.expected_traffic(network, core, pace=pace)
    sizes = (core.lanes, memory, found.clock_hz, *taken, found.cycles, found.seconds)
    sizes += (line.baud, line.busy(made), 1 / line.seconds(made, found.seconds))
    return dict(zip(_FIELDS, (board, True, [], *sizes), strict=True))


def _row(line: dict[str, Any]) -> list[str]:
    counts = (line["luts"], line["block_rams"])
    return [
        line["board"],
        units.three_digits(line["images_per_second"]),
        units.three_digits(1 / line["seconds"]),
        str(line["lanes"]),
        units.megahertz(line["clock_hz"]),
        *("" if count is None else f"{count:,}" for count in counts),
        "chip" if line["memory"] == "internal" else "SDRAM",
        f"{line['baud'] / 1e6:g}",
    ]


def _planned(job: flow.Job, core: Path | None) -> dict[str, Any]:
    """One JSON-able object; counts are means per image, except the cycles of the slowest image."""
    board, sized = job.board, None
    if core is None:
        sized = job.sized()
        config, clock_hz = sized.config, sized.clock_hz
    else:
        config = CoreConfig.from_json(core.read_text(encoding="utf-8"))
        clock_hz = job.options.target_hz or board.target_hz
    timing = None
    if config.external and board.chip is not None:
        timing = reader_timing(board.chip, clock_hz)
    program = compile_network(job.network, config, timing=timing)
    found = []
    for raw in job.images.raw:  # golden finds the levels faster than executing the program
        levels = golden.run(job.network, raw[None], keep="levels").emitted(0)
        found.append(cycles.predict(program, raw, levels, timing=timing))
    slowest = max(sum(layer.cycles for layer in image) for image in found)
    means = cycles.means(found, adders=config.adders)
    opening = None if sized is None else sized.opening
    line = line_of(board, clock_hz)
    pace = line.pace(opening, clock_hz=clock_hz, cycles=means["cycles"])
    made = estimate.traffic(program, job.images.raw[0], pace=pace)
    return {
        "model": job.network.name,
        "board": board.name,
        "lanes": config.lanes,
        "clock_hz": clock_hz,
        "core": None if sized is None else sized.sizes,
        "estimate": None if sized is None or sized.estimate is None else asdict(sized.estimate),
        "tape_bytes": len(program.tape) if config.external else 0,
        "budget": [layer.summary() for layer in program.budget],
        "source": job.images.source,
        **means,
        "slowest_cycles": slowest,
        "baud": line.baud,
        "link_seconds": line.busy(made),
        "images_per_second": 1 / line.seconds(made, means["cycles"] / clock_hz),
        "faster_line_clock_hz": faster_clock(board, clock_hz),
    }


_OWN = {"images": "a folder of pictures", "npz": "a file of arrays"}  # by names of datasets


def _show(facts: dict[str, Any]) -> None:
    console = Console()
    if not console.is_terminal:
        console = Console(width=120)
    if facts["core"] is not None:
        console.print(f"{facts['board']}: {facts['core']}", soft_wrap=True, highlight=False)
    source = _OWN.get(facts["source"], facts["source"])
    images = f"1 image of {source}"
    if facts["images"] > 1:
        slowest = f"the slowest {facts['slowest_cycles']:,.0f}"
        images = f"the mean of {facts['images']} images of {source}, {slowest}"
    table = Table(title=f"{escape(facts['model'])} on {facts['lanes']} lanes, {images}")
    passes = {layer["name"]: [f"{layer['passes']:,}"] for layer in facts["budget"]}
    headings = ["layer", *_NUMBERS.values(), "utilisation", "limit"]
    for heading in [*headings, "passes"] if passes else headings:
        table.add_column(heading, justify="left" if heading in ("layer", "limit") else "right")
    for layer in facts["layers"]:
        name, limit = layer["name"], layer["limit"]
        table.add_row(escape(name), *_cells([layer], layer), limit, *passes.get(name, []))
    table.add_section()
    table.add_row("all", *_cells(facts["layers"], facts), "")
    console.print(table)
    console.print("Each cycle of the lanes is an event, a null event, or one of the two waits.")
    seconds = facts["cycles"] / facts["clock_hz"]
    seen = units.three_digits(facts["images_per_second"])
    console.print(f"A host sees about {seen} images/s over the link, at {facts['baud']:,} baud.")
    if (clock_hz := facts["faster_line_clock_hz"]) is not None:
        mhz = units.megahertz(clock_hz)
        console.print(f"The line is faster at {mhz}, since its rate is the clock over an integer.")
    rate = f"{units.seconds(seconds)} per image, {units.three_digits(1 / seconds)} images/s"
    console.print(f"The core alone, at {units.megahertz(facts['clock_hz'])}: {rate}.")
    if facts["tape_bytes"]:
        console.print(f"The tape has {facts['tape_bytes']:,} bytes.")


def _cells(layers: Sequence[dict[str, Any]], whole: dict[str, Any]) -> list[str]:
    """The row of totals: sums over the layers, and the utilisation of the `whole` network."""
    sums = (sum(layer[name] for layer in layers) for name in _NUMBERS)
    return [*(f"{count:,.0f}" for count in sums), f"{whole['utilisation']:.3f}"]


if __name__ == "__main__":
    sys.exit(ending.run(main))
