"""The movement of fields of view over a tensor: their starts, their steps, and their runs.

All numbers here are in pixels of the source, vertical or horizontal (axis 0 or 1), except in a
`Run`, which counts in words and bits as its record does.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

from lbq_hw.compiler.tensors import Tensor
from lbq_hw.network import Layer, Path, Window

ONE_PIXEL = Window(kernel=(1, 1), stride=(1, 1))
Taps = tuple[tuple[int, ...], tuple[int, ...]]  # taps of a sum-pool, vertical and horizontal


class Run(NamedTuple):
    """Fields of a RUN record; `length` is a count."""

    row: int
    column: int
    length: int
    weight: int


@dataclass(frozen=True, kw_only=True)
class Axis:
    """A field of view along one axis: its first pixel, its steps, and the range of valid pixels.

    `window` is the step to the next pixel before max-pooling, `step` the step to the next output.
    `reach` is the range of all pixels that are ever addressed, with the end exclusive.
    """

    init: int
    window: int
    step: int
    low: int
    high: int
    reach: tuple[int, int]

    @property
    def counts(self) -> bool:
        """Whether any pixel is valid."""
        return self.low <= self.high


def move(layer: Layer, path: Path, source: Tensor, taps: Taps, axis: int) -> Axis:
    """The movement of a path's field of view along one axis, for some taps of its sum-pool."""
    pool, outer = path.pool or ONE_PIXEL, layer.pool or ONE_PIXEL
    stride, padding = pool.stride[axis], pool.padding[axis]
    low, high = 0, source.shape[1 + axis] - 1
    if path.pool is not None and len(taps[axis]) == 1:
        last_pooled = path.pooled_shape(source.shape)[1 + axis] - 1
        low = max(low, taps[axis][0] - padding)
        high = min(high, last_pooled * stride - padding + taps[axis][0])
    outputs = layer.output_shape[1 + axis]
    window = path.stride[axis] * stride if layer.shape[1 + axis] > 1 else 0
    step = window * outer.stride[axis] if outputs > 1 else 0
    init = -path.padding[axis] * stride - padding - outer.padding[axis] * window
    last = init + step * (outputs - 1) + window * (outer.kernel[axis] - 1)
    size = (path.kernel[axis] - 1) * stride + taps[axis][-1] + 1
    return Axis(init=init, window=window, step=step, low=low, high=high, reach=(init, last + size))


def tap_groups(layer: Layer, path: Path, source: Tensor) -> list[Taps]:
    """Taps of the path's sum-pool, grouped by path record; ``[((0,), (0,))]`` without a sum-pool.

    A pooled pixel in the convolution's padding does not exist, but its taps may fall on pixels of
    the source, which must not count. Along such an axis each tap gets a path record of its own,
    because the range of valid source pixels depends on the tap.
    """
    pool = path.pool or ONE_PIXEL
    groups = []
    for axis in (0, 1):
        taps = tuple(range(pool.kernel[axis]))
        strays = path.pool is not None and _strays(layer, path, path.pool, source, axis)
        groups.append([(tap,) for tap in taps] if strays else [taps])
    return list(product(*groups))


def _strays(layer: Layer, path: Path, pool: Window, source: Tensor, axis: int) -> bool:
    """Whether a tap of a pooled pixel that does not exist falls on a source pixel."""
    pooled, outputs = path.pooled_shape(source.shape)[1 + axis], layer.shape[1 + axis]
    first, stride, kernel = -path.padding[axis], path.stride[axis], path.kernel[axis]
    last = first + (outputs - 1) * stride + kernel - 1
    for pixel in (*range(first, 0), *range(max(pooled, first), last + 1)):
        nearest = min((pixel - first) // stride, outputs - 1) * stride
        asked = pixel - first - nearest < kernel
        start = pixel * pool.stride[axis] - pool.padding[axis]
        if asked and -pool.kernel[axis] < start < source.shape[1 + axis]:
            return True
    return False


def window_runs(path: Path, source: Tensor, row_rows: int) -> tuple[Run, ...]:
    """One run per kernel row of a convolution; a kernel row takes `row_rows` weight rows."""
    (height, width), pitch = path.kernel, source.pitch
    return tuple(
        Run(
            row=ky * source.row_words,
            column=0,
            length=width * pitch,
            weight=ky * row_rows,
        )
        for ky in range(height)
    )


def tap_runs(path: Path, source: Tensor, row_rows: int, taps: Taps) -> tuple[Run, ...]:
    """One run per tap of the kernel and tap of the sum-pool; taps of one pool share weight rows."""
    pool, (height, width), pitch = path.pool or ONE_PIXEL, path.kernel, source.pitch
    return tuple(
        Run(
            row=(ky * pool.stride[0] + ty) * source.row_words,
            column=(kx * pool.stride[1] + tx) * pitch,
            length=pitch,
            weight=ky * row_rows + kx * pitch,
        )
        for ky, kx in product(range(height), range(width))
        for ty, tx in product(*taps)
    )
