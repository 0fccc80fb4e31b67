"""The types that all families' decoders share: a bitstream's contents and a build's request."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any


class BitsError(RuntimeError):
    """A bitstream is illegal, or not what was asked for; the message is one sentence."""


class MissingError(RuntimeError):
    """A tool or a model is missing; the message is a reason that follows the word "because"."""


class UndecodedError(BitsError):
    """No table here has the device or package; the message is a reason that follows "because"."""


@dataclass(frozen=True, kw_only=True)
class Decoded:
    """The contents of a packed file, in terms that all families share.

    `device` is the die; `idcode` is the code that the file requires of it, None if the format has
    no code. `bits` is the number of configuration bits that were compared with the router's. `pll`
    has the PLL's settings by the names of the primitive's parameters, empty if no PLL is on. `pins`
    are the pads in use, with `input`, `output` or `inout`. `memories` are the contents of the block
    RAMs that are not all 0. `undecoded` lists in words what could not be decoded.
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

    `compared` is for a netlist that does not come from the bits: how many cells and wires of each
    kind were found in the bits.
    """

    verilog: str
    compared: dict[str, int] = field(default_factory=dict)


def look_up(table: int, inputs: list[str]) -> str:
    """A LUT as nested conditional expressions, the last input outermost. As in the LUT, an unknown
    input only matters if its two branches differ.
    """
    if not inputs:
        return f"1'b{table}"
    *rest, select = inputs
    size = 1 << len(rest)
    low, high = table & (1 << size) - 1, table >> size
    if low == high:
        return look_up(low, rest)
    if (low, high) == (0, (1 << size) - 1):
        return select
    return f"({select} ? {look_up(high, rest)} : {look_up(low, rest)})"


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The contents that a build asked for, in the same terms as `Decoded`."""

    idcode: int | None
    pll: dict[str, Any]
    pins: dict[str, str]
    memories: tuple[bytes, ...]


def compare(found: Decoded, asked: Asked) -> None:
    """BitsError, in one sentence, for the first difference."""
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

    `routed` is the routed design as a netlist, for a family whose bits cannot be made into one.
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
        """The port of each net, with the index of the bit if the port has several bits."""
        return {
            bit: name if len(port["bits"]) == 1 else f"{name}[{index}]"
            for name, port in self.ports.items()
            for index, bit in enumerate(port["bits"])
        }


def number(parameter: str) -> int:
    """The value of a parameter, which Yosys writes as binary digits; an unknown bit is 0."""
    return int(parameter.replace("x", "0"), 2)


def first_difference(one: Sequence[Any], other: Sequence[Any]) -> int:
    """The first index at which two sequences differ; if one is a prefix of the other, its end."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))
