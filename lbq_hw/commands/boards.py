"""The table of all boards: ``python -m lbq_hw.commands.boards``."""

from __future__ import annotations

import json
import sys

from rich import box
from rich.console import Console
from rich.table import Table

from lbq_hw import boards
from lbq_hw.commands import ending
from lbq_hw.commands.parser import Parser
from lbq_hw.sizing.door import line_of


def main(argv: list[str] | None = None, *, prog: str = "python -m lbq_hw.commands.boards") -> int:
    parser = Parser(
        prog=prog,
        description="List the known boards, each with its FPGA's resources, the clock of its core, "
        "and the highest rate of its line. docs/boards.md tells how to describe your own board.",
    )
    parser.add_argument("--json", action="store_true", help="print a JSON array, no table")
    list_boards(as_json=parser.parse_args(argv).json)
    return 0


def list_boards(*, as_json: bool) -> None:
    """Print all boards."""
    found = [boards.find(name) for name in boards.names()]
    if as_json:
        print(json.dumps([board.facts() for board in found]))
        return
    table = Table(box=box.SIMPLE, padding=0)
    for heading in ("name", "device", "LUTs", "BRAM", "SPRAM", "SDRAM", "MHz", "core", "Mbaud"):
        left = heading in ("name", "device")
        table.add_column(heading, justify="left" if left else "right", no_wrap=True)
    for board in found:
        counts = (board.luts, board.block_rams, board.sprams)
        table.add_row(
            board.name,
            board.device,
            *(f"{count:,}" if count else "" for count in counts),
            "" if board.chip is None else f"{board.chip.size_bytes >> 20} MB",
            *(f"{hertz / 1e6:.4g}" for hertz in (board.clock_hz, board.target_hz)),
            f"{line_of(board, board.target_hz).baud / 1e6:g}",
        )
    Console().print(table)


if __name__ == "__main__":
    sys.exit(ending.run(main))
