"""The line of a board at its best, for estimates of what a host sees."""

from __future__ import annotations

from lbq_hw.boards import Board
from lbq_hw.host.estimate import Line, best_line


def line_of(board: Board, clock_hz: int) -> Line:
    """The line at the highest rate that the board's bridge and a core at a clock both can do."""
    bridge = board.bridge
    if bridge is None:
        return best_line((), clock_hz=clock_hz, baud=board.baud)
    return best_line(bridge.rates, clock_hz=clock_hz, baud=board.baud, latency=bridge.latency)
