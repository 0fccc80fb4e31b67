"""Integer arithmetic of the deployed network: the only place for rounding, shifts and widths.

Everything here is exact. Floats only enter through `to_integer` and `to_ratio`, both called once,
at export; from there on the network consists of integers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Integers = NDArray[np.int64]

MAX_CAPACITY = 31  # five bit planes
MAX_WEIGHT_BITS = 16
EXACT_IN_FLOAT32 = 1 << 24
EXACT_IN_FLOAT64 = 1 << 53


def to_integer(x: ArrayLike) -> Integers:
    """Round to the nearest integer, ties to even; refuses values beyond exact float64 integers."""
    x = np.asarray(x, dtype=np.float64)
    if not np.all(np.abs(x) < EXACT_IN_FLOAT64):  # also catches nan
        raise ValueError("a value to be rounded must be finite and below 2**53 in magnitude")
    return np.rint(x).astype(np.int64)


def to_ratio(x: float, bits: int) -> tuple[int, int]:
    """Nearest m / 2**B with B <= bits, in lowest terms: ``0.5 -> (1, 1)``, ``1.0 -> (1, 0)``."""
    if not 0.0 <= x <= 1.0:
        raise ValueError(f"a decay must lie between 0 and 1, not {x!r}")
    m = int(to_integer(x * (1 << bits)))
    while bits > 0 and m % 2 == 0:
        m, bits = m // 2, bits - 1
    return m, bits


def decay(v: Any, m: int, bits: int) -> Any:
    """``floor(m * v / 2**bits)``, elementwise; for m = 1 it is just an arithmetic shift."""
    return (v if m == 1 else v * m) >> bits


def burst_level(u: NDArray[Any], theta: NDArray[Any], capacity: int) -> NDArray[np.uint8]:
    """The number of k in 1..capacity with ``u >= k * theta``, by comparisons without a division."""
    level = np.zeros(np.broadcast_shapes(u.shape, theta.shape), dtype=np.uint8)
    for k in range(1, capacity + 1):
        level += u >= k * theta
    return level


def plane_count(capacity: int) -> int:
    """Bit planes needed for levels 0..capacity."""
    return int(capacity).bit_length()


def weight_limit(bits: int) -> int:
    """Largest weight code. Codes are symmetric, since a negative norm gain flips their signs."""
    if not isinstance(bits, int):
        raise TypeError(f"weight bits must be an integer, not {bits!r}")
    if not 2 <= bits <= MAX_WEIGHT_BITS:
        raise ValueError(f"weight bits must be between 2 and {MAX_WEIGHT_BITS}, not {bits!r}")
    return (1 << (bits - 1)) - 1


def signed_width(low: int, high: int) -> int:
    """Two's-complement bits that hold every integer of low..high."""
    low, high = min(int(low), 0), max(int(high), 0)
    return max((-low - 1).bit_length() if low else 0, high.bit_length()) + 1


def smallest_integer_dtype(values: NDArray[Any]) -> np.dtype[Any]:
    """Narrowest signed dtype that holds every value."""
    low, high = (int(values.min()), int(values.max())) if values.size else (0, 0)
    for dtype in (np.int8, np.int16, np.int32):
        if np.iinfo(dtype).min <= low and high <= np.iinfo(dtype).max:
            return np.dtype(dtype)
    return np.dtype(np.int64)


def sum_bounds(weights: NDArray[Any], capacity: int) -> tuple[Integers, Integers]:
    """Tight bounds, per row, of ``sum_j w[j] * s[j]`` over all s in 0..capacity."""
    rows = weights.reshape(len(weights), -1)
    positive = np.maximum(rows, 0).sum(axis=1, dtype=np.int64)
    negative = np.minimum(rows, 0).sum(axis=1, dtype=np.int64)
    return negative * capacity, positive * capacity


def exact_float_dtype(bound: int) -> np.dtype[Any]:
    """Float type in which integer sums are exact if every partial sum is within `bound`."""
    if bound < EXACT_IN_FLOAT32:
        return np.dtype(np.float32)
    if bound < EXACT_IN_FLOAT64:
        return np.dtype(np.float64)
    raise OverflowError(f"a sum may reach {bound}, beyond the 2**53 that float64 holds exactly")


def window_count(size: int, kernel: int, stride: int, padding: int) -> int:
    """Outputs of a sliding window along one axis; the incomplete last window is dropped."""
    return (size + 2 * padding - kernel) // stride + 1
