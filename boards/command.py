"""Tables of the boards for the documentation: ``python -m boards --help``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lbq_hw import boards
from lbq_hw.boards import pages, sources
from lbq_hw.commands import ending
from lbq_hw.commands.parser import Parser


def main(argv: Sequence[str] | None = None) -> int:
    parser = Parser(
        prog="python -m boards",
        description="Write the tables of all boards into boards.md and bring-up.md of a folder.",
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("folder", type=Path, metavar="DIR", nargs="?")
    what.add_argument(
        "--second-sources",
        action="store_true",
        help="print which second source agrees on which pins of which board",
    )
    args = parser.parse_args(argv)
    try:
        if args.second_sources:
            print(sources.agreement([boards.find(name) for name in boards.names()]), end="")
        else:
            pages.write(args.folder)
    except (OSError, ValueError) as error:
        return ending.refuse(error)
    return 0
