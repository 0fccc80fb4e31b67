"""Block RAMs of a core with external memory: what its memories take, counted as Yosys does."""

from __future__ import annotations

from boards import Board
from lbq_hw.config import CoreConfig
from lbq_hw.external.reader import ReaderTiming
from lbq_hw.resources.memories import Memory, blocks, memories


def block_rams(
    config: CoreConfig, board: Board, timing: ReaderTiming, *, partial_words: int, partial_bits: int
) -> dict[str, int]:
    """Block RAMs by what they hold. Weight rows are written whole, so they need no enables."""
    if board.family is None:
        raise ValueError(f"board {board.name!r} has no block RAMs: it is only simulated")
    found: dict[str, int] = dict.fromkeys(("planes", "weights", "partial sums", "tape", "rest"), 0)
    for memory in memories(config, board):
        kind = "planes" if memory.name.startswith("core.planes.planes_") else "rest"
        if not memory.name.startswith("core.lanes."):
            found[kind] += blocks(memory, board.family)
    row = config.lanes * config.weight_bits
    sums = config.units * partial_bits
    for kind, depth, width in (
        ("weights", config.weight_rows, row),
        ("partial sums", partial_words, sums),
        ("tape", timing.fifo_pages * timing.page_words, timing.word_bits),
    ):
        held = Memory(name=kind, depth=depth, width=width, granule=width)
        found[kind] = blocks(held, board.family) if depth else 0
    return found
