"""Turns the paths of a network into paths of a streaming core: windows of taps, and narrow weights.

A sum-pool is merged into the window of its path: a pixel has the tap of the pooled pixel that it
belongs to. If the windows of a pool overlap, the path becomes one path per pixel of the pool. An
identity whose weights are wider than the core's becomes one identity per limb.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from lbq_hw.network import Layer, Network, Path, Window
from lbq_hw.numeric import Integers, weight_limit

_ONE = Window(kernel=(1, 1), stride=(1, 1))


@dataclass(frozen=True, kw_only=True, eq=False)
class Axis:
    """A window along one axis: where it begins, its step, the range of valid source pixels, and the
    kernel element of each of its pixels (None: no tap).
    """

    init: int
    step: int
    low: int
    high: int
    taps: tuple[int | None, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class Piece:
    """A path of the core; `weight` is (out, in, kh, kw), or (C,) for an identity."""

    source: str
    weight: Integers
    exponent: int
    rows: Axis
    columns: Axis

    @property
    def identity(self) -> bool:
        return self.weight.ndim == 1

    @property
    def taps(self) -> list[tuple[int, int] | None]:
        """The kernel element of each pixel of the window, row by row."""
        return [
            None if y is None or x is None else (y, x)
            for y in self.rows.taps
            for x in self.columns.taps
        ]


def pieces_of(network: Network, layer: Layer) -> Iterator[Piece]:
    """The paths of a layer, each as one piece or several."""
    for path in layer.paths:
        for weight, exponent in _limbs(path, network.weight_bits):
            for rows in _axes(network, path, 0):
                for columns in _axes(network, path, 1):
                    yield Piece(
                        source=path.source,
                        weight=weight,
                        exponent=exponent,
                        rows=rows,
                        columns=columns,
                    )


def _limbs(path: Path, bits: int) -> Iterator[tuple[Integers, int]]:
    """Weights that fit the core, with their exponents."""
    weight, exponent = path.weight.astype(np.int64), path.exponent
    limit = weight_limit(bits)
    while path.is_identity and np.abs(weight).max() > limit:
        low = np.sign(weight) * (np.abs(weight) & limit)
        yield low, exponent
        weight, exponent = (weight - low) >> (bits - 1), exponent + bits - 1
    yield weight, exponent


def _axes(network: Network, path: Path, axis: int) -> list[Axis]:
    """One window, or one per pixel of a pool whose windows overlap."""
    pool = path.pool or _ONE
    size, pooled = (shape[1 + axis] for shape in _shapes(network, path))
    kernel, stride, padding = (pair[axis] for pair in (path.kernel, path.stride, path.padding))
    taps, hop, pad = pool.kernel[axis], pool.stride[axis], pool.padding[axis]
    merged = [range(taps)] if hop >= taps else [range(i, i + 1) for i in range(taps)]
    windows = [
        Axis(
            init=offsets[0] - pad - padding * hop,
            step=stride * hop,
            low=max(0, offsets[0] - pad),
            high=min(size, (pooled - 1) * hop - pad + offsets[-1] + 1) - 1,
            taps=tuple(
                i // hop if i % hop < len(offsets) else None
                for i in range((kernel - 1) * hop + len(offsets))
            ),
        )
        for offsets in merged
    ]
    return [window for window in windows if window.low <= window.high]


def _shapes(network: Network, path: Path) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    source = network.source_shape(path)
    return source, path.pooled_shape(source)
