"""Chooses the exponents of several float paths into one neuron: powers of two with least error.

A table holds each path's squared rounding error, per channel, for scales an eighth of an octave
apart. The error of a choice of exponents is then a sum over tables, so that the time of a search
grows with the square of the number of paths, not exponentially.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lbq_hw import numeric
from lbq_hw.train.quantize import MAX_CHOSEN_EXPONENT

Floats = NDArray[np.float64]

_OCTAVE = 8  # steps of a table from one power of two to the next
_CLIPPED = 10  # steps below the step that just spans a channel's weights: they clip the largest
_DEEP = 30 * _OCTAVE  # steps this far below the widest channel's are not tabled
_WEIGHTS = 1024  # at most this many weights of a channel, evenly spaced, are used
_TRY_ALL = 3  # with at most this many paths every choice is tried


def best(tensors: Sequence[Floats], bits: int, *, finest: float, shared: bool) -> tuple[int, ...]:
    """One exponent per tensor (C, n), the least of them 0.

    `finest` bounds the common scale from below; `shared`: all channels have one scale.
    """
    search = _Search(tensors, bits, finest=finest, shared=shared)
    every = range(MAX_CHOSEN_EXPONENT + 1)
    if len(tensors) <= _TRY_ALL:
        choices = (c for c in itertools.product(every, repeat=len(tensors)) if min(c) == 0)
        return min(choices, key=search.error)
    chosen = search.start()
    while True:
        previous = chosen
        for place in range(len(tensors)):
            around = ((*chosen[:place], x, *chosen[place + 1 :]) for x in every)
            chosen = min((chosen, *around), key=search.error)
        if chosen == previous:
            return tuple(x - min(chosen) for x in chosen)


class _Search:
    """The tables of a set of paths, on one axis of scales, and the error of a choice."""

    def __init__(
        self, tensors: Sequence[Floats], bits: int, *, finest: float, shared: bool
    ) -> None:
        limit = numeric.weight_limit(bits)
        spans = np.array([np.abs(t).max(axis=1) / limit for t in tensors])
        least = max(finest, float(spans.max()) * 2.0 ** (-_DEEP / _OCTAVE), np.finfo(float).tiny)
        tops = np.ceil(np.log2(np.maximum(spans, least)) * _OCTAVE).astype(int)
        self._shared = shared
        self._tops = tops
        self._first = int(tops.min()) - _CLIPPED - MAX_CHOSEN_EXPONENT * _OCTAVE
        self._scales = int(tops.max()) + 1 - self._first
        whole = self._scales + MAX_CHOSEN_EXPONENT * _OCTAVE
        self._tables = [
            self._table(tensor, top, limit, whole)
            for tensor, top in zip(tensors, tops, strict=True)
        ]
        axis = 2.0 ** ((self._first + np.arange(self._scales)) / _OCTAVE)
        self._too_fine = axis < finest * (1 - 1e-9)

    def _table(self, tensor: Floats, top: NDArray[np.int64], limit: int, whole: int) -> Floats:
        """Errors (C, steps): unbounded below the first clipped step, those of zeros at the end."""
        count = tensor.shape[1]
        tensor = tensor[:, :: -(-count // _WEIGHTS)]
        share = count / tensor.shape[1]
        everything = share * (tensor**2).sum(axis=1)
        table = np.repeat(everything[:, None], whole, axis=1)
        places = top - self._first
        table[np.arange(whole) < (places - _CLIPPED)[:, None]] = np.inf
        rows = np.arange(len(tensor))
        for offset in range(-_CLIPPED, int(np.ceil(np.log2(2 * limit))) * _OCTAVE + 1):
            at = places + offset
            inside = at < whole
            step = 2.0 ** ((top + offset) / _OCTAVE)[:, None]
            codes = np.clip(np.rint(tensor / step), -limit, limit)
            error = share * ((codes * step - tensor) ** 2).sum(axis=1)
            table[rows[inside], at[inside]] = error[inside]
        return table

    def error(self, exponents: Sequence[int]) -> float:
        total = np.zeros((len(self._tables[0]), self._scales))
        for table, exponent in zip(self._tables, exponents, strict=True):
            shift = exponent * _OCTAVE
            total += table[:, shift : shift + self._scales]
        total[:, self._too_fine] = np.inf
        return float(total.sum(axis=0).min() if self._shared else total.min(axis=1).sum())

    def start(self) -> tuple[int, ...]:
        """The first choice, from the median channel of each path."""
        middle = np.median(self._tops, axis=1) / _OCTAVE
        rounded = np.clip(np.rint(middle - middle.min()), 0, MAX_CHOSEN_EXPONENT)
        return tuple(int(x) for x in rounded)
