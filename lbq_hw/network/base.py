"""Shared checks of a network's parts, and the error that names the place."""

from __future__ import annotations

Shape = tuple[int, int, int]  # channels, height, width
Pair = tuple[int, int]  # vertical, horizontal


class NetworkError(ValueError):
    """A network that contradicts itself; the message names the place."""


def require(condition: bool, message: str) -> None:
    if not condition:
        raise NetworkError(message)
