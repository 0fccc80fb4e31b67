"""Second sources: the pins of a board according to other projects, compared signal by signal.

``second_sources.json`` has only facts, with the origin of each board's: a repository, a commit and
a file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from amaranth.build.res import PortGroup

from lbq_hw.boards import Board
from lbq_hw.markdown import table

__all__ = ["Row", "agreement", "compare", "facts", "own"]

_STANDARDS = ("IO_TYPE", "IO_STANDARD")


@dataclass(frozen=True, kw_only=True)
class Row:
    """A signal of a board: its `pins` and its IO `standard` here, and in the second source; empty
    if that does not say them.
    """

    signal: str
    pins: str
    standard: str
    their_pins: str
    their_standard: str

    @property
    def agrees(self) -> bool:
        """Whether both sources agree. The order of data lines is free. A differential pair is given
        by its positive pin. IO standards of an iCE40 are not compared, since every project names
        them differently.
        """
        ours, theirs = self.pins.split(), self.their_pins.split()
        if self.signal == "sdram dq":
            ours, theirs = sorted(ours), sorted(theirs)
        named = self.their_standard and not self.standard.startswith(("SB_", "LVTTL"))
        return ours == theirs and (not named or self.standard == self.their_standard)


@cache
def facts() -> dict[str, Any]:
    """The data file."""
    return json.loads(Path(__file__).with_name("second_sources.json").read_text("utf-8"))


def own(board: Board) -> dict[str, tuple[str, str]]:
    """Signals of a board by their roles: pins and IO standard."""
    platform = board.make_platform()
    asked = [("clock", (board.clock, 0)), ("", board.uart), ("led", board.led)]
    asked += [("sdram", ("sdram", 0))] if board.sdram else []
    asked += [(f"hold {name}", (name, number)) for name, number, _ in board.hold]
    found: dict[str, tuple[str, str]] = {}
    for role, resource in asked:
        if resource is not None:
            port = platform.request(*resource, dir="-")
            found |= {name.strip(): value for name, value in _walk(port, role)}
    return {
        name: value
        for name, value in found.items()
        if name not in ("rts", "cts", "dtr", "dsr", "dcd")
    }


def compare(board: Board) -> list[Row]:
    """Every signal that a design uses, beside the second source's pin and standard."""
    said = facts()["boards"].get(board.name, {"signals": {}})["signals"]
    return [
        Row(
            signal=signal,
            pins=pins,
            standard=standard,
            their_pins=said.get(signal, {}).get("pins", ""),
            their_standard=said.get(signal, {}).get("standard", ""),
        )
        for signal, (pins, standard) in own(board).items()
    ]


def agreement(found: list[Board]) -> str:
    """Which second source agrees on which signals of which board."""
    rows = []
    for board in found:
        if board.family is not None:
            compared = compare(board)
            said = [row for row in compared if row.their_pins]
            rows.append(
                [
                    f"`{board.name}`",
                    facts()["boards"].get(board.name, {}).get("origin", "none"),
                    _names(row.signal for row in said if row.agrees),
                    _names(row.signal for row in said if not row.agrees) or "none",
                    _names(row.signal for row in compared if not row.their_pins) or "none",
                ]
            )
    headings = ["board", "second source", "agrees", "differs", "says nothing"]
    return table(headings, rows, words=(0, 1, 2, 3, 4))


def _names(signals: Iterator[str]) -> str:
    """Signals in words; those of the SDRAM together."""
    found = list(signals)
    memory = [name.removeprefix("sdram ") for name in found if name.startswith("sdram ")]
    others = [name for name in found if not name.startswith("sdram ")]
    return ", ".join(others + ([f"SDRAM ({' '.join(memory)})"] if memory else []))


def _walk(port: Any, name: str) -> Iterator[tuple[str, tuple[str, str]]]:
    if isinstance(port, PortGroup):
        for part, inner in vars(port).items():
            yield from _walk(inner, f"{name} {part}")
        return
    pads = (port.io if hasattr(port, "io") else port.p).metadata
    standard = next((pads[0].attrs[key] for key in _STANDARDS if key in pads[0].attrs), "")
    yield name, (" ".join(pad.name for pad in pads), str(standard))
