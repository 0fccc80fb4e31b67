"""Sipeed Tang Nano 20K."""

from lbq_hw.boards import Board
from lbq_hw.boards.bridges import BL616

BOARD = Board(
    name="tang-nano-20k",
    title="Tang Nano 20K",
    device="GW2AR-LV18QN88C8/I7",
    family="gowin",
    platform="lbq_hw.boards.platforms:TangNano20kPlatform",
    luts=20736,
    block_rams=46,
    clock="clk27",
    clock_hz=27_000_000,
    pll="rpll_gw2ar",
    target_hz=60_000_000,
    sdram="Tang Nano 20K",
    baud=115_200,
    bridge=BL616,
    place=("--device", "GW2AR-LV18QN88C8/I7", "--vopt", "family=GW2A-18C"),
    pack=("-d", "GW2A-18C", "--sspi_as_gpio", "--mspi_as_gpio"),
    program="openFPGALoader -b tangnano20k {}",
    usb="0403:6010, channel B",
)
