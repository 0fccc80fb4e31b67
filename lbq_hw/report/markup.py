"""HTML and SVG as checked text: every element is closed, every string escaped."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

_VOID = frozenset({"meta", "link", "br", "col", "rect", "line", "circle", "path"})


class Markup(str):
    """Text that is markup already; any other string is escaped when it becomes a child."""

    __slots__ = ()


Child = str | Iterable[str] | None


def el(name: str, /, *children: Child, **attributes: object) -> Markup:
    """One element. Attributes: ``class_`` and ``for_`` lose their underscore, inner ones become
    hyphens, None and False are left out, True is its own name.
    """
    parts = []
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        text = key if value is True else f"{value:g}" if isinstance(value, float) else str(value)
        parts.append(f' {key.rstrip("_").replace("_", "-")}="{escape(text)}"')
    opening = f"<{name}{''.join(parts)}"
    if name in _VOID and not children:
        return Markup(f"{opening}/>")
    return Markup(f"{opening}>{join(children)}</{name}>")


def join(children: Iterable[Child]) -> Markup:
    """Children one after the other, strings escaped, nested lists flattened, None left out."""
    parts = []
    for child in children:
        if child is None:
            continue
        if isinstance(child, Markup):
            parts.append(child)
        elif isinstance(child, str):
            parts.append(escape(child, quote=False))
        else:
            parts.append(join(child))
    return Markup("".join(parts))


def percent(share: float) -> str:
    """A length for SVG and CSS: ``12.5%``."""
    return f"{100 * share:.3f}".rstrip("0").rstrip(".") + "%"
