"""1BitSquared iCEBreaker: UP5K with single-port memories that hold the weights."""

from lbq_hw.boards import Board
from lbq_hw.boards.bridges import FT2232H

BOARD = Board(
    name="icebreaker",
    title="iCEBreaker",
    device="iCE40UP5K-SG48",
    family="ice40",
    platform="amaranth_boards.icebreaker:ICEBreakerPlatform",
    luts=5280,
    block_rams=30,
    sprams=4,
    clock="clk12",
    clock_hz=12_000_000,
    pll="sb_pll40_pad",
    target_hz=30_000_000,
    baud=1_000_000,
    bridge=FT2232H,
    place=("--up5k", "--package", "sg48"),
    program="iceprog {}",
    usb="0403:6010, channel B",
    light="red",
)
