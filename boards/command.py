"""Tables of the boards for the documentation: ``python -m boards --help``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from lbq_hw.boards import pages


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m boards",
        description="Write the tables of all boards into boards.md and bring-up.md of a folder.",
    )
    parser.add_argument("folder", type=Path, metavar="DIR")
    folder = parser.parse_args(argv).folder
    try:
        pages.write(folder)
    except (OSError, ValueError) as error:
        print(f"boards: {error}", file=sys.stderr)
        return 2
    return 0
