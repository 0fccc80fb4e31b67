"""The basic shapes of the pictures, as SVG text."""

from __future__ import annotations

from html import escape

INK, PALE, ACCENT, SECOND = "#1f2933", "#9aa5b1", "#0b7285", "#c2410c"
FONT = "font-family='system-ui,sans-serif'"


def text(
    x: float,
    y: float,
    words: str,
    *,
    size: float = 13,
    fill: str = INK,
    anchor: str = "start",
    bold: bool = False,
) -> str:
    weight = " font-weight='bold'" if bold else ""
    return (
        f"<text x='{x:g}' y='{y:g}' {FONT} font-size='{size:g}' fill='{fill}' "
        f"text-anchor='{anchor}'{weight}>{escape(words)}</text>"
    )


def line(x1: float, y1: float, x2: float, y2: float, *, stroke: str = PALE) -> str:
    return f"<line x1='{x1:g}' y1='{y1:g}' x2='{x2:g}' y2='{y2:g}' stroke='{stroke}'/>"


def box(x: float, y: float, width: float, height: float, *, fill: str, stroke: str = "none") -> str:
    return (
        f"<rect x='{x:g}' y='{y:g}' width='{width:g}' height='{height:g}' rx='3' fill='{fill}' "
        f"stroke='{stroke}'/>"
    )


def drawing(width: float, height: float, title: str, *parts: str) -> str:
    """A whole file with a white background, since pages may be dark."""
    head = (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width:g} {height:g}' "
        f"width='{width:g}' role='img'><title>{escape(title)}</title>"
    )
    return "\n".join([head, box(0, 0, width, height, fill="#ffffff"), *parts, "</svg>", ""])
