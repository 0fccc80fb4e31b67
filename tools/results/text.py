"""Formats paragraphs and numbers for the pages."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence


def paragraph(*sentences: str) -> str:
    """Sentences on lines of at most 100 columns."""
    words = " ".join(sentence for sentence in sentences if sentence)
    return textwrap.fill(words, 100, break_long_words=False, break_on_hyphens=False) + "\n"


def percent(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def points(value: float) -> str:
    """A difference of percentages, with its sign."""
    return f"{round(value, 2) + 0.0:+.2f}"  # never -0.00


def millions(value: float) -> str:
    return f"{value / 1e6:,.2f}"


def join(items: Sequence[str]) -> str:
    """``a, b and c``."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"
