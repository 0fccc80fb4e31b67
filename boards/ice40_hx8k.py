"""Lattice iCE40-HX8K breakout board."""

from lbq_hw.boards import Board
from lbq_hw.boards.bridges import FT2232H

BOARD = Board(
    name="ice40-hx8k",
    title="iCE40-HX8K breakout",
    device="iCE40HX8K-CT256",
    family="ice40",
    platform="amaranth_boards.ice40_hx8k_b_evn:ICE40HX8KBEVNPlatform",
    luts=7680,
    block_rams=32,
    clock="clk12",
    clock_hz=12_000_000,
    pll="sb_pll40_core",
    target_hz=48_000_000,
    baud=1_000_000,
    bridge=FT2232H,
    place=("--hx8k", "--package", "ct256"),
    program="iceprog -S {}",
    usb="0403:6010, channel B",
)
