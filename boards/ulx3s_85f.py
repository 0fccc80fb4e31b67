"""Radiona ULX3S with an LFE5U-85F."""

from lbq_hw.boards import Board
from lbq_hw.boards.bridges import FT231X

BOARD = Board(
    name="ulx3s-85f",
    title="ULX3S-85F",
    device="LFE5U-85F-6BG381C",
    family="ecp5",
    platform="lbq_hw.boards.platforms:ULX3S85FBoardPlatform",
    luts=83640,
    block_rams=208,
    clock="clk25",
    clock_hz=25_000_000,
    pll="ehxplll",
    target_hz=75_000_000,
    sdram="ULX3S",
    hold=(("wifi_gpio0", 0, 1),),
    baud=1_000_000,
    bridge=FT231X,
    place=("--85k", "--package", "CABGA381", "--speed", "6"),
    pack=("--compress",),
    program="openFPGALoader -b ulx3s {}",
    usb="0403:6015",
)
