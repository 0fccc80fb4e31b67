"""Which core on which board: ``python -m lbq_hw.explore --help``."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from pathlib import Path
from typing import Any

from rich.console import Console

from lbq_hw import boards, flow
from lbq_hw.commands import ending, extras
from lbq_hw.commands.arguments import add_data, command_parser, positive
from lbq_hw.datasets import DatasetError
from lbq_hw.engine import VersionError
from lbq_hw.explore import page
from lbq_hw.explore.run import Asked, Exploration
from lbq_hw.explore.table import table
from lbq_hw.resources.measured import MEASURED

OUT = Path("build/explore")
PAGE, RESULTS, MEASUREMENTS = "exploration.html", "exploration.json", MEASURED.name
_EPILOG = """
examples:
  python -m lbq_hw.explore --model mnist-4bit
      every board: which cores are worth building, by estimate; minutes
  python -m lbq_hw.explore --model mnist mnist-4bit --board icebreaker ulx3s-85f
      the same network with weights of 8 and of 4 bits, on two boards
  python -m lbq_hw.explore --model mnist-4bit --lanes 8 16 --freq 30 33
      only cores with these lanes, at these clocks
  python -m lbq_hw.explore --model mnist-4bit --data folder/of/mnist --place --workers 4
      place and route every core of the front with three seeds each; if it was stopped, repeat
      the command to continue
  python -m lbq_hw.explore --model mnist-4bit --board icebreaker --place boards
      the front of each board, not only the common one

A core is on the front if every other core is slower or takes more cells. Times are per image, as a
host sees them at the highest rate of the board's line. DIR gets exploration.html, exploration.json,
results.jsonl, and, with --place, the builds and measured.json: results of place and route, in the
format that the estimates are fitted to. `python -m lbq_hw.plan` sizes one core per board, `python
-m lbq_hw.build` makes the bitstream.
"""


def main(argv: list[str] | None = None, *, prog: str = "python -m lbq_hw.explore") -> int:
    args = _parser(prog).parse_args(argv)
    try:
        exploration = Exploration(_asked(args), args.out)
        exploration.run(place=args.place, seeds=args.seeds)
    except ModuleNotFoundError as error:
        return ending.refuse(extras.remedy(error))
    except (DatasetError, ValueError, TypeError, OverflowError, MemoryError) as error:
        return ending.refuse(error)
    except (flow.MissingToolError, VersionError, OSError) as error:
        return ending.refuse(error)
    except KeyboardInterrupt:
        return ending.interrupted(f"finished results are kept in {args.out}")
    found = exploration.facts()
    _write(args.out, exploration, found)
    if args.json:
        print(json.dumps(found))
    else:
        _show(exploration, found, args)
    return 0


def _parser(prog: str) -> argparse.ArgumentParser:
    parser = command_parser(
        prog, "Find the cores that are worth building: the fastest for their cells.", _EPILOG
    )
    parser.add_argument(
        "--model", nargs="+", default=["digits"], metavar="F", help=".lbq files or names of the zoo"
    )
    parser.add_argument(
        "--board", nargs="+", metavar="NAME", help="boards to explore (default: all with an FPGA)"
    )
    cores = parser.add_argument_group("cores to try (default: all that make sense)")
    for name, kind, metavar, text in (
        ("lanes", int, "P", "accumulators that work at once"),
        ("word", positive, "W", "bits of a plane word"),
        ("units", positive, "L", "neuron units"),
        ("weight-bits", int, "B", "weight bits of the core, at least the network's"),
        ("freq", float, "MHZ", "clocks of the core"),
    ):
        cores.add_argument(
            f"--{name}", nargs="+", type=kind, default=[], metavar=metavar, help=text
        )
    cores.add_argument(
        "--memory", choices=["internal", "external"], help="where the weights are stored"
    )
    cores.add_argument(
        "--no-door", dest="door", action="store_false", help="only cores without a door"
    )
    parser.add_argument(
        "--place", nargs="?", const="front", choices=["front", "boards"],
        help="place and route the front over all boards, or the front of each board",
    )  # fmt: skip
    parser.add_argument(
        "--seeds", type=positive, default=3, metavar="N", help="seeds to place each core with (3)"
    )
    parser.add_argument("--dataset", help="dataset of the images for counting cycles")
    add_data(parser)
    parser.add_argument("--out", type=Path, default=OUT, metavar="DIR", help=f"({OUT})")
    parser.add_argument(
        "--workers", type=positive, default=1, metavar="N", help="parallel processes (1)"
    )
    parser.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="address of a Dask scheduler; all its machines must see DIR",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object, no table")
    return parser


def _asked(args: argparse.Namespace) -> Asked:
    names = args.board or boards.names()
    found = [boards.find(name) for name in names]
    for board in found:
        if board.family is None and args.board:
            raise ValueError(f"board {board.name!r} has no FPGA to explore: it is only simulated")
        if board.file:
            raise ValueError(f"board {board.name!r} must be one that ships, not a file")
    return Asked(
        models=tuple(dict.fromkeys(args.model)),
        boards=tuple(dict.fromkeys(board.name for board in found)),
        lanes=tuple(args.lanes),
        words=tuple(args.word),
        units=tuple(args.units),
        bits=tuple(args.weight_bits),
        clocks=tuple(args.freq),
        memory=args.memory,
        doors=args.door,
        dataset=args.dataset,
        data=args.data,
        layout=args.layout,
        background=args.background,
        workers=args.workers,
        scheduler=args.scheduler,
    )


def _write(folder: Path, exploration: Exploration, found: list[dict[str, Any]]) -> None:
    text = page.render(found, refused=exploration.refused)
    (folder / PAGE).write_text(text, encoding="utf-8")
    (folder / RESULTS).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    if rows := exploration.rows():
        builds = json.dumps({"builds": rows}, indent=1, sort_keys=True) + "\n"
        (folder / MEASUREMENTS).write_text(builds, encoding="utf-8")


def _show(exploration: Exploration, found: list[dict[str, Any]], args: argparse.Namespace) -> None:
    console = Console(soft_wrap=True, highlight=False, markup=False)
    wide = console if console.is_terminal else Console(width=110)
    every = len(exploration.asked.boards) < 4 or args.place == "boards"
    for one in found:
        wide.print(table(one, every=every))
        for line in one["points"]:
            if line["placed"] is not None and line["placed"]["error"] is not None:
                console.print(f"{line['id']}: {line['placed']['error']}")
        if missing := exploration.refused[one["model"]]:
            console.print(f"{one['model']} fits no core of {', '.join(missing)}")
        if one["activity"]:
            console.print(f"Estimated times are {one['activity']}.")
    console.print(f"page: {args.out / PAGE}")


if __name__ == "__main__":  # calls the module by its full name, as workers import it
    sys.exit(ending.run(importlib.import_module("lbq_hw.explore.__main__").main))
