"""Pins of a board: whether what the design needs is there, and that no two of it are on one pin."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from amaranth.build import ResourceError
from amaranth.build.res import PortGroup

from lbq_hw.boards import Board, BoardError

__all__ = ["check", "pins"]

_ROLES = ("clock", "uart", "led", "sdram", "hold")


def check(board: Board) -> None:
    """BoardError, in one sentence, if the platform lacks what the design needs, or if two of its
    signals are on one pin.
    """
    taken: dict[str, str] = {}
    for role in _ROLES:
        for pin, signal in pins(board, role).items():
            if pin in taken:
                mend = (
                    "give led=None, or another light" if role == "led" else f"give another {role}"
                )
                raise BoardError(f"{taken[pin]} and {signal} are both on pin {pin}: {mend}")
            taken[pin] = signal


def pins(board: Board, role: str) -> dict[str, str]:
    """The pins of a role, which is ``clock``, ``uart``, ``led``, ``sdram`` or ``hold``, with the
    signals on them.
    """
    found: dict[str, str] = {}
    for resource in _resources(board, role):
        found |= _pins_of(board, role, resource)
    return found


def _pins_of(board: Board, role: str, resource: tuple[str, int]) -> dict[str, str]:
    words = f"{resource[0]} {resource[1]}"
    platform = board.make_platform()
    try:
        port = platform.request(*resource, dir="-")
    except ResourceError:
        known = ", ".join(f"{name} {number}" for name, number in platform.resources)
        raise BoardError(
            f"{role} must be a resource of its platform ({known}), not {words}"
        ) from None
    group = isinstance(port, PortGroup)
    if role in ("clock", "led", "hold") and group:
        raise BoardError(f"{role} must be one signal, but {words} has several")
    if role == "uart" and not (group and hasattr(port, "rx") and hasattr(port, "tx")):
        raise BoardError(f"uart must have the signals rx and tx, which {words} has not")
    return {pin: f"{role} ({signal})" for pin, signal in _walk(port, words)}


def _resources(board: Board, role: str) -> list[tuple[str, int]]:
    if role == "clock":
        return [(board.clock, 0)]
    if role == "sdram":
        return [("sdram", 0)] if board.sdram else []
    if role == "hold":
        return [(name, number) for name, number, _ in board.hold]
    resource = board.uart if role == "uart" else board.led
    return [] if resource is None else [resource]


def _walk(port: Any, name: str) -> Iterator[tuple[str, str]]:
    """Pins and the names of the signals on them."""
    if isinstance(port, PortGroup):
        for part, inner in vars(port).items():
            yield from _walk(inner, f"{name} {part}")
        return
    for io in [port.io] if hasattr(port, "io") else [port.p, port.n]:
        for bit in io.metadata:
            yield bit.name, name
