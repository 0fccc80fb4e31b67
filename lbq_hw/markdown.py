"""Markdown tables for README.md and the pages under docs/."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(
    headings: Sequence[str], rows: Iterable[Sequence[object]], *, words: Sequence[int] = (0,)
) -> str:
    """A table; the columns `words`, counted from 0, contain words, the others numbers."""
    rule = ["---" if column in words else "--:" for column in range(len(headings))]
    lines = (headings, rule, *rows)
    return "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)
