"""Drawings: read from ``architecture.toml`` and ``external-memory.toml``, and written as SVG.

Each SVG is readable on light and on dark pages. architecture.toml explains the keys.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib.resources import files

import jinja2

from lbq_hw import decode

Point = tuple[int, int]
Box = tuple[int, int, int, int]
LETTER = 6.7
"""Width in pixels of a letter of a label or a part, in a monospaced font."""
HEAD = 20  # height of a block's name
LINE = 14  # height of its role
_PART, _GAP = 18, 6  # height of a part's box, space around it


@dataclass(frozen=True, kw_only=True)
class Frame:
    name: str
    box: Box


@dataclass(frozen=True, kw_only=True)
class Block:
    name: str
    box: Box
    role: tuple[str, ...]
    parts: tuple[str, ...] = ()
    columns: int = 1

    @property
    def part_boxes(self) -> list[tuple[str, Box]]:
        x, y, width, height = self.box
        each = (width - _GAP * (self.columns + 1)) // self.columns
        top = y + height - -(-len(self.parts) // self.columns) * (_PART + _GAP)
        found = []
        for index, name in enumerate(self.parts):
            row, column = divmod(index, self.columns)
            left = x + _GAP + column * (each + _GAP)
            found.append((name, (left, top + row * (_PART + _GAP), each, _PART)))
        return found


@dataclass(frozen=True, kw_only=True)
class Wire:
    source: str
    target: str
    label: str
    at: Point
    route: tuple[Point, ...]

    @property
    def head(self) -> tuple[Point, ...]:
        """The arrow head: a triangle at the end, 8 pixels long, along the last stretch."""
        (a, b), (x, y) = self.route[-2:]
        dx, dy = (x > a) - (x < a), (y > b) - (y < b)
        u, v = x - 8 * dx, y - 8 * dy
        return (x, y), (u + 4 * dy, v + 4 * dx), (u - 4 * dy, v - 4 * dx)


@dataclass(frozen=True, kw_only=True)
class Drawing:
    title: str
    size: tuple[int, int]
    frames: tuple[Frame, ...]
    blocks: tuple[Block, ...]
    wires: tuple[Wire, ...]


_FILES = files("lbq_hw.diagram")
_TEMPLATE = jinja2.Environment(
    autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
).from_string(_FILES.joinpath("drawing.svg").read_text("utf-8"))


def _read(name: str) -> Drawing:
    data = tomllib.loads(_FILES.joinpath(f"{name}.toml").read_text("utf-8"))
    return decode.reader(Drawing)(data, name)


CORE, EXTERNAL = _read("architecture"), _read("external-memory")
DRAWINGS = {"architecture": CORE, "external-memory": EXTERNAL}
"""By the page of docs/ that shows each."""


def render(drawing: Drawing, *, dark: bool = False) -> str:
    """The text of the SVG. It follows the reader's theme; with `dark`, it is always dark."""
    return _TEMPLATE.render(vars(drawing), dark=dark, HEAD=HEAD, LINE=LINE) + "\n"
