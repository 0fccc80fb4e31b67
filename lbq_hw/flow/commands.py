"""Command lines of a build's tools."""

from __future__ import annotations

from lbq_hw import families
from lbq_hw.boards import Board


def script(board: Board, *, full: bool = False) -> str:
    """The Yosys script. It reads Verilog, since attributes such as no_rw_check only work there.

    `full`: the core takes nearly all block RAMs.
    """
    synth = families.of(board).synth(board, full)
    return f"read_verilog top.v; {synth}; tee -q -o cells.json stat -json"


def place_arguments(board: Board, *, clock_hz: int, seed: int, full: bool = False) -> list[str]:
    """nextpnr's arguments for the files of a build. A missed clock must not be an error.

    `full`: the core takes nearly all block RAMs.
    """
    family = families.of(board)
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
        *(family.crowded(seed) if full else []),
    ]


def pack_arguments(board: Board) -> list[str]:
    family = families.of(board)
    arguments = family.pack(board, f"placed.{family.placed}", f"top.{family.bitstream}")
    return [*arguments, "--svf", svf(board)] if svf(board) else arguments


def svf(board: Board) -> str:
    """The SVF file with the bitstream, for a board that is programmed with SVF; else empty."""
    return "top.svf" if "{svf}" in board.program else ""
