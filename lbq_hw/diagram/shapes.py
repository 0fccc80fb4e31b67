"""What a drawing is made of. Coordinates are pixels, x to the right and y down."""

from __future__ import annotations

from dataclasses import dataclass

Point = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class Block:
    """A component of the core, drawn as a box.

    `name` is its class and `role` says in a few words what it does. `parts` are the classes of the
    components inside it, at any depth, drawn in `columns`.
    """

    name: str
    role: tuple[str, ...]
    x: int
    y: int
    width: int
    height: int
    parts: tuple[str, ...] = ()
    columns: int = 1


@dataclass(frozen=True, kw_only=True)
class Frame:
    """A component that only holds others, drawn as a line around them."""

    name: str
    x: int
    y: int
    width: int
    height: int


@dataclass(frozen=True, kw_only=True)
class Wire:
    """What passes from a port to another, both named as ``Class.port``.

    `label` is the class of a stream's payload, or a word in lower case. `route` is the line's
    corners, from the source to the target; the label begins at `at`.
    """

    source: str
    target: str
    label: str
    route: tuple[Point, ...]
    at: Point


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """All of a picture."""

    title: str
    width: int
    height: int
    frames: tuple[Frame, ...]
    blocks: tuple[Block, ...]
    wires: tuple[Wire, ...]
