"""No board: the whole design in a simulator, behind a pseudo-terminal."""

from lbq_hw.boards import Board

BOARD = Board(
    name="sim",
    title="simulation",
    device="none",
    family=None,
    clock_hz=48_000_000,
    target_hz=48_000_000,
    baud=3_000_000,
)
