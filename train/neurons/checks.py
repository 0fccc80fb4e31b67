"""Checks of a neuron's options: each returns the value, or raises an error that names it."""

from __future__ import annotations

import math
from collections.abc import Callable


def flag(name: str, value: bool) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be a boolean, not {value!r}")
    return value


def integer(name: str, value: int, most: int | None = None) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} must be an integer, not {value!r}")
    if value < 1 or (most is not None and value > most):
        raise ValueError(
            f"{name} must be {'at least 1' if most is None else f'in 1..{most}'}, not {value!r}"
        )
    return value


def real(
    name: str, value: float, must: str = "finite", holds: Callable[[float], bool] = math.isfinite
) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError(f"{name} must be a number, not {value!r}")
    if not (math.isfinite(value) and holds(value)):
        raise ValueError(f"{name} must be {must}, not {value!r}")
    return float(value)


def interval(low: float, high: float) -> tuple[float, float]:
    """The ends of a surrogate's plateau, in steps; a single point where N is 1."""
    low = real("low", low)
    return low, real("high", high, f"at least low = {low:g}", lambda x: x >= low)
