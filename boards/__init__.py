"""Boards that the core is built for: one data file each, docs/boards.md says how to add one."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import os
import pkgutil
import re
import shlex
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lbq_hw.external.chips import Chip

FAMILIES = ("ice40", "ecp5", "gowin")
_HELPERS = ("__main__", "clocks", "command", "pages", "pins", "platforms", "plls", "top")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}")  # also a folder's and a package's
_COUNTS = ("luts", "block_rams", "sprams", "clock_hz", "target_hz", "baud")


class BoardError(ValueError):
    """A board that does not exist, or cannot be built for; one sentence that says what to do."""


@dataclass(frozen=True, kw_only=True)
class Board:
    """What the flow knows of a board; everything else comes from its Amaranth platform.

    `name`, as given to ``--board``; `title`; `device`, as its maker calls it; `family`, one of
    `FAMILIES`, or None for a board without a fabric, which is only simulated. `platform` is
    ``module:Class``, imported when it is first asked for; ``:Class`` is in the board's own file.
    `file` is that file, for a board that was found by its path; empty for those that ship.

    Resources that nextpnr can place into: `luts` of four inputs, `block_rams`, and `sprams` of
    16 K x 16 bits.

    Clock: the resource `clock` runs at `clock_hz`; `pll`, a key of `boards.clocks.PLLS`, makes
    `target_hz` of it, what a build aims at unless told otherwise.

    Memory: `sdram` names a chip of `lbq_hw.external.chips`, at the resource ``sdram``; empty: there
    is none that a core can read.

    Link: the resource `uart`, at `baud`; `led` lights while the core is busy; None: there is no
    light, or its pin has another use. `hold` are resources that are driven to a constant value,
    each as name, number and value: pins by which another chip would stop or take over the FPGA.

    Tools: `place`, options of nextpnr that name the device; `pack`, options of the packer;
    `program`, the command that loads a bitstream, which replaces ``{}``; with ``{svf}``, on an
    ECP5, the same as an SVF, which is then written beside it. `usb` is what the board is on the
    bus, and `light` the colour of its LED: for the page about first light.
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
    led: tuple[str, int] | None = ("led", 0)
    hold: tuple[tuple[str, int, int], ...] = ()
    baud: int
    place: tuple[str, ...] = ()
    pack: tuple[str, ...] = ()
    program: str = ""
    usb: str = ""
    light: str = ""
    file: str = ""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(
                f"name must be letters, digits and . _ + -, and not begin with one of these, "
                f"not {self.name!r}"
            )
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
    def spelled(self) -> str:
        """What ``--board`` takes to find this board again."""
        return self.file or self.name

    @property
    def chip(self) -> Chip | None:
        """The external memory, if there is one."""
        from lbq_hw.external.chips import CHIPS

        if not self.sdram:
            return None
        chips = {chip.name: chip for chip in CHIPS}
        if self.sdram not in chips:
            raise BoardError(f"sdram must be one of {', '.join(chips)}, not {self.sdram!r}")
        return chips[self.sdram]

    def make_platform(self) -> Any:
        """A fresh Amaranth platform; it serves one build."""
        if self.family is None:
            raise ValueError(f"board {self.name!r} has no platform: it is only simulated")
        module, _, kind = self.platform.partition(":")
        made = getattr(
            importlib.import_module(module) if module else _module(self.file, _version(self.file)),
            kind,
        )
        return made(toolchain="Apicula") if self.family == "gowin" else made()

    def command(self, bitstream: str) -> str:
        """The line for a shell that loads a bitstream, or the SVF beside it."""
        svf = f"{os.path.splitext(bitstream)[0]}.svf"
        return self.program.format(shlex.quote(bitstream), svf=shlex.quote(svf))

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
    """The board of this name, or in this file, which ends with ``.py``.

    BoardError with the nearest names if there is none, or with what is wrong with the file.
    """
    if name.endswith(".py"):
        return _load(name, _version(name))
    known = _boards()
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name.lower().replace("_", "-"), known, n=3, cutoff=0.4)
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(known)}"
    raise BoardError(f"no board {name!r}: {hint}")


def _version(path: str) -> tuple[str, int, int]:
    """What tells a file from another of its name, and from what it was before."""
    try:
        stat = Path(path).stat()
    except OSError:
        return "", 0, 0
    return os.path.abspath(path), stat.st_mtime_ns, stat.st_size


@cache
def _load(path: str, version: tuple[str, int, int]) -> Board:
    """The board of a file of one's own, whose pins are looked up at once."""
    from lbq_hw.boards import pins

    if not Path(path).is_file():
        raise BoardError(f"no board {path!r}: there is no such file")
    board = getattr(_module(path, version), "BOARD", None)
    if not isinstance(board, Board):
        raise BoardError(f"{path} must set BOARD to a Board, as docs/boards.md shows")
    if board.name in _boards():
        raise BoardError(f"{path} must give its board another name: {board.name} is one that ships")
    board = replace(board, file=os.path.abspath(path))
    try:
        _ = board.chip
        if board.family is not None:
            pins.check(board)
    except ValueError as error:
        raise BoardError(f"{path}: {error}") from error
    return board


@cache
def _module(path: str, version: tuple[str, int, int]) -> ModuleType:  # noqa: ARG001
    """A file of one's own as a module, which is not among those that can be imported by name."""
    spec = importlib.util.spec_from_file_location(f"board_{Path(path).stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    if re.search(r"^from boards import .*\bBoard\b", Path(path).read_text("utf-8"), re.M):
        raise BoardError(f"{path} must say `from lbq_hw.boards import Board`")
    try:
        spec.loader.exec_module(module)
    except ModuleNotFoundError:
        raise
    except Exception as error:  # whatever a user's file does
        kind = type(error).__name__
        raise BoardError(f"{path} cannot be read as a board: {kind}: {error}") from error
    return module
