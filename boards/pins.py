"""Pins of a board: a check that every signal of the design has a pin, and that no two share one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from amaranth.build import DiffPairs, Pins, ResourceError, Subsignal

from lbq_hw import families
from lbq_hw.boards import Board, BoardError

__all__ = ["all_pins", "check", "pins", "widths"]

_ROLES = ("clock", "uart", "led", "sdram", "hold")
_ONE_PIN = ("clock", "led", "hold")


def check(board: Board) -> None:
    """Raise BoardError, in one sentence, if the platform lacks a resource that the design needs, or
    if two signals are on one pin.
    """
    all_pins(board)


def all_pins(board: Board) -> dict[str, str]:
    """Every pin that a design uses, with the signal on it; BoardError as in `check`."""
    taken: dict[str, str] = {}
    for role in _ROLES:
        for pin, signal in _used(board, role):
            if pin in taken:
                mend = (
                    "give led=None, or another light" if role == "led" else f"give another {role}"
                )
                raise BoardError(f"{taken[pin]} and {signal} are both on pin {pin}: {mend}")
            taken[pin] = signal
    return taken


def pins(board: Board, role: str) -> dict[str, str]:
    """The pins of a role, which is ``clock``, ``uart``, ``led``, ``sdram`` or ``hold``, with the
    signals on them.
    """
    return dict(_used(board, role))


def widths(board: Board, role: str) -> dict[str, int]:
    """The signals of a role's resource, if it has several, with their numbers of pins."""
    ((name, number),) = _resources(board, role)
    found = _lookup(board, role, name, number)[0].ios
    return {part.name: len(part.ios[0]) for part in found if isinstance(part, Subsignal)}


def _used(board: Board, role: str) -> list[tuple[str, str]]:
    """Pins of a role, each with the signal on it."""
    found = []
    for name, number in _resources(board, role):
        words = f"{name} {number}"
        resource, connectors = _lookup(board, role, name, number)
        parts = {part.name: part for part in resource.ios if isinstance(part, Subsignal)}
        if role in _ONE_PIN and (parts or len(resource.ios[0]) != 1):
            what = "signal, but" if parts else "pin, but"
            raise BoardError(f"{role} must be one {what} {words} has several")
        if role == "uart" and not {"rx", "tx"} <= set(parts):
            raise BoardError(f"uart must have the signals rx and tx, which {words} lacks")
        if (
            role == "clock"
            and isinstance(resource.ios[0], DiffPairs)
            and families.plls()[board.pll].pad
        ):
            raise BoardError(f"clock must be a single pin for {board.pll}, which {words} is not")
        try:
            pairs = list(_walk(resource.ios, words, connectors, resource))
        except NameError as error:
            raise BoardError(
                f"{role} must be on pins that its platform has, but {words} is not: {error}"
            ) from error
        found += [(pin, f"{role} ({signal})") for pin, signal in pairs]
    return found


def _lookup(board: Board, role: str, name: str, number: int) -> tuple[Any, Any]:
    """A resource of a board's platform, and the pins of the platform's connectors."""
    platform = board.make_platform()
    try:
        return platform.lookup(name, number), platform._conn_pins
    except ResourceError:
        known = ", ".join(f"{name} {number}" for name, number in platform.resources)
        raise BoardError(
            f"{role} must be a resource of its platform ({known}), not {name} {number}"
        ) from None


def _resources(board: Board, role: str) -> list[tuple[str, int]]:
    if role == "clock":
        return [(board.clock, 0)]
    if role == "sdram":
        return [("sdram", 0)] if board.sdram else []
    if role == "hold":
        return [(name, number) for name, number, _ in board.hold]
    resource = board.uart if role == "uart" else board.led
    return [] if resource is None else [resource]


def _walk(ios: Any, name: str, connectors: Any, resource: Any) -> Iterator[tuple[str, str]]:
    """Pins and the names of the signals on them."""
    for io in ios:
        if isinstance(io, Subsignal):
            yield from _walk(io.ios, f"{name} {io.name}", connectors, resource)
        elif isinstance(io, Pins | DiffPairs):
            for part in (io.p, io.n) if isinstance(io, DiffPairs) else (io,):
                for pin in part.map_names(connectors, resource):
                    yield pin, name
