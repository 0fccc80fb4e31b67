"""What the parts of a network are checked with, and the error that names the place."""

from __future__ import annotations

from typing import Any

import numpy as np

from lbq_hw.numeric import Integers

Shape = tuple[int, int, int]  # channels, height, width
Pair = tuple[int, int]  # vertical, horizontal


class NetworkError(ValueError):
    """A network that contradicts itself; the message names the place."""


def require(condition: bool, message: str) -> None:
    if not condition:
        raise NetworkError(message)


def integer_vector(values: Any, place: str) -> Integers:
    array = np.asarray(values)
    require(array.ndim == 1, f"{place} must be a vector, not of shape {array.shape}")
    require(np.issubdtype(array.dtype, np.integer), f"{place} must be integers, not {array.dtype}")
    array = array.astype(np.int64)
    array.flags.writeable = False
    return array
