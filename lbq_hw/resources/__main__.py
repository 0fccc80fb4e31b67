"""The estimates beside the measurements: ``python -m lbq_hw.resources``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from lbq_hw.commands import ending
from lbq_hw.commands.parser import Parser
from lbq_hw.resources import add, compare, measured
from lbq_hw.resources.door import cells_of_door
from lbq_hw.resources.left_out import left_out, worst
from lbq_hw.resources.model import small_of


def main(argv: Sequence[str] | None = None) -> int:
    parser = Parser(
        prog="python -m lbq_hw.resources",
        description="Print the model's estimate beside the measurement for each placed build.",
    )
    parser.add_argument(
        "--add",
        type=Path,
        nargs="+",
        default=[],
        metavar="DIR",
        help="add finished builds to the measurements",
    )
    parser.add_argument(
        "--leave-out",
        action="store_true",
        help="estimate each build from all others: shows how far the model can be trusted",
    )
    args = parser.parse_args(argv)
    try:
        for folder in args.add:
            add(folder, small=small_of, door=cells_of_door)
    except (OSError, ValueError) as error:
        return ending.refuse(error)
    if args.leave_out:
        _show_left_out()
        return 0
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


def _show_left_out() -> None:
    found = left_out(measured())
    print("board          lanes     LUTs est. / seen            Fmax est. / seen, MHz")
    for one in found:
        clock = "not measured, or the only one"
        if one.fmax_error is not None:
            clock = f"{one.fmax_mhz:6.1f} / {one.fmax_seen} {100 * one.fmax_error:+5.1f} %"
        print(
            f"{one.board:14} {one.lanes:5} {one.luts:10,} / {one.luts_seen:6,} "
            f"{100 * one.luts_error:+5.1f} %   {clock}"
        )
    for name, errors in (
        ("LUTs", [one.luts_error for one in found]),
        ("Fmax", [one.fmax_error for one in found if one.fmax_error is not None]),
    ):
        mean, most, within = worst(errors)
        print(
            f"{name}: {len(errors)} builds, each left out in turn: mean error {100 * mean:.1f} %, "
            f"largest {100 * most:.1f} %, {within} within 10 %"
        )


if __name__ == "__main__":
    sys.exit(main())
