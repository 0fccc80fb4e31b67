"""Draw the core and list its blocks: ``python -m lbq_hw.diagram --help``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from lbq_hw.commands import ending
from lbq_hw.commands.parser import Parser
from lbq_hw.diagram.components import table
from lbq_hw.diagram.drawing import DRAWINGS, Drawing, render

BEGIN = "<!-- blocks: python -m lbq_hw.diagram docs -->\n"
END = "<!-- /blocks -->"


def with_table(page: str, drawing: Drawing) -> str:
    """The page with the current table of blocks between its two marks."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise ValueError(f"the page must have {BEGIN.strip()!r} and then {END!r}")
    return f"{before}{begin}{table(drawing)}{end}{after}"


def main(argv: Sequence[str] | None = None) -> int:
    parser = Parser(
        prog="python -m lbq_hw.diagram",
        description="Print a block diagram of the core as SVG. With a folder, write all diagrams "
        "there, and the table of each diagram's blocks into the page of the same name.",
    )
    parser.add_argument("folder", type=Path, nargs="?", metavar="DIR")
    parser.add_argument(
        "--of",
        choices=DRAWINGS,
        default="architecture",
        help="the diagram to print: the core (default), or its reader of external memory",
    )
    args = parser.parse_args(argv)
    if args.folder is None:
        print(render(DRAWINGS[args.of]), end="")
        return 0
    for name, drawing in DRAWINGS.items():
        page = args.folder / f"{name}.md"
        try:
            text = with_table(page.read_text("utf-8"), drawing)
            page.write_text(text, encoding="utf-8")
            page.with_suffix(".svg").write_text(render(drawing), encoding="utf-8")
        except (OSError, ValueError) as error:
            return ending.refuse(f"{page}: {error}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
