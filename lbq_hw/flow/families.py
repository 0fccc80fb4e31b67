"""What each family of fabrics asks of the tools: their command lines, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lbq_hw.boards import Board


@dataclass(frozen=True, kw_only=True)
class Family:
    """Tools of a family by their names in `lbq_hw.tools`, file suffixes, and command lines.

    `constraints`, `placed`, `bitstream`: suffixes of the files that hold pins, the routed design
    and the bits. `synth` is the Yosys command for a board, and for a core that takes nearly all
    of its block RAMs; `place` gives nextpnr's arguments for its netlist, pins and output; `pack`
    those of the packer. `routed` is the file of the routed netlist, where `place` writes one too.
    """

    placer: str
    packer: str
    constraints: str
    placed: str
    bitstream: str
    synth: Callable[[Board, bool], str]
    place: Callable[[str, str, str], list[str]]
    pack: Callable[[Board, str, str], list[str]]
    routed: str = ""


def _synth_ice40(board: Board, _full: bool) -> str:
    device = "u" if board.sprams else "hx"
    # Eight cells share one enable: with one for each few registers a full chip has no legal places.
    enables = "-dffe_min_ce_use 6"
    return f"synth_ice40 -device {device} {enables} -top top -json netlist.json"


def _synth_ecp5(_board: Board, _full: bool) -> str:
    # abc9 refuses the names that Amaranth gives to elements of arrays
    return "rename -hide w:*[*; synth_ecp5 -top top -json netlist.json"


def _synth_gowin(board: Board, full: bool) -> str:
    family = "gw2a" if board.device.startswith("GW2A") else "gw1n"
    # A memory of 16 x 4 bits takes a whole tile of logic: block RAMs are better while there are
    # any, but registers, which keep the LUT beside them from other use, are worse.
    options = "" if full else "-nolutram "
    return f"synth_gowin -family {family} {options}-top top -json netlist.json"


FAMILIES = {
    "ice40": Family(
        placer="nextpnr-ice40",
        packer="icepack",
        constraints="pcf",
        placed="asc",
        bitstream="bin",
        synth=_synth_ice40,
        place=lambda netlist, pins, out: ["--json", netlist, "--pcf", pins, "--asc", out],
        pack=lambda board, placed, out: [*board.pack, placed, out],
    ),
    "ecp5": Family(
        placer="nextpnr-ecp5",
        packer="ecppack",
        constraints="lpf",
        placed="config",
        bitstream="bit",
        synth=_synth_ecp5,
        place=lambda netlist, pins, out: [
            "--json", netlist, "--lpf", pins, "--textcfg", out, "--write", "routed.json"
        ],
        pack=lambda board, placed, out: [*board.pack, "--input", placed, "--bit", out],
        routed="routed.json",
    ),
    "gowin": Family(
        placer="nextpnr-gowin",
        packer="gowin_pack",
        constraints="cst",
        placed="json",
        bitstream="fs",
        synth=_synth_gowin,
        place=lambda netlist, pins, out: [
            "--json", netlist, "--vopt", f"cst={pins}", "--write", out
        ],
        pack=lambda board, placed, out: [*board.pack, "-o", out, placed],
    ),
}  # fmt: skip


def of(board: Board) -> Family:
    """The family of a board with a fabric."""
    if board.family is None:
        raise ValueError(f"board {board.name!r} has no fabric")
    return FAMILIES[board.family]


def script(board: Board, *, full: bool = False) -> str:
    """The Yosys script: from Verilog, since attributes such as no_rw_check work only there.

    `full`: the core takes nearly all block RAMs.
    """
    return f"read_verilog top.v; {of(board).synth(board, full)}; tee -q -o cells.json stat -json"


def place_arguments(board: Board, *, clock_hz: int, seed: int, full: bool = False) -> list[str]:
    """nextpnr's arguments for the files of a build. It must not fail at a missed clock.

    `full`: the core takes nearly all block RAMs. On an ECP5, nextpnr's first router had then routed
    a fifth of the arcs after ten minutes, and the second was done in fewer. Its placer draws logic
    together and leaves a quarter of the chip empty, so that wires are led around full places; with
    less pull they are not (beta). With twice its own step (alpha) it settles sooner, and may end in
    a better or a worse place: odd seeds take the large step, even ones its own, so that both are
    tried where the clock is missed.
    """
    family, step = of(board), "0.2" if seed % 2 else "0.1"
    files = family.place("netlist.json", f"top.{family.constraints}", f"placed.{family.placed}")
    return [
        *board.place,
        *files,
        "--freq",
        f"{clock_hz / 1e6:g}",
        "--seed",
        str(seed),
        "--report",
        "place.json",
        "--timing-allow-fail",
        *(
            ["--router", "router2", "--placer-heap-beta", "0.6", "--placer-heap-alpha", step]
            if full and board.family == "ecp5"
            else []
        ),
    ]


def pack_arguments(board: Board) -> list[str]:
    family = of(board)
    arguments = family.pack(board, f"placed.{family.placed}", f"top.{family.bitstream}")
    return [*arguments, "--svf", svf(board)] if svf(board) else arguments


def svf(board: Board) -> str:
    """The file with the bitstream as an SVF, for a board that is programmed by it; or nothing."""
    return "top.svf" if "{svf}" in board.program else ""
