"""The few forms of which every section is made: rows of bars, histograms, maps, tables.

Lengths along x are percentages and heights pixels, so that a plot fills whatever width it has and
its text stays the size of text. Colours are classes of ``style.css``. Hovering shows a mark's
title.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lbq_hw.report.markup import Child, Markup, el, join, percent
from lbq_hw.report.quantities import share

ESTIMATE = el("span", "estimate", class_="tag")
_BAR = 14  # pixels
_LANE = 30
_PHONE = 230  # pixels of a map on a phone
_LETTER = 7  # pixels of a letter in a map, at most
_HISTOGRAM = 124


@dataclass(frozen=True, kw_only=True)
class Part:
    """A stretch of a bar: its length as a share of the whole bar, its colour, its title."""

    share: float
    colour: str
    title: str


@dataclass(frozen=True, kw_only=True)
class Mark:
    """A line across a bar, such as a target or an estimate."""

    share: float
    title: str
    dashed: bool = False


@dataclass(frozen=True, kw_only=True)
class Row:
    """A bar with its label and one or two values."""

    label: Child
    parts: Sequence[Part]
    values: Sequence[Child]
    marks: Sequence[Mark] = ()


@dataclass(frozen=True, kw_only=True)
class Area:
    """A rectangle of a map: shares of the width, numbers of lanes."""

    left: float
    right: float
    first: int
    last: int
    label: str
    title: str


def section(name: str, title: str, lead: Child, *content: Child) -> Markup:
    heading = el("h2", title)
    return el("section", heading, el("p", lead, class_="lead"), *content, id=name)


def figure(name: str, caption: Child, *content: Child) -> Markup:
    """A plot; tests count them by `data-plot`."""
    return el("figure", el("figcaption", caption), *content, data_plot=name)


def rows(entries: Iterable[Row]) -> Markup:
    """Bars one below the other, labels left and values right; on a phone the bar comes below."""
    cells = []
    for entry in entries:
        cells.append(el("div", entry.label, class_="label"))
        for index, value in enumerate(entry.values, start=2 - len(entry.values)):
            cells.append(el("div", value, class_=f"value v{index}"))
        kind = "cell wide" if len(entry.values) == 1 else "cell"
        cells.append(el("div", bar(entry.parts, entry.marks), class_=kind))
    return el("div", cells, class_="rows")


def bar(parts: Sequence[Part], marks: Sequence[Mark] = ()) -> Markup:
    drawn, left = [], 0.0
    for part in parts:
        width = min(part.share, 1.0 - left)
        if width > 0:
            box = {"x": percent(left), "width": percent(width), "height": _BAR}
            drawn.append(el("rect", el("title", part.title), class_=part.colour, **box))
        left += max(width, 0.0)
    for mark in marks:
        x = percent(min(mark.share, 1.0))
        ends = {"x1": x, "x2": x, "y1": 0, "y2": _BAR}
        drawn.append(
            el(
                "line",
                el("title", mark.title),
                class_="mark dashed" if mark.dashed else "mark",
                **ends,
            )
        )
    label = "; ".join([part.title for part in parts] + [mark.title for mark in marks])
    return el("svg", drawn, class_="bar", width="100%", height=_BAR, role="img", aria_label=label)


def legend(entries: Iterable[tuple[str, str]]) -> Markup:
    """Colours with their meaning; the colour ``mark`` is a line."""
    return el(
        "ul",
        [el("li", el("i", class_=f"key {colour}"), text) for colour, text in entries],
        class_="legend",
    )


def histogram(counts: Sequence[int], *, label: str) -> Markup:
    """Shares of 0, 1, 2, ...; the bar of 0 is grey, as it costs nothing."""
    total = max(sum(counts), 1)
    floor = _HISTOGRAM - 18
    scale = (floor - 16) / (max(counts) / total or 1.0)
    few = len(counts) <= 8
    drawn = []
    for level, number in enumerate(counts):
        part, middle = number / total, percent((level + 0.5) / len(counts))
        top = round(floor - part * scale, 2)
        title = el("title", f"level {level}: {share(part, decimals=2)}")
        place = {
            "x": percent((level + 0.12) / len(counts)),
            "y": top,
            "width": percent(0.76 / len(counts)),
            "height": round(part * scale, 2),
        }
        drawn.append(el("rect", title, class_="rest" if level == 0 else "a1", **place))
        if few:
            drawn.append(el("text", share(part, decimals=0), x=middle, y=round(top - 4, 2)))
        if few or level % 5 == 0:
            drawn.append(el("text", str(level), class_="axis", x=middle, y=_HISTOGRAM - 4))
    drawn.append(el("line", class_="rule", x1="0", x2="100%", y1=floor, y2=floor))
    size = {"width": "100%", "height": _HISTOGRAM}
    return el("svg", drawn, class_="histogram", role="img", aria_label=label, **size)


def area_map(areas: Sequence[Area], *, lanes: Sequence[str], ends: tuple[str, str]) -> Markup:
    """Rectangles over a common width, one lane per name; `ends` label the two ends of the width.

    A list below has all of them, by the numbers of those whose label finds no room in them.
    """
    height = _LANE * len(lanes)
    drawn = []
    for lane in range(1, len(lanes)):
        y = lane * _LANE
        drawn.append(el("line", class_="rule", x1="0", x2="100%", y1=y, y2=y))
    for number, area in enumerate(areas, 1):
        place = {
            "x": percent(area.left),
            "y": area.first * _LANE + 2,
            "width": percent(area.right - area.left),
            "height": (area.last - area.first + 1) * _LANE - 4,
        }
        inner = el("rect", class_="block", width="100%", height="100%", rx=3)
        name = _fitting(area, number)
        text = None if name is None else el("text", name, x="50%", y="50%", dy="0.35em")
        drawn.append(el("svg", el("title", area.title), inner, text, **place))
    label = "; ".join(area.title for area in areas)
    picture = el("svg", drawn, class_="map", width="100%", height=height, role="img",
                 aria_label=label)  # fmt: skip
    names = el("div", [el("div", lane, title=lane) for lane in lanes], class_="lanes")
    scale = el("div", el("span", ends[0]), el("span", ends[1]), class_="scale")
    mapped = el("div", names, picture, el("div"), scale, class_="mapped")
    return join([mapped, el("ol", [el("li", area.title) for area in areas], class_="areas")])


def _fitting(area: Area, number: int) -> str | None:
    """The label of a rectangle, else its number, whichever is seen whole on a phone."""
    room = (area.right - area.left) * _PHONE
    texts = (text for text in (area.label, str(number)) if _LETTER * len(text) + 4 <= room)
    return next(texts, None)


def table(headings: Sequence[str], body: Iterable[Sequence[Child]], *, text: int = 1) -> Markup:
    """The first `text` columns hold words, the others numbers."""

    def cells(name: str, values: Sequence[Child]) -> list[Markup]:
        return [
            el(name, value, class_=None if index < text else "n")
            for index, value in enumerate(values)
        ]

    head = el("thead", el("tr", cells("th", headings)))
    lines = el("tbody", [el("tr", cells("td", line)) for line in body])
    return el("div", el("table", head, lines), class_="scroll")
