"""A drawing as SVG: one file, readable on light and on dark pages."""

from __future__ import annotations

from collections.abc import Iterator

from lbq_hw.diagram.shapes import Block, Drawing, Frame, Point, Wire
from lbq_hw.report.markup import Markup, el

LETTER = 6.7
"""Pixels of a letter of a label or a part, whose font has one width."""
PART_HEIGHT = 18
HEAD = 20  # height of a block's name
LINE = 14  # height of its role

_STYLE = """
text { font: 11px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #1d2733; }
.name { font: bold 13px system-ui, "DejaVu Sans", sans-serif; }
.role { font: 11px system-ui, "DejaVu Sans", sans-serif; fill: #4a5766; }
.page { fill: #ffffff; }
.frame { fill: none; stroke: #8a97a6; stroke-dasharray: 6 4; }
.block { fill: #e8f0fa; stroke: #35618f; stroke-width: 1.5; }
.part { fill: #ffffff; stroke: #9db4cc; }
.wire { fill: none; stroke: #35618f; stroke-width: 1.5; }
.head { fill: #35618f; }
"""
_DARK = """
text { fill: #e6edf3; }
.role { fill: #a9b6c4; }
.page { fill: #0f151c; }
.frame { stroke: #66758a; }
.block { fill: #18283a; stroke: #7fb2e5; }
.part { fill: #0f1a26; stroke: #47688c; }
.wire { stroke: #7fb2e5; }
.head { fill: #7fb2e5; }
"""


def render(drawing: Drawing, *, dark: bool = False) -> str:
    """The file's text. It follows the reader's theme; `dark` gives the dark one to any reader."""
    style = _STYLE + (_DARK if dark else f"@media (prefers-color-scheme: dark) {{{_DARK}}}\n")
    size = {"width": drawing.width, "height": drawing.height}
    lines = [
        el("title", drawing.title),
        el("style", Markup(style)),
        el("rect", class_="page", **size),
        *(part for frame in drawing.frames for part in _frame(frame)),
        *(part for wire in drawing.wires for part in _wire(wire)),
        *(part for block in drawing.blocks for part in _block(block)),
    ]
    box = f"0 0 {drawing.width} {drawing.height}"
    content = Markup("\n" + "\n".join(lines) + "\n")
    namespace = "http://www.w3.org/2000/svg"
    return el("svg", content, xmlns=namespace, viewBox=box, role="img", **size) + "\n"


def part_boxes(block: Block) -> list[tuple[str, int, int, int, int]]:
    """Name, x, y, width and height of each part's box."""
    gap = 6
    width = (block.width - gap * (block.columns + 1)) // block.columns
    rows = -(-len(block.parts) // block.columns)
    top = block.y + block.height - rows * (PART_HEIGHT + gap)
    return [
        (
            name,
            block.x + gap + index % block.columns * (width + gap),
            top + index // block.columns * (PART_HEIGHT + gap),
            width,
            PART_HEIGHT,
        )
        for index, name in enumerate(block.parts)
    ]


def _frame(frame: Frame) -> Iterator[Markup]:
    size = {"x": frame.x, "y": frame.y, "width": frame.width, "height": frame.height}
    yield el("rect", class_="frame", rx=8, **size)
    right = frame.x + frame.width - 12
    yield el("text", frame.name, class_="name", x=right, y=frame.y + 20, text_anchor="end")


def _block(block: Block) -> Iterator[Markup]:
    size = {"x": block.x, "y": block.y, "width": block.width, "height": block.height}
    yield el("rect", class_="block", rx=5, **size)
    x = block.x + 8
    yield el("text", block.name, class_="name", x=x, y=block.y + HEAD)
    for index, line in enumerate(block.role):
        yield el("text", line, class_="role", x=x, y=block.y + HEAD + LINE * (index + 1) + 2)
    for name, left, top, width, height in part_boxes(block):
        yield el("rect", class_="part", rx=3, x=left, y=top, width=width, height=height)
        yield el("text", name, x=left + width // 2, y=top + 13, text_anchor="middle")


def _wire(wire: Wire) -> Iterator[Markup]:
    corners = " ".join(f"{x},{y}" for x, y in wire.route)
    about = el("title", f"{wire.source} to {wire.target}")
    yield el("polyline", about, class_="wire", points=corners)
    yield el("polygon", class_="head", points=_head(*wire.route[-2:]))
    yield el("text", wire.label, x=wire.at[0], y=wire.at[1])


def _head(before: Point, tip: Point) -> str:
    """The arrow's head: a triangle at `tip`, in the direction of the last stretch."""
    (x, y), length, half = tip, 8, 4
    dx, dy = (
        (tip[0] > before[0]) - (tip[0] < before[0]),
        (tip[1] > before[1]) - (tip[1] < before[1]),
    )
    back = (x - length * dx, y - length * dy)
    sides = ((back[0] + half * dy, back[1] + half * dx), (back[0] - half * dy, back[1] - half * dx))
    return " ".join(f"{a},{b}" for a, b in (tip, *sides))
