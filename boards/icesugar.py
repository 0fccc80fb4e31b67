"""MuseLab iCESugar: UP5K with single-port memories that hold the weights."""

from lbq_hw.boards import Board
from lbq_hw.boards.bridges import DAPLINK

BOARD = Board(
    name="icesugar",
    title="iCESugar",
    device="iCE40UP5K-SG48",
    family="ice40",
    platform="amaranth_boards.icesugar:ICESugarPlatform",
    luts=5280,
    block_rams=30,
    sprams=4,
    clock="clk12",
    clock_hz=12_000_000,
    pll="sb_pll40_pad",
    target_hz=30_000_000,
    baud=115_200,
    bridge=DAPLINK,
    place=("--up5k", "--package", "sg48"),
    program="icesprog {}",
    usb="1d50:602b",
    light="red",
)
