"""Decodes a packed bitstream and compares it with the routed design and with the build's request.

Each family has a module with the same two functions. ``decode`` reads the packed file and compares
it with the routed design bit for bit. ``asked`` gives the contents that the file must have, from
the board's file, the PLL's setting and the netlist. docs/bitstreams.md has a table of what is
decoded.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from lbq_hw import families
from lbq_hw.bitstream.base import (
    Asked,
    BitsError,
    Chip,
    Decoded,
    Files,
    MissingError,
    UndecodedError,
    compare,
)  # fmt: skip
from lbq_hw.boards import Board
from lbq_hw.boards.clocks import Setting
from lbq_hw.families import FamilyError

__all__ = [
    "BitsError", "Chip", "Decoded", "Files", "MissingError", "UndecodedError", "check", "files",
    "netlist",
]  # fmt: skip


class Decoder(Protocol):
    """A module that reads the bitstreams of one family."""

    def decode(self, files: Files, board: Board) -> Decoded: ...

    def asked(self, files: Files, board: Board, setting: Setting | None) -> Asked: ...


def files(folder: Path, board: Board) -> Files:
    """The files that the steps of a build leave in a folder."""
    family = families.of(board)
    return Files(
        constraints=folder / f"top.{family.constraints}",
        netlist=folder / "netlist.json",
        placed=folder / f"placed.{family.placed}",
        packed=folder / f"top.{family.bitstream}",
        routed=folder / family.routed if family.routed else None,
    )


def netlist(files: Files, board: Board, folder: Path) -> Chip:
    """The netlist of a packed file, made in `folder`.

    MissingError if the tool that reads the family's bits is missing, or there is no such tool.
    """
    try:
        made = families.module(
            __name__, board.family, suffix="_netlist", what="netlists of bitstreams"
        )
    except FamilyError as error:
        raise MissingError(str(error)) from error
    return made.netlist(files, board, folder)


def check(files: Files, board: Board, setting: Setting | None) -> dict[str, Any]:
    """The contents of a packed file, for JSON. BitsError, in one sentence, if the file is illegal,
    differs from what the router wrote, or is not what was asked for; UndecodedError if no table
    here has its device.
    """
    try:
        made: Decoder = families.module(__name__, board.family, what="decoder of bitstreams")
    except FamilyError as error:
        raise UndecodedError(str(error)) from error
    decoded = made.decode(files, board)
    compare(decoded, made.asked(files, board, setting))
    return {
        "summary": _summary(decoded),
        "device": decoded.device,
        "idcode": None if decoded.idcode is None else f"0x{decoded.idcode:08x}",
        "bits": decoded.bits,
        "pll": decoded.pll,
        "pins": decoded.pins,
        "memories": len(decoded.memories),
        "undecoded": list(decoded.undecoded),
    }


def _summary(found: Decoded) -> str:
    """One line for people."""
    code = "" if found.idcode is None else f", IDCODE 0x{found.idcode:08x}"
    pll = "PLL, " if found.pll else ""
    return (
        f"{found.bits:,} bits as routed ({found.device}{code}); {pll}{len(found.pins)} pins and "
        f"the contents of {len(found.memories)} block RAMs as asked"
    )
