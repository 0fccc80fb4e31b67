"""Boards that the core is built for: one data file each, docs/boards.md says how to add one."""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from dataclasses import dataclass, fields
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lbq_hw.external.chips import Chip

FAMILIES = ("ice40", "ecp5", "gowin")
_HELPERS = ("clocks", "platforms", "top")
_COUNTS = ("luts", "block_rams", "sprams", "clock_hz", "target_hz", "baud")


class BoardError(ValueError):
    """A board that does not exist; one sentence with the nearest names."""


@dataclass(frozen=True, kw_only=True)
class Board:
    """What the flow knows of a board; everything else comes from its Amaranth platform.

    `name`, as given to ``--board``; `title`; `device`, as its maker calls it; `family`, one of
    `FAMILIES`, or None for a board without a fabric, which is only simulated. `platform` is
    ``module:Class``, imported when it is first asked for.

    Resources that nextpnr can place into: `luts` of four inputs, `block_rams`, and `sprams` of
    16 K x 16 bits.

    Clock: the resource `clock` runs at `clock_hz`; `pll`, a key of `boards.clocks.PLLS`, makes
    `target_hz` of it, what a build aims at unless told otherwise.

    Memory: `sdram`, the name of a chip in `lbq_hw.external.chips.CHIPS`, at the resource ``sdram``.

    Link: the resource `uart`, at `baud`; `led` lights while the core is busy.

    Tools: `place`, options of nextpnr that name the device; `pack`, options of the packer;
    `program`, the command that loads a bitstream, which replaces ``{}``.
    """

    name: str
    title: str
    device: str
    family: str | None
    platform: str = ""
    luts: int = 0
    block_rams: int = 0
    sprams: int = 0
    clock: str = ""
    clock_hz: int
    pll: str = ""
    target_hz: int
    sdram: str = ""
    uart: tuple[str, int] = ("uart", 0)
    led: tuple[str, int] = ("led", 0)
    baud: int
    place: tuple[str, ...] = ()
    pack: tuple[str, ...] = ()
    program: str = ""

    def __post_init__(self) -> None:
        if self.family is not None and self.family not in FAMILIES:
            raise ValueError(f"family must be one of {', '.join(FAMILIES)}, not {self.family!r}")
        for name in _COUNTS:
            value = getattr(self, name)
            if type(value) is not int or value < 0:
                raise ValueError(f"{name} must be a non-negative integer, not {value!r}")
        if self.family is not None:
            for name in ("platform", "luts", "block_rams", "clock", "pll", "place", "program"):
                if not getattr(self, name):
                    raise ValueError(f"{name} must be given for a board with a fabric")

    @property
    def chip(self) -> Chip | None:
        """The external memory, if there is one."""
        from lbq_hw.external.chips import CHIPS

        return next((chip for chip in CHIPS if chip.name == self.sdram), None)

    def make_platform(self) -> Any:
        """A fresh Amaranth platform; it serves one build."""
        if self.family is None:
            raise ValueError(f"board {self.name!r} has no platform: it is only simulated")
        module, _, kind = self.platform.partition(":")
        made = getattr(importlib.import_module(module), kind)
        return made(toolchain="Apicula") if self.family == "gowin" else made()

    def facts(self) -> dict[str, Any]:
        """Every field, for JSON."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


@cache
def _boards() -> dict[str, Board]:
    found = [
        importlib.import_module(f"{__name__}.{module.name}").BOARD
        for module in pkgutil.iter_modules(__path__)
        if module.name not in _HELPERS
    ]
    return {board.name: board for board in sorted(found, key=lambda board: board.name)}


def names() -> list[str]:
    """Names of all boards, sorted."""
    return list(_boards())


def find(name: str) -> Board:
    """The board of this name; BoardError with the nearest names if there is none."""
    known = _boards()
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name.lower().replace("_", "-"), known, n=3, cutoff=0.4)
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(known)}"
    raise BoardError(f"no board {name!r}: {hint}")
