"""The line of a board at its best, and the core's door to it."""

from __future__ import annotations

import numpy as np

from lbq_hw.boards import Board
from lbq_hw.compiler import Program
from lbq_hw.host.estimate import Line, best_line
from lbq_hw.isa import link, regions
from lbq_hw.isa.door import MOST_RESULTS, Opening
from lbq_hw.isa.regions import Region

FRAME_BITS = 4 * link.FRAME_WORDS * link.BYTE_BITS  # of the longest frame on the line, at least


def line_of(board: Board, clock_hz: int) -> Line:
    """The line at the highest rate that the board's bridge and a core at a clock both can do."""
    bridge = board.bridge
    if bridge is None:
        return best_line((), clock_hz=clock_hz, baud=board.baud)
    return best_line(bridge.rates, clock_hz=clock_hz, baud=board.baud, latency=bridge.latency)


def opening_of(program: Program, board: Board, *, clock_hz: int, cycles: float) -> Opening:
    """Of the door of a core that takes `cycles` for an image; ValueError for too many logits."""
    entries = program.logits(np.arange(program.logit_words)).max() + 1
    slices = regions.slices(program.config)[Region.LOGITS] * int(entries)
    if slices > MOST_RESULTS:
        raise ValueError(
            f"a door gives results of at most {MOST_RESULTS} words, and {program.name!r} has "
            f"{slices}: build it without --door"
        )
    pixels, frame = program.pixels, FRAME_BITS / line_of(board, clock_hz).baud * clock_hz
    # While a shorter run is under way, the frame after its last pixel is still on the line.
    return Opening(pixels=pixels, results=slices, queue=pixels.words + 1 if cycles > frame else 0)
