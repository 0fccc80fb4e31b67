"""The estimates beside the measurements: ``python -m lbq_hw.resources``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from lbq_hw.boards import Board
from lbq_hw.commands import ending
from lbq_hw.commands.parser import Parser
from lbq_hw.isa.door import Opening
from lbq_hw.resources import add, compare, measured, of_door
from lbq_hw.resources.model import small_of


def main(argv: Sequence[str] | None = None) -> int:
    parser = Parser(
        prog="python -m lbq_hw.resources",
        description="Print what the model estimates for each build that was placed, beside the "
        "measurement.",
    )
    parser.add_argument(
        "--add",
        type=Path,
        nargs="+",
        default=[],
        metavar="DIR",
        help="join finished builds to the measurements",
    )
    try:
        for folder in parser.parse_args(argv).add:
            add(folder, small=small_of, door=_of_door)
    except (OSError, ValueError) as error:
        return ending.refuse(error)
    print("board          lanes     LUTs est. / seen  block RAMs   Fmax est. / seen, MHz")
    for row in compare(measured()):
        guess = row["estimate"]
        guessed = f"{guess['fmax_hz'] / 1e6:6.1f}" if guess["fmax_hz"] else "not measured"
        print(
            f"{row['board']:14} {row['lanes']:5} {guess['luts']:10,} / {row['luts']:6,}  "
            f"{guess['block_rams']:4} / {row['block_rams']:3}   "
            f"{guessed} / {row['fmax_mhz'] or 'not placed'}"
        )
    return 0


def _of_door(opening: Opening, board: Board) -> tuple[int, int]:
    found = of_door(opening, board)
    return found.luts, found.block_rams


if __name__ == "__main__":
    sys.exit(main())
