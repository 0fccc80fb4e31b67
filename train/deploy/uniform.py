"""Exact integer thresholds of a uniform ReLU, for every possible sum.

Sums of an integer layer are integers, so a threshold t is passed at ceil(t) and nothing between two
integers matters. Of a channel with thresholds ``t_k = k * step - constant``, in units of its sums,
those of the layer, ``(k * theta - bias) / 2**F``, must have the same ceilings for all k of 1..N.
For a given theta that is an interval of biases; with enough fraction bits some theta has one.
"""

from __future__ import annotations

import numpy as np

from lbq_hw.network import limits
from lbq_hw.numeric import Integers, to_integer
from lbq_hw.train.deploy.fold import Floats

_TRIED = 3  # thetas below and above the nearest one
# A threshold this close above an integer, in units of the sums, counts as this integer.
_WHOLE = 1e-7


def exact_steps(step: Floats, constant: Floats, capacity: int) -> tuple[int, Integers, Integers]:
    """Fraction bits, theta and bias per channel, for a step and a constant in units of the sums.

    The fewest fraction bits with which all are exact; if there are none, the nearest integers with
    the most.
    """
    numbers = np.arange(1, capacity + 1)[:, None]
    exact = numbers * step - constant
    wanted = np.ceil(exact - _WHOLE)
    if not np.abs(wanted).max(initial=0.0) < 2.0**40:
        raise ValueError(f"a threshold of {np.abs(wanted).max():g} sums is too large")
    firsts = wanted.astype(np.int64)
    for fraction in range(limits.MAX_FRACTION_BITS + 1):
        theta = np.zeros(len(step), np.int64)
        bias = np.zeros(len(step), np.int64)
        found = np.zeros(len(step), bool)
        nearest = np.maximum(to_integer(2.0**fraction * step), 1)
        for off in sorted(range(-_TRIED, _TRIED + 1), key=abs):
            tried = np.maximum(nearest + off, 1)
            low = (numbers * tried - (firsts << fraction)).max(axis=0)
            high = (numbers * tried - ((firsts - 1) << fraction)).min(axis=0) - 1
            fits = (low <= high) & ~found
            theta, bias = np.where(fits, tried, theta), np.where(fits, (low + high) // 2, bias)
            found |= fits
        if found.all():
            return fraction, theta, bias
    fraction = limits.MAX_FRACTION_BITS
    nearest = np.maximum(to_integer(2.0**fraction * step), 1)
    return fraction, nearest, to_integer(2.0**fraction * constant)
