"""Lattice Versa with an LFE5UM5G-45F."""

from lbq_hw.boards import Board
from lbq_hw.boards.bridges import FT2232H

BOARD = Board(
    name="versa-ecp5-5g",
    title="Versa ECP5-5G",
    device="LFE5UM5G-45F-8BG381C",
    family="ecp5",
    platform="amaranth_boards.versa_ecp5_5g:VersaECP55GPlatform",
    luts=43848,
    block_rams=108,
    clock="clk100",
    clock_hz=100_000_000,
    pll="ehxplll",
    target_hz=80_000_000,
    baud=1_000_000,
    bridge=FT2232H,
    place=("--um5g-45k", "--package", "CABGA381", "--speed", "8"),
    pack=("--compress",),
    program='openocd -c "adapter driver ftdi; ftdi vid_pid 0x0403 0x6010; '
    "ftdi layout_init 0xfff8 0xfffb; adapter speed 25000; transport select jtag; reset_config "
    'none; jtag newtap ecp5 tap -irlen 8 -expected-id 0x81112043; init; svf {svf}; exit"',
    usb="0403:6010, channel B",
)
