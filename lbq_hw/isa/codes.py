"""Numbers that say what happened, each with its meaning for people."""

from __future__ import annotations

from enum import IntEnum
from typing import Self


class Code(IntEnum):
    """An integer that carries its `meaning`: ``NAME = number, "meaning"``."""

    meaning: str

    def __new__(cls, number: int, meaning: str = "") -> Self:
        code = int.__new__(cls, number)
        code._value_ = number
        code.meaning = meaning
        return code
