"""Exact integer layers through BLAS: the number types of each layer, chosen and proven.

Matrix products run in floating point and are still exact: `plan` proves for each path that no
partial sum, in any order of summation, exceeds the integers that float32 (below 2**24) or float64
(below 2**53) holds exactly, and refuses the network otherwise. Membranes are int32 if the weights
prove that they fit, else int64.

Tensors are ``(T', n, H, W, C)`` here, with T' = 1 where nothing changes over time: channels last
make the columns of a convolution contiguous runs of kw * C values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from lbq_hw import numeric
from lbq_hw.network import INPUT, Layer, Network, Pair, Path, Window

Array = NDArray[Any]
Levels = NDArray[np.uint8]

# Operand of one matrix product: small enough for a cache, unless that makes it too flat.
BLOCK_BYTES = 1 << 22
BLOCK_ROWS = 512
MOST_BYTES = 1 << 27  # of that operand: an image of many timesteps or pixels is taken in parts


@dataclass(frozen=True, kw_only=True, eq=False)
class PathPlan:
    """How one path is summed, with the bound that makes it exact.

    Members: `bound`, the largest magnitude of any partial sum, without the path's exponent;
    `matrix`, the weights times ``2**exponent``: ``(kh * kw * in, out)`` in the narrowest float
    type that holds every sum exactly, or ``(C,)`` integers of an identity; `image_rows`, the rows
    that one image adds to the product.
    """

    path: Path
    bound: int
    matrix: Array
    image_rows: int

    @property
    def block_images(self) -> int:
        """How many images to take at once."""
        image_bytes = self.image_rows * max(self.matrix.shape) * self.matrix.itemsize
        return max(1, BLOCK_BYTES // image_bytes, BLOCK_ROWS // self.image_rows)

    def accumulate(self, x: Levels) -> Array:
        """Source levels -> this path's part of acc, integers whatever their type."""
        pooled = x if self.path.pool is None else _sum_pool(x, self.path.pool)
        if self.path.is_identity:
            return pooled * self.matrix
        windows = _windows(_pad(pooled, self.path.padding), self.path.kernel, self.path.stride)
        steps, images, height, width = windows.shape[:4]
        row_bytes = images * width * len(self.matrix) * self.matrix.itemsize
        if steps * height * row_bytes <= MOST_BYTES:
            return self._product(windows)
        product = np.empty((*windows.shape[:4], self.matrix.shape[1]), self.matrix.dtype)
        rows = max(1, BLOCK_BYTES // row_bytes)
        for t in range(steps):
            for top in range(0, height, rows):
                part = slice(t, t + 1), slice(None), slice(top, top + rows)
                product[part] = self._product(windows[part])
        return product

    def _product(self, windows: Array) -> Array:
        columns = windows.astype(self.matrix.dtype, order="C")
        product = columns.reshape(-1, len(self.matrix)) @ self.matrix
        return product.reshape(*windows.shape[:4], self.matrix.shape[1])


@dataclass(frozen=True, kw_only=True, eq=False)
class LayerPlan:
    """One layer, prepared: `dtype` of its integers, its vectors repeated over a row of pixels.

    `values` are the vectors of its neurons, by name. `steps` is how many timesteps of acc differ: 1
    if the current is static, else T. `last_reads` names the tensors that no later layer reads.
    """

    layer: Layer
    paths: tuple[PathPlan, ...]
    steps: int
    dtype: np.dtype[Any]
    bias: Array
    values: Mapping[str, Array]
    last_reads: tuple[str, ...]

    def blocks(self, images: int, workers: int = 1) -> list[slice]:
        """Slices of a batch, small enough for a cache, and at least one for every worker."""
        size = min(*(path.block_images for path in self.paths), max(1, -(-images // workers)))
        return [slice(start, start + size) for start in range(0, max(images, 1), size)]

    def accumulate(self, tensors: Mapping[str, Levels], block: slice) -> Array:
        """acc of one block of images."""
        parts = (
            path.accumulate(tensors[path.path.source][:, block]).astype(self.dtype, copy=False)
            for path in self.paths
        )
        return reduce(np.add, parts)

    def currents(self, acc: Array) -> Array:
        """``acc * 2**F + bias`` as ``(T', rows, W * C)``."""
        return (acc.reshape(len(acc), -1, self.bias.size) << self.layer.fraction_bits) + self.bias

    def fire(self, acc: Array, timesteps: int) -> Iterator[tuple[Array, Levels, Array]]:
        """(U, S, V) of each timestep, each ``(n, H, W, C)``."""
        neuron = self.layer.neuron
        assert neuron is not None
        currents, rules = self.currents(acc), neuron.rules
        v: Any = None
        for t in range(timesteps):
            u = currents[t if len(currents) > 1 else 0]
            if v is not None:
                u = u + numeric.decay(v, neuron.decay, neuron.decay_bits)
            s = numeric.burst_level(u, self.values["theta"], neuron.capacity)
            v = u
            for rule in rules:
                v = rule.apply(v, s, self.values.get(rule.name))
            shape = acc.shape[1:]
            yield u.reshape(shape), s.reshape(shape), v.reshape(shape)


def plan(network: Network) -> tuple[LayerPlan, ...]:
    """Choose number types and prove that they suffice; OverflowError if none does."""
    last_reader: dict[str, str] = {}
    for layer in network.layers:
        last_reader |= {path.source: layer.name for path in layer.paths}
    return tuple(
        plan_layer(
            network,
            layer,
            tuple(source for source, reader in last_reader.items() if reader == layer.name),
        )
        for layer in network.layers
    )


def plan_layer(network: Network, layer: Layer, last_reads: tuple[str, ...] = ()) -> LayerPlan:
    """The plan of a layer that reads outputs of the network, but need not be part of it."""
    bounds = [network.path_bound(path) for path in layer.paths]
    dtype = _membrane_dtype(network, layer, bounds)
    vectors = layer.neuron.vectors if layer.neuron else {}

    def row(vector: Array) -> Array:
        """Repeat a vector over the pixels; a clipped value is still beyond every membrane."""
        limits = np.iinfo(dtype)
        return np.tile(vector.clip(limits.min, limits.max).astype(dtype), layer.shape[2])

    return LayerPlan(
        layer=layer,
        paths=tuple(
            _plan_path(network, layer, path, bound, dtype)
            for path, bound in zip(layer.paths, bounds, strict=True)
        ),
        steps=1 if network.is_static(layer) else network.timesteps,
        dtype=dtype,
        bias=row(layer.bias),
        values={name: row(vector) for name, vector in vectors.items()},
        last_reads=last_reads,
    )


def _plan_path(
    network: Network, layer: Layer, path: Path, bound: int, integer: np.dtype[Any]
) -> PathPlan:
    channels, height, width = layer.shape
    if path.is_identity:
        matrix = path.weight.astype(integer) << path.exponent
    else:
        try:
            dtype = numeric.exact_float_dtype(bound)
        except OverflowError as error:
            place = f"layer {layer.name!r}, path from {path.source!r}"
            raise OverflowError(f"{place}: {error}") from None
        matrix = path.weight.transpose(2, 3, 1, 0).reshape(-1, channels).astype(dtype)
        matrix *= 1 << path.exponent  # a power of two: the sums stay exact
    steps = 1 if network.input.static and path.source == INPUT else network.timesteps
    return PathPlan(path=path, bound=bound, matrix=matrix, image_rows=steps * height * width)


def _membrane_dtype(network: Network, layer: Layer, path_bounds: list[int]) -> np.dtype[Any]:
    """int32 if every integer of the layer provably fits, intermediate values too, else int64."""
    pairs = zip(layer.paths, path_bounds, strict=True)
    acc = sum(bound << path.exponent for path, bound in pairs)
    current = (acc << layer.fraction_bits) + int(np.abs(layer.bias).max())
    neuron = layer.neuron
    if neuron is None:
        reset, decay, thresholds = 0, 1, 0
    else:
        reset, decay = neuron.move, max(neuron.decay, 1)
        thresholds = neuron.capacity * int(neuron.theta.max())
    # |V| grows by at most a current, a reset and a rounding each timestep.
    extreme = network.timesteps * (current + reset + 1)
    if max(extreme * decay, thresholds) >= 1 << 63:
        raise OverflowError(f"layer {layer.name!r}: its membranes may not fit 64 bits")
    if neuron is None:
        return np.dtype(np.int64)
    if extreme * decay >= 1 << 31:
        bounds = network.bounds(layer)
        extreme = max(-int(bounds.u_low.min()), int(bounds.u_high.max())) + current + reset
    return np.dtype(np.int32 if max(extreme * decay, thresholds) < 1 << 31 else np.int64)


def max_pool(levels: Levels, window: Window) -> Levels:
    """Largest level of every window."""
    return _slide(levels, window, np.maximum)


def _sum_pool(levels: Levels, window: Window) -> Array:
    return _slide(levels.astype(np.int32), window, np.add)


def _slide(x: Array, window: Window, combine: np.ufunc) -> Array:
    """Combine the values of every window, down the columns first and then along the rows."""
    x = _pad(x, window.padding)
    for axis, kernel, stride in zip((2, 3), window.kernel, window.stride, strict=True):
        span = stride * ((x.shape[axis] - kernel) // stride) + 1
        before = (slice(None),) * axis
        x = reduce(combine, (x[(*before, slice(i, i + span, stride))] for i in range(kernel)))
    return x


def _pad(x: Array, padding: Pair) -> Array:
    if padding == (0, 0):
        return x
    steps, images, height, width, channels = x.shape
    down, right = padding
    padded = np.zeros((steps, images, height + 2 * down, width + 2 * right, channels), x.dtype)
    padded[:, :, down : down + height, right : right + width] = x
    return padded


def _windows(x: Array, kernel: Pair, stride: Pair) -> Array:
    """Windows of x, the rows of a matrix once they are copied: ``(T', n, Ho, Wo, kh, kw * C)``."""
    x = np.ascontiguousarray(x)
    steps, images, height, width, channels = x.shape
    rows, cols = (height - kernel[0]) // stride[0] + 1, (width - kernel[1]) // stride[1] + 1
    one = x.itemsize  # numpy's own strides are arbitrary along axes of length 1
    col, row, image = one * channels, one * channels * width, one * channels * width * height
    return as_strided(
        x,
        (steps, images, rows, cols, kernel[0], kernel[1] * channels),
        (image * images, image, row * stride[0], col * stride[1], row, one),
        writeable=False,
    )
