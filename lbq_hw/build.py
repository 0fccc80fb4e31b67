"""From an integer network to a bitstream, a package and a report: ``python -m lbq_hw.build``."""

from __future__ import annotations

import argparse
import errno
import json
import sys
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from lbq_hw import boards, file, flow, units
from lbq_hw.boards.clocks import ClockError
from lbq_hw.commands import boards as board_tables
from lbq_hw.commands import ending, extras
from lbq_hw.commands.arguments import command_parser
from lbq_hw.datasets import DatasetError
from lbq_hw.flow import arguments
from lbq_hw.flow.progress import ConsoleDisplay
from lbq_hw.sizing import FitError

FAILED = 1
_EPILOG = """
examples:
  python -m lbq_hw.build --board icebreaker --model mnist-4bit --data folder/of/mnist
      size a core (fit), compile, check, simulate, synthesise, place, pack; then package/ and
      report/report.html
  python -m lbq_hw.build --board ulx3s-85f --model net.lbq --lanes 64 --freq 80
  python -m lbq_hw.build --board icebreaker --model net.lbq --until fit
      does it fit, and how fast would it be? answers in seconds
  python -m lbq_hw.build --board icebreaker --model net.lbq --from place --seed 7
      place and route again, from the saved products of the earlier steps

`python -m lbq_hw.plan` prints which boards hold a network. Steps whose inputs have not changed are
not repeated. Exit codes: 0 done, 1 a step failed, 2 bad input, 130 interrupted. Tools are found as
`python -m lbq_hw.doctor` shows.
"""


def main(argv: list[str] | None = None, *, prog: str = "python -m lbq_hw.build") -> int:
    args = _parser(prog).parse_args(argv)
    if args.list_boards:
        board_tables.list_boards(as_json=args.json)
        return 0
    missing = [f"--{name}" for name in ("board", "model") if getattr(args, name) is None]
    if missing:
        return ending.refuse(f"give {' and '.join(missing)}, or --list-boards")
    try:
        job = _job(args)
        if args.dry_run:
            _show_plan(job, prove=args.prove, as_json=args.json)
            return 0
        return _build(job, args)
    except (ValueError, DatasetError) as error:  # of the model, the board, the options, the data
        return ending.refuse(error)
    except ModuleNotFoundError as error:
        return ending.refuse(extras.remedy(error))
    except OSError as error:
        return ending.refuse(_reason(error), FAILED)
    except KeyboardInterrupt:
        return ending.interrupted()


def _parser(prog: str) -> argparse.ArgumentParser:
    parser = command_parser(
        prog, "Build a bitstream, a package and a report for a board from a network.", _EPILOG
    )
    parser.set_defaults(prog=prog)
    arguments.add_core(parser)
    parser.add_argument("--list-boards", action="store_true", help="print the boards and end")
    steps = parser.add_argument_group("the flow", f"steps: {', '.join(flow.names())}")
    names = {"metavar": "STEP", "choices": flow.names()}
    steps.add_argument("--from", dest="first", help="run again from this step on", **names)
    steps.add_argument("--until", dest="last", help="stop after this step", **names)
    steps.add_argument(
        "--prove",
        choices=list(flow.PROOFS),
        help="bitstream: extract the netlist from the packed file, simulate it as a board, pins "
        "included, and compare it with the golden model",
    )
    steps.add_argument("--dry-run", action="store_true", help="print what would be done, and end")
    steps.add_argument(
        "--seed",
        type=int,
        help="first seed of place and route (the seed with which this netlist met its clock in an "
        "earlier build, or else 1)",
    )
    steps.add_argument("--tries", type=int, default=4, help="seeds to try until timing is met (4)")
    steps.add_argument("--build-dir", type=Path, metavar="DIR", help="default: build/BOARD-MODEL")
    steps.add_argument("--json", action="store_true", help="print one JSON object at the end")
    arguments.add_images(parser)
    return parser


