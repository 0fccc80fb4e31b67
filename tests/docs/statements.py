"""A page as the statements it makes, so that a test can tell which of them nothing checks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_FENCE = re.compile(r"^```\w*\n.*?^```$", re.MULTILINE | re.DOTALL)
_RULE = re.compile(r"^\|(-+\|)+$")
_END = re.compile(r"(?<=[.:!?])\s+(?=[A-Z`*(])")


def plain(text: str) -> str:
    """The words, one space between them."""
    return " ".join(text.split())


def statements(page: str) -> Iterator[str]:
    """Sentences of its paragraphs and rows of its tables; neither headings nor blocks of code."""
    for block in re.split(r"\n\s*\n", _FENCE.sub("\n\n", page)):
        lines = block.strip("\n").splitlines()
        if not lines or lines[0].startswith(("#", "    ")):
            continue
        if lines[0].startswith("|"):
            head, *rows = [line for line in lines if not _RULE.fullmatch(line.replace(" ", ""))]
            assert head.startswith("|")
            yield from map(plain, rows)
        else:
            yield from _END.split(plain(block))


def unchecked(page: str, checked: Iterable[str]) -> list[str]:
    """The statements that no checked text contains, and that are not made of several of them."""
    words = plain(_FENCE.sub("\n\n", page))
    seen = bytearray(len(words))
    for text in checked:
        for found in re.finditer(re.escape(plain(text)), words):
            seen[found.start() : found.end()] = b"\1" * len(found[0])
    left, start = [], 0
    for statement in statements(page):
        start = words.index(statement, start)
        gaps = (words[start + i] for i in range(len(statement)) if not seen[start + i])
        if any(character.isalnum() for character in gaps):
            left.append(statement)
        start += len(statement)
    return left
