"""All boards in one table: what they are."""

from __future__ import annotations

import json

from rich import box
from rich.console import Console
from rich.table import Table

from lbq_hw import boards


def list_boards(*, as_json: bool) -> None:
    """Print what the boards are."""
    found = [boards.find(name) for name in boards.names()]
    if as_json:
        print(json.dumps([board.facts() for board in found]))
        return
    table = Table(box=box.SIMPLE, padding=0)
    for heading in ("name", "device", "LUTs", "BRAM", "SPRAM", "SDRAM", "MHz", "core"):
        left = heading in ("name", "device")
        table.add_column(heading, justify="left" if left else "right", no_wrap=True)
    for board in found:
        counts = (board.luts, board.block_rams, board.sprams)
        table.add_row(
            board.name,
            board.device,
            *(f"{count:,}" if count else "" for count in counts),
            "" if board.chip is None else f"{board.chip.size_bytes >> 20} MB",
            *(f"{hertz / 1e6:g}" for hertz in (board.clock_hz, board.target_hz)),
        )
    Console().print(table)
