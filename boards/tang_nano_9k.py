"""Sipeed Tang Nano 9K."""

from lbq_hw.boards import Board
from lbq_hw.boards.bridges import BL702

BOARD = Board(
    name="tang-nano-9k",
    title="Tang Nano 9K",
    device="GW1NR-LV9QN88PC6/I5",
    family="gowin",
    platform="lbq_hw.boards.platforms:TangNano9kBoardPlatform",
    luts=8640,
    block_rams=26,
    clock="clk27",
    clock_hz=27_000_000,
    pll="rpll_gw1nr",
    target_hz=54_000_000,
    baud=115_200,
    bridge=BL702,
    place=("--device", "GW1NR-LV9QN88PC6/I5", "--vopt", "family=GW1N-9C"),
    pack=("-d", "GW1N-9C", "--sspi_as_gpio", "--mspi_as_gpio"),
    program="openFPGALoader -b tangnano9k {}",
    usb="0403:6010, channel B",
)
