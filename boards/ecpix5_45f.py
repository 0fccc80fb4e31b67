"""LambdaConcept ECPIX-5 with an LFE5UM5G-45F."""

from lbq_hw.boards import Board
from lbq_hw.boards.bridges import FT2232H

BOARD = Board(
    name="ecpix5-45f",
    title="ECPIX-5 45F",
    device="LFE5UM5G-45F-8BG554I",
    family="ecp5",
    platform="lbq_hw.boards.platforms:ECPIX545BoardPlatform",
    luts=43848,
    block_rams=108,
    clock="clk100",
    clock_hz=100_000_000,
    pll="ehxplll",
    target_hz=80_000_000,
    baud=1_000_000,
    bridge=FT2232H,
    place=("--um5g-45k", "--package", "CABGA554", "--speed", "8"),
    pack=("--compress",),
    program="openFPGALoader -b ecpix5 {}  # R03: -b ecpix5_r03",
    usb="0403:6010, channel B (R03: 0403:6011, not channel A)",
    light="green",
)
