"""OrangeCrab r0.2 with an LFE5U-25F; the link is a serial adapter at pins 0 (in) and 1 (out)."""

from lbq_hw.boards import Board

BOARD = Board(
    name="orangecrab",
    title="OrangeCrab r0.2 25F",
    device="LFE5U-25F-8MG285C",
    family="ecp5",
    platform="lbq_hw.boards.platforms:OrangeCrabPlatform",
    luts=24288,
    block_rams=56,
    clock="clk",
    clock_hz=48_000_000,
    pll="ehxplll",
    target_hz=80_000_000,
    baud=1_000_000,
    place=("--25k", "--package", "CSFBGA285", "--speed", "8"),
    pack=("--compress", "--freq", "38.8"),
    program="openFPGALoader -b orangeCrab {}",
    usb="1209:5af0, only to program",
    light="green",
)
