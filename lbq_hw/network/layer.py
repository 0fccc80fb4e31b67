"""A layer and its parts: the paths into it, and the pools before and after it.

Each class checks its own fields; `lbq_hw.network.Network` checks that the parts fit together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbq_hw import numeric
from lbq_hw.network import limits
from lbq_hw.network.base import Pair, Shape, require
from lbq_hw.network.neuron import Neuron
from lbq_hw.network.vectors import check_magnitude, integer_vector
from lbq_hw.numeric import Integers


def _changeable(array: NDArray[Any]) -> bool:
    """Whether an array, or the array that it is a view of, is writable."""
    found: Any = array
    while isinstance(found, np.ndarray):
        if found.flags.writeable:
            return True
        found = found.base
    return False


@dataclass(frozen=True, kw_only=True)
class Window:
    """A pooling window. Padding contributes level 0 to sums and to maxima alike."""

    kernel: Pair
    stride: Pair
    padding: Pair = (0, 0)

    def __post_init__(self) -> None:
        for name in ("kernel", "stride"):
            pair = getattr(self, name)
            require(
                all(1 <= side <= limits.MAX_SIDE for side in pair),
                f"window {name} must be 1..{limits.MAX_SIDE}, not {pair!r}",
            )
        require(
            all(0 <= p < k for p, k in zip(self.padding, self.kernel, strict=True)),
            f"window padding must be smaller than its kernel, not {self.padding!r}",
        )

    def output_shape(self, shape: Shape) -> Shape:
        height, width = (
            numeric.window_count(size, k, s, p)
            for size, k, s, p in zip(shape[1:], self.kernel, self.stride, self.padding, strict=True)
        )
        return shape[0], height, width

    @property
    def taps(self) -> int:
        return self.kernel[0] * self.kernel[1]


@dataclass(frozen=True, kw_only=True, eq=False)
class Path:
    """One synaptic path: ``acc += 2**exponent * sum(weight * levels of source)``.

    `weight` is ``(out, in, kh, kw)`` for a convolution (a linear layer is one whose kernel covers
    its input) or ``(C,)`` for an identity shortcut. `pool` sums the source over a window first: an
    average pool, its 1/n absorbed in the weights.
    """

    source: str
    weight: NDArray[Any]
    stride: Pair = (1, 1)
    padding: Pair = (0, 0)
    exponent: int = 0
    pool: Window | None = None

    def __post_init__(self) -> None:
        weight = np.asarray(self.weight)
        place = f"path from {self.source!r}"
        require(
            np.issubdtype(weight.dtype, np.signedinteger),
            f"{place}: weight must be signed integers, not {weight.dtype}",
        )
        require(weight.ndim in (1, 4), f"{place}: weight must be (C,) or (out, in, kh, kw)")
        require(weight.size > 0, f"{place}: weight must not be empty")
        most = limits.MAX_SIDE
        require(
            all(1 <= step <= most for step in self.stride),
            f"{place}: stride must be 1..{most}, not {self.stride!r}",
        )
        require(
            all(0 <= pixels <= most for pixels in self.padding),
            f"{place}: padding must be 0..{most}, not {self.padding!r}",
        )
        require(
            0 <= self.exponent <= limits.MAX_EXPONENT,
            f"{place}: exponent must be 0..{limits.MAX_EXPONENT}, not {self.exponent}",
        )
        if weight.ndim == 1:
            check_magnitude(weight, f"{place}: weight")
            require(
                self.stride == (1, 1) and self.padding == (0, 0),
                f"{place}: an identity has neither stride nor padding",
            )
        # Read-only weights, such as a file's, are not copied: they may be large.
        dtype = numeric.smallest_integer_dtype(weight)
        weight = weight.astype(dtype, copy=_changeable(weight))
        weight.flags.writeable = False
        object.__setattr__(self, "weight", weight)

    @property
    def is_identity(self) -> bool:
        return self.weight.ndim == 1

    @property
    def kernel(self) -> Pair:
        return (1, 1) if self.is_identity else (self.weight.shape[2], self.weight.shape[3])

    def pooled_shape(self, source: Shape) -> Shape:
        return self.pool.output_shape(source) if self.pool else source

    def output_shape(self, source: Shape) -> Shape:
        pooled = self.pooled_shape(source)
        if self.is_identity:
            return pooled
        height, width = (
            numeric.window_count(size, k, s, p)
            for size, k, s, p in zip(
                pooled[1:], self.kernel, self.stride, self.padding, strict=True
            )
        )
        return self.weight.shape[0], height, width


@dataclass(frozen=True, kw_only=True, eq=False)
class Layer:
    """Paths into one population of neurons, or into the logits when `neuron` is None.

    `shape` is the shape of the population; `pool` is a max-pool of its levels. `bias` is in units
    of ``2**-fraction_bits``. `scale` (the real value of one accumulator step, per channel) and
    `gamma` are for reports only; nothing is computed from them. `weight_bits` is set if the layer's
    convolutions have fewer bits than the network.
    """

    name: str
    shape: Shape
    paths: tuple[Path, ...]
    bias: Integers
    fraction_bits: int
    neuron: Neuron | None
    pool: Window | None = None
    scale: NDArray[np.float64] | None = None
    gamma: float | None = None
    weight_bits: int | None = None

    def __post_init__(self) -> None:
        limits.check_layer_name(self.name)
        place = f"layer {self.name!r}"
        limits.check_shape(self.shape, place)
        object.__setattr__(self, "bias", integer_vector(self.bias, f"{place}: bias"))
        require(bool(self.paths), f"{place}: needs at least one path")
        require(
            len(self.paths) <= limits.MAX_PATHS,
            f"{place}: {len(self.paths)} paths are more than {limits.MAX_PATHS}",
        )
        require(
            0 <= self.fraction_bits <= limits.MAX_FRACTION_BITS,
            f"{place}: fraction_bits must be 0..{limits.MAX_FRACTION_BITS}, "
            f"not {self.fraction_bits!r}",
        )
        require(
            self.pool is None or self.neuron is not None,
            f"{place}: a readout has no max-pool",
        )
        vectors: dict[str, NDArray[Any]] = {"bias": self.bias}
        if self.neuron is not None:
            vectors |= self.neuron.vectors
        if self.scale is not None:
            vectors["scale"] = self.scale
            require(bool(np.isfinite(self.scale).all()), f"{place}: scale must be finite")
            require(
                self.neuron is not None or len(set(self.scale.flat)) == 1,
                f"{place}: a readout must have one scale, since its classes compare",
            )
        for name, vector in vectors.items():
            require(
                vector.shape == (self.shape[0],),
                f"{place}: {name} must have {self.shape[0]} entries, not {vector.shape}",
            )

    @property
    def output_shape(self) -> Shape:
        return self.pool.output_shape(self.shape) if self.pool else self.shape

    @property
    def capacity(self) -> int:
        """Largest level the layer emits; 0 for the readout."""
        return self.neuron.capacity if self.neuron else 0
