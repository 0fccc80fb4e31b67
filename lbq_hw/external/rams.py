"""Block RAMs of a core with external memory by what they hold, counted as Yosys does."""

from __future__ import annotations

from lbq_hw.boards import Board
from lbq_hw.config import CoreConfig
from lbq_hw.resources.memories import blocks, memories

_KINDS = {
    "core.planes.planes_": "planes",
    "core.lanes.": "weights",
    "core.neurons.partial.": "partial sums",
    "memory.sdram.queue.": "tape",
}


def block_rams(config: CoreConfig, board: Board) -> dict[str, int]:
    """Block RAMs of planes, weights, partial sums and tape, and of the rest."""
    if board.family is None:
        raise ValueError(f"board {board.name!r} has no block RAMs: it is only simulated")
    found = dict.fromkeys((*_KINDS.values(), "rest"), 0)
    for memory in memories(config, board):
        kinds = [kind for start, kind in _KINDS.items() if memory.name.startswith(start)]
        found[kinds[0] if kinds else "rest"] += blocks(memory, board.family)
    return found
