"""Tables of the boards for the documentation, from their files and platforms."""

from __future__ import annotations

from pathlib import Path

from lbq_hw import boards, families
from lbq_hw.boards import Board, pins, sources
from lbq_hw.markdown import table

__all__ = ["bridges", "first_light", "sizes", "write"]


def sizes(found: list[Board]) -> str:
    """The resources of each board's FPGA."""
    rows = [
        [
            f"`{board.name}`",
            board.device,
            f"{board.luts:,}" if board.luts else "",
            _memory(board),
            "" if board.chip is None else f"{board.chip.size_bytes >> 20} MB",
            *(f"{hertz / 1e6:.4g} MHz" for hertz in (board.clock_hz, board.target_hz)),
        ]
        for board in found
    ]
    headings = ["board", "device", "LUTs", "memory", "external", "clock in", "core"]
    return table(headings, rows, words=(0, 1, 3))


def first_light(found: list[Board]) -> str:
    """How each board is programmed, and how the host reaches it."""
    rows = [
        [
            f"`{board.name}`",
            f"`{board.command('FILE')}`",
            board.usb,
            f"{board.baud:,}",
            "the adapter's" if board.bridge is None else f"{board.bridge.rates[0]:,}",
            _light(board),
        ]
        for board in found
        if board.family is not None
    ]
    headings = ["board", "command", "USB", "baud after reset", "highest baud", "LED"]
    return table(headings, rows, words=(0, 1, 2, 5))


def bridges(found: list[Board]) -> str:
    """The USB bridges, their rates, and the sources of these."""
    kinds = {board.bridge.name: board.bridge for board in found if board.bridge is not None}
    rows = [
        [
            name,
            ", ".join(f"`{board.name}`" for board in found if board.bridge == bridge),
            ", ".join(f"{rate:,}" for rate in bridge.rates),
            bridge.source,
        ]
        for name, bridge in kinds.items()
    ]
    return table(["bridge", "boards", "rates, baud", "source"], rows, words=(0, 1, 2, 3))


TABLES = (
    ("boards.md", "boards", sizes),
    ("boards.md", "second sources", sources.agreement),
    ("bring-up.md", "boards", first_light),
    ("bring-up.md", "bridges", bridges),
)
"""Pages, the words of the marks in them, and what makes the table between these."""


def write(folder: Path) -> None:
    """Put the tables into the pages of a folder, each between its two marks."""
    found = [boards.find(name) for name in boards.names()]
    for name, words, made in TABLES:
        page = folder / name
        text = with_table(page.read_text(encoding="utf-8"), words, made(found))
        page.write_text(text, encoding="utf-8")


def with_table(page: str, words: str, table: str) -> str:
    """The page with a table between the two marks of these words; ValueError without a mark."""
    first, last = f"<!-- {words}: python -m boards docs -->\n", f"<!-- /{words} -->"
    before, begin, rest = page.partition(first)
    _, end, after = rest.partition(last)
    if not end:
        raise ValueError(f"the page must have {first.strip()!r} and then {last!r}")
    return f"{before}{begin}{table}{end}{after}"


def _memory(board: Board) -> str:
    if board.family is None:
        return ""
    blocks = f"{board.block_rams} x {families.of(board).block_bits >> 10} Kb"
    return f"{blocks}, {board.sprams} x 256 Kb" if board.sprams else blocks


def _light(board: Board) -> str:
    found = ", ".join(f"pin {pin}" for pin in pins.pins(board, "led"))
    return ", ".join(filter(None, [found or "none", board.light]))