def _job(args: argparse.Namespace) -> flow.Job:
    board = boards.find(args.board)
    options = arguments.options(args)
    name = file.load(options.model).name
    folder = args.build_dir or Path("build") / f"{board.name}-{name}"
    return flow.Job(options, board, folder.resolve())


def _build(job: flow.Job, args: argparse.Namespace) -> int:
    console = Console(stderr=True, soft_wrap=True)
    error, code = None, 0
    with ConsoleDisplay(console) as display:
        try:
            flow.run(
                job,
                flow.with_proof(flow.STEPS, args.prove),
                display,
                first=args.first or flow.names()[0],
                last=args.last or flow.names()[-1],
                fresh=args.first is not None,
            )
        except KeyboardInterrupt:
            error, code = "interrupted", ending.INTERRUPTED
        except (flow.FlowError, flow.ToolError, flow.MissingToolError, FitError) as failure:
            error, code = str(failure), FAILED
        except (DatasetError, ClockError, ValueError, OverflowError, MemoryError) as failure:
            error, code = str(failure), ending.REFUSED
        except OSError as failure:
            error, code = _reason(failure), FAILED
    if args.json:
        print(json.dumps(_facts(job, error)))
    elif error is None:
        _show_result(job, console)
        _show_next(job, console)
    if error is None:
        return 0
    if code == ending.INTERRUPTED:
        return ending.interrupted(f"finished steps are kept in {job.folder}")
    return ending.refuse(error, code)


def _show_result(job: flow.Job, console: Console) -> None:
    """Print estimates beside results, from this run or from saved products."""
    rows = flow.results(job)
    if not rows:
        return
    columns = {
        "estimate": [row.estimate for row in rows],
        "result": [row.result for row in rows],
        job.board.title: [row.available for row in rows],
    }
    known = {name: values for name, values in columns.items() if any(values)}
    table = Table(box=box.SIMPLE)
    for heading in ("", *known):
        table.add_column(heading, justify="right" if heading else "left")
    for row, *numbers in zip(rows, *known.values(), strict=True):
        cells = ["" if value is None else _figure(value) for value in numbers]
        if row.name == flow.FMAX and row.estimate is None:
            cells[0] = "not measured"  # on devices of this series, by whoever made the model
        table.add_row(row.name, *cells)
    console.print(table)


def _figure(value: float) -> str:
    """A count in full, a fraction with three significant digits."""
    return f"{value:,.0f}" if float(value).is_integer() else units.three_digits(value)


def _show_next(job: flow.Job, console: Console) -> None:
    """Print what to do with the package, if there is one."""
    if not any(outcome.step == "package" for outcome in job.outcomes):
        return
    console.print("next:", *flow.next_commands(job), sep="\n  ", highlight=False, markup=False)


def _facts(job: flow.Job, error: str | None) -> dict[str, Any]:
    return {
        "board": job.board.name,
        "folder": str(job.folder),
        "error": error,
        "steps": [vars(outcome) for outcome in job.outcomes],
        "results": [vars(row) for row in flow.results(job)],
    }


def _reason(error: OSError) -> str:
    if error.errno == errno.ENOSPC:
        where = f" ({error.filename})" if error.filename else ""
        return f"the disk is full{where}: free some space and repeat, finished steps are kept"
    return ending.said(error)


def _show_plan(job: flow.Job, *, prove: str | None, as_json: bool) -> None:
    lines = [
        {"step": step.name, "does": step.meaning, "state": state}
        for step, state in flow.plan(job, flow.with_proof(flow.STEPS, prove))
    ]
    if as_json:
        print(json.dumps({"folder": str(job.folder), "steps": lines}))
        return
    print(f"in {job.folder}:")
    for line in lines:
        print(f"  {line['step']:10} {line['does']} [{line['state']}]")


if __name__ == "__main__":
    sys.exit(ending.run(main))
