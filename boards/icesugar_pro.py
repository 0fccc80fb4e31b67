"""MuseLab iCESugar-pro."""

from lbq_hw.boards import Board
from lbq_hw.boards.bridges import DAPLINK

BOARD = Board(
    name="icesugar-pro",
    title="iCESugar-pro",
    device="LFE5U-25F-6BG256C",
    family="ecp5",
    platform="lbq_hw.boards.platforms:ICESugarProBoardPlatform",
    luts=24288,
    block_rams=56,
    clock="clk25",
    clock_hz=25_000_000,
    pll="ehxplll",
    target_hz=75_000_000,
    sdram="iCESugar-pro",
    baud=115_200,
    bridge=DAPLINK,
    place=("--25k", "--package", "CABGA256", "--speed", "6"),
    pack=("--compress",),
    program="openFPGALoader -c cmsisdap --vid 0x1d50 --pid 0x602b {}",
    usb="1d50:602b",
    light="green",
)
