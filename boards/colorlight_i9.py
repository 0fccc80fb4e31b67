"""Colorlight i9 on MuseLab's extension board."""

from lbq_hw.boards import Board
from lbq_hw.boards.bridges import DAPLINK

BOARD = Board(
    name="colorlight-i9",
    title="Colorlight i9",
    device="LFE5U-45F-6BG381C",
    family="ecp5",
    platform="lbq_hw.boards.platforms:ColorlightI9Platform",
    luts=43848,
    block_rams=108,
    clock="clk25",
    clock_hz=25_000_000,
    pll="ehxplll",
    target_hz=75_000_000,
    sdram="Colorlight",
    baud=115_200,
    bridge=DAPLINK,
    place=("--45k", "--package", "CABGA381", "--speed", "6"),
    pack=("--compress",),
    program="openFPGALoader -b colorlight-i9 {}",
    usb="0d28:0204",
)
