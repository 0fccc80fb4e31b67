"""Tests a board for the first time: ``python -m lbq_hw.bring_up --help``."""

from __future__ import annotations

import argparse
import json
import platform
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

import lbq_hw
from lbq_hw import boards, package
from lbq_hw.bring_up.machine import Machine
from lbq_hw.bring_up.steps import STEPS
from lbq_hw.bring_up.walk import Finding, State, Step, Visit, walk
from lbq_hw.commands import ending
from lbq_hw.commands.arguments import command_parser
from lbq_hw.host import ports

_COLOURS = {State.OK: "green", State.FAILED: "red", State.SKIPPED: "yellow"}
_EPILOG = """
steps:
  usb        the board is on the USB, and its bridge is not a version that is known to fail
  port       a serial port can be the board's link
  rights     this user may program the board and open the port
  tool       the program that loads a bitstream is installed and knows the board
  load       the bitstream of the package is loaded
  link       the core of the package answers
  memory     the external memory keeps its contents, for boards that have one
  self-test  the package's inputs give their known logits
  rate       how fast the link is, and whether faster rates work

Each step says ok, failed with a remedy, or skipped with a reason. A step is skipped if it needs a
failed step. docs/bring-up.md has the same steps by hand, and notes on each board.

examples:
  python -m lbq_hw.bring_up --board icebreaker
      before there is a package: the USB, the port, rights and the tool
  python -m lbq_hw.bring_up --board ulx3s-85f --package build/first/package
      all of it; loads the bitstream
  python -m lbq_hw.bring_up --board versa-ecp5 --package DIR --no-load
      the bitstream was loaded by another program
  python -m lbq_hw.bring_up --board sim --package DIR --port /dev/pts/3
      the simulated board, behind the port that lbq sim-board prints

exit codes: 0 nothing failed, 1 a step failed, 2 bad input, 130 interrupted. All findings go to one
file, text and JSON, for a bug report.
"""


def main(
    argv: list[str] | None = None,
    *,
    prog: str = "python -m lbq_hw.bring_up",
    machine: Machine | None = None,
) -> int:
    args = _parser(prog).parse_args(argv)
    try:
        visit = _visit(args, machine or Machine())
    except ValueError as error:
        return ending.refuse(error)
    found: list[tuple[Step, Finding]] = []
    interrupted = False
    console = Console(soft_wrap=True, highlight=False, quiet=args.json)
    try:
        with console.status("") as status:
            for step, finding in walk(visit, STEPS, lambda step: status.update(step.title)):
                found.append((step, finding))
                _show(console, step, finding)
    except KeyboardInterrupt:
        interrupted = True
    facts = _facts(visit, found)
    path = Path(args.report or f"bring-up-{visit.board.name}.md")
    try:
        path.write_text(_page(facts), encoding="utf-8")
    except OSError as error:
        return ending.refuse(f"{path} cannot be written ({error.strerror})")
    if args.json:
        print(json.dumps(facts))
    console.print(f"For a bug report: {path}", markup=False)
    if interrupted:
        return ending.interrupted()
    return 1 if any(finding.state == State.FAILED for _, finding in found) else 0


def _visit(args: argparse.Namespace, machine: Machine) -> Visit:
    board = boards.find(args.board)
    packed = None if args.package is None else package.read(args.package)
    if packed is not None and packed.board != board.name:
        raise ValueError(
            f"{args.package} is for the board {packed.board}, not {board.name}: build one with "
            f"lbq build --board {board.spelled}"
        )
    return Visit(
        board=board, package=packed, machine=machine, port=args.port, load=not args.no_load
    )


def _show(console: Console, step: Step, finding: Finding) -> None:
    colour = _COLOURS[finding.state]
    console.print(f"[{colour}]{finding.state:7}[/]  {step.name:9}  {escape(finding.text)}")
    if finding.mend:
        console.print(f"                    {escape(finding.mend)}")


def _facts(visit: Visit, found: list[tuple[Step, Finding]]) -> dict[str, Any]:
    packed = visit.package
    return {
        "board": visit.board.name,
        "version": lbq_hw.__version__,
        "python": platform.python_version(),
        "system": platform.platform(),
        "package": None
        if packed is None
        else {
            "model": packed.network.name,
            "config": packed.config.digest,
            "clock_hz": packed.clock_hz,
            "baud": packed.baud,
            "baked": packed.baked,
        },
        "passed": all(finding.state != State.FAILED for _, finding in found),
        "steps": [{"name": step.name} | asdict(finding) for step, finding in found],
    }


def _page(facts: dict[str, Any]) -> str:
    """The report: what the terminal showed, then everything as JSON."""
    lines = [f"# Bring-up of {facts['board']}", "", "```"]
    lines.append(f"lbq-hw {facts['version']}, Python {facts['python']}, {facts['system']}")
    for step in facts["steps"]:
        lines.append(f"{step['state']:7}  {step['name']:9}  {step['text']}")
        lines += [f"                    {step['mend']}"] if step["mend"] else []
    lines += ["```", "", "```json", json.dumps(facts, indent=1), "```", ""]
    return "\n".join(lines)


def _parser(prog: str) -> argparse.ArgumentParser:
    parser = command_parser(
        prog, "Test a board for the first time, step by step: from the USB to a self-test.", _EPILOG
    )
    parser.add_argument(
        "--board", required=True, metavar="NAME", help="a name from lbq boards, or a board file"
    )
    parser.add_argument("--package", metavar="DIR", help="folder of a package for this board")
    parser.add_argument(
        "--port", default=ports.AUTO, help="serial port; auto, the default, finds the board's"
    )
    parser.add_argument(
        "--no-load", action="store_true", help="the board has its bitstream already: do not load it"
    )
    parser.add_argument(
        "--report", metavar="F", help="file for a bug report (bring-up-NAME.md, in this folder)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object, no text")
    return parser


if __name__ == "__main__":
    sys.exit(ending.run(main))
