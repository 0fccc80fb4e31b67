"""What every family's decoder finds in a bitstream, and what a build asked for."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any


class BitsError(RuntimeError):
    """A bitstream that is illegal, or not what was asked for; one sentence."""


class MissingError(RuntimeError):
    """A tool or a model that is not here; the reason, after "for"."""


class UndecodedError(BitsError):
    """A device or a package that no table here knows; the reason, after "for"."""


@dataclass(frozen=True, kw_only=True)
class Decoded:
    """What a packed file holds, in the words that all families share.

    `device` is the die, `idcode` what the file demands of it, None where the format has none.
    `bits` is the number of configuration bits that were compared with the router's. `pll` are the
    words of the PLL by the names of its primitive's parameters, empty if none is on. `pins` are the
    pads that are in use, with `input`, `output` or `inout`. `memories` are the contents of the
    block RAMs that are not all 0. `undecoded` lists in words what could not be read.
    """

    device: str
    idcode: int | None
    bits: int
    pll: dict[str, Any]
    pins: dict[str, str]
    memories: tuple[bytes, ...]
    undecoded: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Chip:
    """A packed file as Verilog: a module ``chip`` with a port per pin.

    `compared` says how many of each kind were found again in the bits, where the netlist does not
    come from them.
    """

    verilog: str
    compared: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a build asked for, in the same words."""

    idcode: int | None
    pll: dict[str, Any]
    pins: dict[str, str]
    memories: tuple[bytes, ...]


def compare(found: Decoded, asked: Asked) -> None:
    """BitsError, in one sentence, for the first that differs."""
    if found.idcode != asked.idcode:
        raise BitsError(
            f"the bitstream is for the IDCODE {_code(found.idcode)}, but the board's device has "
            f"{_code(asked.idcode)}: see `device`, `place` and `pack` of the board's file"
        )
    for name, value in asked.pll.items():
        if found.pll.get(name) != value:
            raise BitsError(
                f"the PLL of the bitstream has {name} = {found.pll.get(name, 'nothing')}, "
                f"but {value} was asked for"
            )
    if found.pll and not asked.pll:
        raise BitsError("the bitstream has a PLL, but none was asked for")
    for pin in sorted(found.pins.keys() | asked.pins.keys()):
        is_, must = found.pins.get(pin, "unused"), asked.pins.get(pin, "unused")
        if is_ != must:
            raise BitsError(f"pin {pin} of the bitstream is {is_}, but {must} was asked for")
    missing = Counter(asked.memories) - Counter(found.memories)
    beyond = Counter(found.memories) - Counter(asked.memories)
    if missing or beyond:
        raise BitsError(
            f"the contents of {missing.total()} block RAMs of the netlist are not in the "
            f"bitstream, and {beyond.total()} block RAMs hold what the netlist does not"
        )


def _code(idcode: int | None) -> str:
    return "none" if idcode is None else f"0x{idcode:08x}"


@dataclass(frozen=True, kw_only=True)
class Files:
    """The files of a build: pins, the synthesised netlist, the routed design, the packed bits.

    `routed` is the routed design as a netlist, for a family whose bits do not give one.
    """

    constraints: Path
    netlist: Path
    placed: Path
    packed: Path
    routed: Path | None = None


@dataclass(frozen=True, kw_only=True)
class Netlist:
    """The top of a netlist that Yosys wrote as JSON."""

    ports: dict[str, dict[str, Any]]
    cells: dict[str, dict[str, Any]]

    @classmethod
    def read(cls, path: Path) -> Netlist:
        top = json.loads(path.read_text(encoding="utf-8"))["modules"]["top"]
        return cls(ports=top["ports"], cells=top["cells"])

    def of(self, *kinds: str) -> Iterator[dict[str, Any]]:
        """Cells of these types."""
        return (cell for cell in self.cells.values() if cell["type"] in kinds)

    @cached_property
    def port_of(self) -> dict[int, str]:
        """The port on a net, with its index if it has several bits."""
        return {
            bit: name if len(port["bits"]) == 1 else f"{name}[{index}]"
            for name, port in self.ports.items()
            for index, bit in enumerate(port["bits"])
        }


def number(parameter: str) -> int:
    """A parameter as Yosys writes it, binary digits; an unknown bit is 0."""
    return int(parameter.replace("x", "0"), 2)


def first_difference(one: Sequence[Any], other: Sequence[Any]) -> int:
    """The first place at which two sequences differ: the end of one, if it begins the other."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))
