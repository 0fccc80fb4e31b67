"""Draw the core and list its blocks: ``python -m lbq_hw.diagram --help``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from lbq_hw.diagram.components import table
from lbq_hw.diagram.drawing import CORE
from lbq_hw.diagram.svg import render

BEGIN = "<!-- blocks: python -m lbq_hw.diagram docs -->\n"
END = "<!-- /blocks -->"


def with_table(page: str) -> str:
    """The page with today's table of blocks between its two marks."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise ValueError(f"the page must have {BEGIN.strip()!r} and then {END!r}")
    return f"{before}{begin}{table(CORE)}{end}{after}"


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m lbq_hw.diagram",
        description="Print the block diagram of the core as SVG. With a folder, write it to "
        "architecture.svg there, and the table of blocks into architecture.md.",
    )
    parser.add_argument("folder", type=Path, nargs="?", metavar="DIR")
    folder = parser.parse_args(argv).folder
    if folder is None:
        print(render(CORE), end="")
        return 0
    page = folder / "architecture.md"
    try:
        text = with_table(page.read_text("utf-8"))
        page.write_text(text, encoding="utf-8")
        (folder / "architecture.svg").write_text(render(CORE), encoding="utf-8")
    except (OSError, ValueError) as error:
        print(f"{page}: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
