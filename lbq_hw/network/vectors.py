"""Vectors of a layer's parameters, one number per channel."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbq_hw.network import limits
from lbq_hw.network.base import require
from lbq_hw.numeric import Integers


def integer_vector(values: Any, place: str) -> Integers:
    """A read-only vector of int64, each within `limits.MAX_PARAMETER`."""
    array = np.asarray(values)
    require(array.ndim == 1, f"{place} must be a vector, not of shape {array.shape}")
    require(np.issubdtype(array.dtype, np.integer), f"{place} must be integers, not {array.dtype}")
    check_magnitude(array, place)
    array = array.astype(np.int64)
    array.flags.writeable = False
    return array


def check_magnitude(values: NDArray[Any], place: str) -> None:
    """Refuse parameters that are too large. abs() is not used, since abs(-2**63) wraps."""
    most = limits.MAX_PARAMETER
    if values.size:
        low, high = int(values.min()), int(values.max())
        require(
            -most <= low and high <= most,
            f"{place} must be within -2**53..2**53, not {low if low < -most else high}",
        )
