"""The life of an event, from the plane memory to the plane memory: the example of
docs/architecture.md as a drawing.
"""

from __future__ import annotations

from itertools import pairwise

from tools.pictures.svg import ACCENT, INK, PALE, box, drawing, text

STAGES = (
    ("Plane memory",
     ("level 5 = binary 101:", "bit 6 of word 9 (plane 2)", "bit 6 of word 1 (plane 0)")),
    ("Walker", ("one request per plane,", "the highest plane first:", "words 8, 9; 4, 5; 0, 1")),
    ("Scanner",
     ("reads flags first: plane 1", "is empty, no word is read;", "then finds set bits")),
    ("Event", ("a set bit and its", "weight row 10:", "3, -2, 0, 1")),
    ("Lanes", ("add the row, double the", "sum from plane to plane:", "17, -9, -1, 5")),
    ("Neuron units", ("U = 17, theta = 6:", "level 2; one reset is", "subtracted, 11 stays")),
    ("Writer", ("level 2 = binary 010:", "plane 1, word 29,", "and its flag is set")),
)  # fmt: skip
"""For each block, three lines on what it does with the bit of the example."""
_WIDE, _HIGH, _GAP, _LEFT, _TOP = 190, 104, 34, 24, 60
_PER_ROW = 4


def picture() -> str:
    """Two rows of blocks; an arrow leads from the last block back to the first."""
    title = "The life of an event"
    parts = [
        "<defs><marker id='tip' viewBox='0 0 8 8' refX='7' refY='4' markerWidth='8' "
        f"markerHeight='8' orient='auto'><path d='M0 0L8 4L0 8z' fill='{ACCENT}'/></marker></defs>",
        text(_LEFT, 32, title, size=16, bold=True),
    ]
    places = [_place(number) for number in range(len(STAGES))]
    for number, ((name, lines), (x, y)) in enumerate(zip(STAGES, places, strict=True)):
        parts.append(box(x, y, _WIDE, _HIGH, fill="#eef6f7", stroke=PALE))
        parts.append(text(x + 12, y + 24, f"{number + 1}  {name}", size=14, bold=True, fill=ACCENT))
        parts += [text(x + 12, y + 48 + 20 * i, words, fill=INK) for i, words in enumerate(lines)]
    for (x, y), (to_x, to_y) in pairwise(places):
        if y == to_y:
            side = _WIDE if to_x > x else 0
            parts.append(_arrow(x + side, y + _HIGH / 2, to_x + _WIDE - side, y + _HIGH / 2))
        else:
            parts.append(_arrow(x + _WIDE / 2, y + _HIGH, to_x + _WIDE / 2, to_y))
    (x, y), (to_x, to_y) = places[-1], places[0]
    middle = x - _WIDE / 2 - _GAP
    parts.append(
        f"<path d='M{x:g} {y + _HIGH / 2:g}H{middle:g}V{to_y + _HIGH + 4:g}' fill='none' "
        f"stroke='{ACCENT}' stroke-width='1.5' marker-end='url(#tip)'/>"
    )
    parts.append(text(to_x, y + _HIGH - 8, "the next layer's events", fill=PALE))
    width = _LEFT * 2 + _PER_ROW * _WIDE + (_PER_ROW - 1) * _GAP
    return drawing(width, _TOP + 2 * _HIGH + _GAP + 24, title, *parts)


def _place(number: int) -> tuple[float, float]:
    """The upper left corner of a block; the second row goes from right to left."""
    row, column = divmod(number, _PER_ROW)
    column = column if row == 0 else _PER_ROW - 1 - column
    return _LEFT + column * (_WIDE + _GAP), _TOP + row * (_HIGH + _GAP)


def _arrow(x1: float, y1: float, x2: float, y2: float) -> str:
    return (
        f"<line x1='{x1:g}' y1='{y1:g}' x2='{x2:g}' y2='{y2:g}' stroke='{ACCENT}' "
        "stroke-width='1.5' marker-end='url(#tip)'/>"
    )
