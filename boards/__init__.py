"""Boards that the core is built for, one data file each; docs/boards.md says how to add a board."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import os
import pkgutil
import re
import shlex
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from lbq_hw import families
from lbq_hw.boards.bridges import Bridge
from lbq_hw.boards.price import Price

if TYPE_CHECKING:
    from lbq_hw.chips import Chip

_HELPERS = (
    "__main__", "bridges", "checks", "clocks", "command", "pages", "pins", "platforms", "price",
    "sources",
)  # fmt: skip
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}")  # also a folder's and a package's
_COUNTS = ("luts", "block_rams", "sprams", "clock_hz", "target_hz", "baud")
_TEXTS = ("name", "title", "device", "platform", "clock", "pll", "program", "usb", "light", "file")


class BoardError(ValueError):
    """A board that does not exist, or cannot be built for; one sentence that says what to do."""


@dataclass(frozen=True, kw_only=True)
class Board:
    """The flow's data about a board; everything else comes from its Amaranth platform.

    `name`, as given to ``--board``; `title`; `device`, as its maker calls it; `family`, a name
    that `lbq_hw.families` has, or None for a board without a fabric, which is only simulated.
    `platform` is ``module:Class``, imported when it is first asked for; ``:Class`` is in the
    board's own file. `file` is that file, for a board that was found by its path; empty for those
    that ship.

    Resources that nextpnr can place into: `luts` of four inputs, `block_rams`, and `sprams` of
    16 K x 16 bits.

    Clock: the resource `clock` runs at `clock_hz`. From it, `pll`, a PLL of the family, makes
    `target_hz`, the clock that a build aims at by default.

    Memory: `sdram` is the chip at the resource ``sdram``: a name or a part number that
    `lbq_hw.chips` has, or a `Chip` of your own; empty: the board has no memory that a core can
    read.

    Link: the resource `uart`, at `baud` after a reset. `bridge` is the chip between it and USB,
    with the rates that the host may ask for; None: a separate adapter. `led` lights while the core
    is busy; None: the board has no LED, or its pin has another use. `hold` are resources that are
    driven to a constant value, each as name, number and value: pins by which another chip would
    stop or take over the FPGA.

    Tools: `place`, options of nextpnr that name the device; `pack`, options of the packer;
    `program`, the command that loads a bitstream, whose path replaces ``{}``. A command with
    ``{svf}`` gets an SVF file of the bitstream, in families that have such files. `usb` is the
    board's vendor and product on USB, and `light` the colour of its LED; both are for the page
    about first light. `price` has a source and a date; None: no source is known.
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
    sdram: str | Chip = ""
    uart: tuple[str, int] = ("uart", 0)
    led: tuple[str, int] | None = ("led", 0)
    hold: tuple[tuple[str, int, int], ...] = ()
    baud: int
    bridge: Bridge | None = None
    place: tuple[str, ...] = ()
    pack: tuple[str, ...] = ()
    program: str = ""
    usb: str = ""
    light: str = ""
    price: Price | None = None
    file: str = ""

    def __post_init__(self) -> None:
        self._check_kinds()
        if not _NAME.fullmatch(self.name):
            raise ValueError(
                "name must consist of letters, digits and . _ + -, and begin with a letter or "
                f"digit, not {self.name!r}"
            )
        if self.family is not None:
            families.of(self)
        for name in ("clock_hz", "target_hz", "baud"):
            if not getattr(self, name):
                raise ValueError(f"{name} must be a positive integer, not 0")
        if self.family is not None:
            for name in ("platform", "luts", "block_rams", "clock", "pll", "place", "program"):
                if not getattr(self, name):
                    raise ValueError(f"{name} must be given for a board with a fabric")
            self._check_program()

    def _check_kinds(self) -> None:
        """Every field is of its type."""
        for name in _COUNTS:
            value = getattr(self, name)
            if type(value) is not int or value < 0:
                raise ValueError(f"{name} must be a non-negative integer, not {value!r}")
        for name in _TEXTS:
            if not isinstance(value := getattr(self, name), str):
                raise ValueError(f"{name} must be a string, not {value!r}")
        for name in ("place", "pack"):
            value = getattr(self, name)
            if not (isinstance(value, tuple) and all(isinstance(word, str) for word in value)):
                raise ValueError(f"{name} must be a tuple of strings, not {value!r}")
        if not (self.bridge is None or isinstance(self.bridge, Bridge)):
            raise ValueError(f"bridge must be a Bridge, or None, not {self.bridge!r}")
        if not (self.price is None or isinstance(self.price, Price)):
            raise ValueError(f"price must be a Price, or None, not {self.price!r}")
        for name in ("uart", "led"):
            value = getattr(self, name)
            if not (_is_resource(value) or (name == "led" and value is None)):
                wanted = "a name and a number, or None" if name == "led" else "a name and a number"
                raise ValueError(f"{name} must be {wanted}, such as ({name!r}, 0), not {value!r}")
        if not (
            isinstance(self.hold, tuple)
            and all(isinstance(one, tuple) and one and one[-1] in (0, 1) for one in self.hold)
            and all(_is_resource(one[:-1]) for one in self.hold)
        ):
            wanted = "a tuple of names, numbers and values, such as (('wifi_gpio0', 0, 1),)"
            raise ValueError(f"hold must be {wanted}, not {self.hold!r}")

    def _check_program(self) -> None:
        """The command has a place for the bitstream, and none for anything else."""
        places, svf = ("{} or {svf}", {"svf": "\0"}) if families.of(self).svf else ("{}", {})
        try:
            named = "\0" in self.program.format("\0", **svf)
        except (IndexError, KeyError, ValueError, AttributeError):
            named = False
        if not named:
            raise ValueError(
                f"program must have {places} in place of the bitstream's name, and no other "
                f"braces, not {self.program!r}"
            )

    @property
    def spelled(self) -> str:
        """What ``--board`` takes to find this board again."""
        return self.file or self.name

    @property
    def chip(self) -> Chip | None:
        """The external memory, if there is one."""
        from lbq_hw.chips import CHIPS, PARTS, Chip

        if isinstance(self.sdram, Chip) or not self.sdram:
            return self.sdram or None
        chips = {chip.name: chip for chip in CHIPS} | PARTS
        if not isinstance(self.sdram, str) or self.sdram not in chips:
            raise BoardError(
                f"sdram must be one of {', '.join(chips)}, or a Chip of your own, "
                f"not {self.sdram!r}"
            )
        return chips[self.sdram]

    def make_platform(self) -> Any:
        """A fresh Amaranth platform; it serves one build. BoardError if there is none."""
        from amaranth import vendor

        if self.family is None:
            raise ValueError(f"board {self.name!r} has no platform: it is only simulated")
        family = families.of(self)
        kind = getattr(vendor, family.platform)
        made = self._platform_class()
        if not (isinstance(made, type) and issubclass(made, kind)):
            raise BoardError(
                f"platform must be a {family.platform} for the family {self.family}, "
                f"not {self.platform!r}"
            )
        try:
            return made(**family.platform_options)
        except Exception as error:  # a user's platform may raise anything
            raise BoardError(
                f"platform {self.platform!r} cannot be made: {type(error).__name__}: {error}"
            ) from error

    def _platform_class(self) -> Any:
        module, colon, name = self.platform.partition(":")
        if not colon or not name or not (module or self.file):
            raise BoardError(
                f"platform must be 'module:Class', or ':Class' in the board's own file, "
                f"not {self.platform!r}"
            )
        if module and importlib.util.find_spec(module.partition(".")[0]) is None:
            if module.startswith("amaranth_boards"):
                importlib.import_module(module)  # tells how to install it
            raise BoardError(f"platform {self.platform!r} needs a module that is not installed")
        try:
            found = (
                importlib.import_module(module)
                if module
                else _module(self.file, _version(self.file))
            )
        except (Exception, SystemExit) as error:  # a user's module may raise anything
            raise BoardError(
                f"platform {self.platform!r} cannot be imported: {type(error).__name__}: {error}"
            ) from error
        if not hasattr(found, name):
            where = f"the module {module}" if module else "the board's own file"
            raise BoardError(f"platform {self.platform!r} does not exist: {where} has no {name}")
        return getattr(found, name)

    def command(self, bitstream: str) -> str:
        """The line for a shell that loads a bitstream, or the SVF beside it."""
        svf = f"{os.path.splitext(bitstream)[0]}.svf"
        return self.program.format(shlex.quote(bitstream), svf=shlex.quote(svf))

    def facts(self) -> dict[str, Any]:
        """Every field, for JSON."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        if self.bridge is not None:
            found["bridge"] = asdict(self.bridge)
        if self.price is not None:
            found["price"] = asdict(self.price)
        return found if isinstance(self.sdram, str) else found | {"sdram": asdict(self.sdram)}


def _is_resource(value: Any) -> bool:
    """Whether a value is the name and the number of a resource."""
    kinds = [type(part) for part in value] if isinstance(value, tuple) else []
    return kinds == [str, int]


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


def fabrics() -> list[str]:
    """Names of the boards with an FPGA, which all have but the simulated one, sorted."""
    return [name for name, board in _boards().items() if board.family is not None]


def find(name: str) -> Board:
    """The board of this name, or in this file, which ends with ``.py``.

    BoardError with the nearest names if there is none, or with what is wrong with the file.
    """
    if name.endswith(".py"):
        return _load(name, _version(name))
    known = _boards()
    if name in known:
        return known[name]
    given = name.lower().replace("_", "-")
    near = [one for one in known if given and one.startswith(given)]
    near = near or difflib.get_close_matches(given, known, n=3, cutoff=0.4)
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(known)}"
    raise BoardError(f"no board {name!r}: {hint}")


def _version(path: str) -> tuple[str, int, int]:
    """Tells a board file from another file of its name, and from its earlier contents."""
    try:
        stat = Path(path).stat()
    except OSError:
        return "", 0, 0
    return os.path.abspath(path), stat.st_mtime_ns, stat.st_size


@cache
def _load(path: str, version: tuple[str, int, int]) -> Board:
    """The board in a user's file, checked as a whole."""
    from lbq_hw.boards import checks

    if not Path(path).is_file():
        raise BoardError(f"no board {path!r}: there is no such file")
    board = getattr(_module(path, version), "BOARD", None)
    if not isinstance(board, Board):
        raise BoardError(f"{path} must set BOARD to a Board, as docs/boards.md shows")
    if board.name in _boards():
        raise BoardError(
            f"{path} must give its board another name: {board.name} is the name of a shipped board"
        )
    board = replace(board, file=os.path.abspath(path))
    try:
        checks.check(board)
    except ValueError as error:
        raise BoardError(f"{path}: {error}") from error
    return board


@cache
def _module(path: str, version: tuple[str, int, int]) -> ModuleType:  # noqa: ARG001
    """A user's file as a module, which cannot be imported by name."""
    spec = importlib.util.spec_from_file_location(f"board_{Path(path).stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        if re.search(r"^from boards import .*\bBoard\b", Path(path).read_text("utf-8"), re.M):
            raise BoardError(f"{path} must say `from lbq_hw.boards import Board`")
        spec.loader.exec_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("amaranth"):
            raise  # tells how to install it
        raise BoardError(f"{path} needs the module {error.name}, which is not installed") from error
    except SystemExit as error:
        raise BoardError(f"{path} must only set BOARD, but it ends the program") from error
    except (BoardError, KeyboardInterrupt):
        raise
    except BaseException as error:  # a user's file may raise anything
        kind = type(error).__name__
        raise BoardError(f"{path} cannot be read as a board: {kind}: {error}") from error
    return module
