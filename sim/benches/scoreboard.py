"""The in-order checker of the testbenches."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any


class Scoreboard:
    """Compares messages with the expected ones, in order; `done` after the last of them.

    It stops at the first message that differs, and names every difference, or at a message too
    many.
    """

    def __init__(self, name: str, expected: Iterable[Any], *, spoil: bool = False) -> None:
        self.name = name
        self.left = deque(expected)
        if spoil and self.left:
            self.left[-1] = spoiled(self.left[-1])
        self.count = 0
        self.error: str | None = None

    @property
    def done(self) -> bool:
        return self.error is not None or not self.left

    def put(self, message: Any) -> None:
        """The next message of the design."""
        if self.error is not None:
            return
        if not self.left:
            self.error = f"{self.name}: message {self.count} is one too many: {message!r}"
        elif unlike := list(differences(self.left.popleft(), message)):
            self.error = f"{self.name}: message {self.count} differs:\n  " + "\n  ".join(unlike)
        self.count += 1

    def check(self) -> None:
        """Fail unless exactly the expected messages have come."""
        if self.error is None and self.left:
            self.error = f"{self.name}: {len(self.left)} messages of the model did not come"
        if self.error is not None:
            raise AssertionError(self.error)


def differences(expected: Any, found: Any, place: str = "") -> Iterator[str]:
    """Every member in which two messages differ."""
    if isinstance(expected, dict) and isinstance(found, dict) and expected.keys() == found.keys():
        for name in expected:
            yield from differences(expected[name], found[name], f"{place}.{name}")
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        for index, pair in enumerate(zip(expected, found, strict=True)):
            yield from differences(*pair, place=f"{place}[{index}]")
    elif expected != found:
        yield f"{place.lstrip('.') or 'value'}: expected {expected!r}, found {found!r}"


def spoiled(message: Any) -> Any:
    """The message with its last value changed, or with one value more if it has none."""
    if isinstance(message, dict):
        name = list(message)[-1]
        return message | {name: spoiled(message[name])}
    if isinstance(message, list | tuple):
        return type(message)([*message[:-1], spoiled(message[-1]) if message else 0])
    return message ^ 1 if isinstance(message, int) else None
