"""The integer network: what is deployed, and the definition everything else must equal.

A `Network` is a list of `Layer`s in execution order. A layer sums one or more `Path`s into an
integer current; a spiking layer turns it into burst levels, the last layer (the readout) has no
neuron and sums its current over time into logits. Arithmetic: `lbq_hw.golden`; file: `lbq_hw.file`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbq_hw import numeric
from lbq_hw.numeric import Integers

Shape = tuple[int, int, int]  # channels, height, width
Pair = tuple[int, int]  # vertical, horizontal

INPUT = "input"  # the name under which paths refer to the network's input


class NetworkError(ValueError):
    """A network that contradicts itself; the message names the place."""


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise NetworkError(message)


@dataclass(frozen=True, kw_only=True)
class Window:
    """A pooling window. Padding contributes level 0 to sums and to maxima alike."""

    kernel: Pair
    stride: Pair
    padding: Pair = (0, 0)

    def __post_init__(self) -> None:
        _require(min(self.kernel) >= 1, f"window kernel must be at least 1, not {self.kernel!r}")
        _require(min(self.stride) >= 1, f"window stride must be at least 1, not {self.stride!r}")
        _require(
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


@dataclass(frozen=True, kw_only=True)
class Input:
    """Unsigned integer input: ``min(raw >> shift, 2**bits - 1)``, then a border.

    Members: `shape` of the raw image; `static` (one image for all timesteps) or one frame per
    timestep; `bits` planes; `border` pixels on each side that hold `border_value[channel]`: how a
    network trained on mean-subtracted images gets its zero padding right.
    """

    shape: Shape
    static: bool
    bits: int
    shift: int = 0
    border: int = 0
    border_value: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        _require(len(self.shape) == 3 and min(self.shape) >= 1, "input shape must be (C, H, W)")
        _require(1 <= self.bits <= 8, f"input bits must be between 1 and 8, not {self.bits!r}")
        _require(0 <= self.shift < 8, f"input shift must be between 0 and 7, not {self.shift!r}")
        _require(self.border >= 0, f"input border must not be negative, not {self.border!r}")
        if self.border:
            _require(
                len(self.border_value) == self.shape[0]
                and all(0 <= value <= self.capacity for value in self.border_value),
                f"input border_value must be one level 0..{self.capacity} per channel, "
                f"not {self.border_value!r}",
            )

    @property
    def capacity(self) -> int:
        """Largest value a pixel takes."""
        return (1 << self.bits) - 1

    @property
    def tensor_shape(self) -> Shape:
        """Shape of the tensor that paths see, border included."""
        channels, height, width = self.shape
        return channels, height + 2 * self.border, width + 2 * self.border

    def quantize(self, raw: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Raw uint8 images ``(n, C, H, W)`` or frames ``(n, T, C, H, W)`` -> ``(T', n, C, H, W)``.

        T' is 1 for a static input. Temporal frames become time-major, as golden wants them.
        """
        raw = np.asarray(raw)
        if raw.dtype != np.uint8:
            raise TypeError(f"raw input must be uint8, not {raw.dtype}")
        expected = 4 if self.static else 5
        if raw.ndim != expected or raw.shape[-3:] != self.shape:
            kind = "(n, C, H, W)" if self.static else "(n, T, C, H, W)"
            raise ValueError(
                f"raw input must be {kind} with (C, H, W) = {self.shape}, not {raw.shape}"
            )
        frames = raw[np.newaxis] if self.static else raw.swapaxes(0, 1)
        levels = np.minimum(frames >> self.shift, self.capacity).astype(np.uint8)
        if not self.border:
            return levels
        b = self.border
        padded = np.empty((*levels.shape[:2], *self.tensor_shape), dtype=np.uint8)
        padded[:] = np.asarray(self.border_value, dtype=np.uint8)[:, None, None]
        padded[..., b:-b, b:-b] = levels
        return padded


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
        _require(
            np.issubdtype(weight.dtype, np.signedinteger),
            f"{place}: weight must be signed integers, not {weight.dtype}",
        )
        _require(weight.ndim in (1, 4), f"{place}: weight must be (C,) or (out, in, kh, kw)")
        _require(weight.size > 0, f"{place}: weight must not be empty")
        _require(min(self.stride) >= 1, f"{place}: stride must be at least 1, not {self.stride!r}")
        _require(min(self.padding) >= 0, f"{place}: padding must not be negative")
        _require(0 <= self.exponent <= 15, f"{place}: exponent must be 0..15, not {self.exponent}")
        if weight.ndim == 1:
            _require(
                self.stride == (1, 1) and self.padding == (0, 0),
                f"{place}: an identity has neither stride nor padding",
            )
        weight = weight.astype(numeric.smallest_integer_dtype(weight))
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
class Neuron:
    """Soft-reset LIF with burst output, in units of ``2**-fraction_bits`` accumulator steps.

    `theta[c]` is one burst step, `reset[c]` what is subtracted after any spike,
    `decay / 2**decay_bits` the leak.
    """

    capacity: int
    theta: Integers
    reset: Integers
    decay: int
    decay_bits: int

    def __post_init__(self) -> None:
        _require(
            1 <= self.capacity <= numeric.MAX_CAPACITY,
            f"neuron capacity must be 1..{numeric.MAX_CAPACITY}, not {self.capacity!r}",
        )
        for name in ("theta", "reset"):
            object.__setattr__(self, name, _vector(getattr(self, name), f"neuron {name}"))
        _require(bool(np.all(self.theta >= 1)), "neuron theta must be at least 1")
        _require(
            0 <= self.decay <= 1 << self.decay_bits and 0 <= self.decay_bits <= 16,
            f"neuron decay must be 0..2**decay_bits, not {self.decay!r}/2**{self.decay_bits!r}",
        )


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """Proven ranges of one layer's integers, over every possible input, per channel."""

    acc_low: Integers
    acc_high: Integers
    u_low: Integers
    u_high: Integers

    @property
    def acc_bits(self) -> int:
        return numeric.signed_width(int(self.acc_low.min()), int(self.acc_high.max()))

    @property
    def membrane_bits(self) -> int:
        return numeric.signed_width(int(self.u_low.min()), int(self.u_high.max()))


@dataclass(frozen=True, kw_only=True, eq=False)
class Layer:
    """Paths into one population of neurons, or into the logits when `neuron` is None.

    `shape` is that of the population; `pool` a max-pool on the levels on their way out. `bias` is
    in units of ``2**-fraction_bits``. `scale` (the real value of one accumulator step, per
    channel) and `gamma` inform reports; nothing is computed from them.
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

    def __post_init__(self) -> None:
        object.__setattr__(self, "bias", _vector(self.bias, f"layer {self.name!r}: bias"))
        _require(bool(self.paths), f"layer {self.name!r}: needs at least one path")
        _require(
            0 <= self.fraction_bits <= 16,
            f"layer {self.name!r}: fraction_bits must be 0..16, not {self.fraction_bits!r}",
        )
        _require(
            self.pool is None or self.neuron is not None,
            f"layer {self.name!r}: a readout has no max-pool",
        )
        vectors: dict[str, NDArray[Any]] = {"bias": self.bias}
        if self.neuron is not None:
            vectors |= {"theta": self.neuron.theta, "reset": self.neuron.reset}
        if self.scale is not None:
            vectors["scale"] = self.scale
            _require(
                self.neuron is not None or len(set(self.scale.flat)) == 1,
                f"layer {self.name!r}: a readout must have one scale, since its classes compare",
            )
        for name, vector in vectors.items():
            _require(
                vector.shape == (self.shape[0],),
                f"layer {self.name!r}: {name} must have {self.shape[0]} entries, "
                f"not {vector.shape}",
            )

    @property
    def output_shape(self) -> Shape:
        return self.pool.output_shape(self.shape) if self.pool else self.shape

    @property
    def capacity(self) -> int:
        """Largest level the layer emits; 0 for the readout."""
        return self.neuron.capacity if self.neuron else 0


@dataclass(frozen=True, kw_only=True, eq=False)
class Network:
    """A checked integer network.

    Members: `input`; `timesteps` T; `weight_bits` of every convolution (identity weights may be
    wider); `layers` in execution order, the readout last; `meta`, JSON-able facts about its origin.
    """

    name: str
    input: Input
    timesteps: int
    weight_bits: int
    layers: tuple[Layer, ...]
    meta: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _require(
            type(self.timesteps) is int and self.timesteps >= 1,
            f"timesteps must be an integer of at least 1, not {self.timesteps!r}",
        )
        limit = numeric.weight_limit(self.weight_bits)
        _require(bool(self.layers), "a network needs at least one layer")
        shapes: dict[str, Shape] = {INPUT: self.input.tensor_shape}
        for index, layer in enumerate(self.layers):
            last = index == len(self.layers) - 1
            place = f"layer {layer.name!r}"
            _require(layer.name not in shapes, f"{place}: the name is taken")
            _require(
                (layer.neuron is None) == last,
                f"{place}: the last layer, and only it, must have no neuron",
            )
            for path in layer.paths:
                self._check_path(place, layer, path, shapes, limit)
            _require(min(layer.shape) >= 1, f"{place}: its shape {layer.shape} is empty")
            _require(
                min(layer.output_shape) >= 1, f"{place}: its output {layer.output_shape} is empty"
            )
            shapes[layer.name] = layer.output_shape

    @staticmethod
    def _check_path(
        place: str, layer: Layer, path: Path, shapes: dict[str, Shape], limit: int
    ) -> None:
        _require(
            path.source in shapes, f"{place}: reads {path.source!r}, which no earlier layer makes"
        )
        source = shapes[path.source]
        _require(
            min(path.pooled_shape(source)) >= 1,
            f"{place}: pooling {path.source!r} leaves {path.pooled_shape(source)}, which is empty",
        )
        if not path.is_identity:
            _require(
                path.weight.shape[1] == source[0],
                f"{place}: weight from {path.source!r} wants {path.weight.shape[1]} channels, "
                f"the source has {source[0]}",
            )
            _require(
                -limit <= int(path.weight.min()) and int(path.weight.max()) <= limit,
                f"{place}: weights from {path.source!r} exceed the codes -{limit}..{limit}",
            )
        else:
            _require(
                path.weight.shape[0] == source[0],
                f"{place}: identity from {path.source!r} wants {path.weight.shape[0]} channels, "
                f"the source has {source[0]}",
            )
        shape = path.output_shape(source)
        _require(
            shape == layer.shape,
            f"{place}: the path from {path.source!r} yields {shape}, the layer is {layer.shape}",
        )

    @cached_property
    def by_name(self) -> dict[str, Layer]:
        return {layer.name: layer for layer in self.layers}

    @property
    def classes(self) -> int:
        return int(np.prod(self.layers[-1].shape))

    @property
    def parameters(self) -> int:
        """Integers that must be loaded: weights, biases, thresholds, resets."""
        total = 0
        for layer in self.layers:
            per_channel = 1 if layer.neuron is None else 3
            total += sum(path.weight.size for path in layer.paths) + per_channel * layer.shape[0]
        return total

    def source_shape(self, path: Path) -> Shape:
        if path.source == INPUT:
            return self.input.tensor_shape
        return self.by_name[path.source].output_shape

    def source_capacity(self, path: Path) -> int:
        if path.source == INPUT:
            return self.input.capacity
        return self.by_name[path.source].capacity

    def path_bound(self, path: Path) -> int:
        """Largest magnitude of any partial sum of this path, exponent not applied."""
        capacity = self.source_capacity(path) * (path.pool.taps if path.pool else 1)
        rows = np.abs(path.weight.astype(np.int64)).reshape(len(path.weight), -1)
        return int(rows.sum(axis=1).max()) * capacity

    def _check_int64(self, layer: Layer) -> None:
        """Refuse a layer whose bounds themselves might wrap; in Python's unbounded integers."""
        acc = sum(self.path_bound(path) << path.exponent for path in layer.paths)
        current = (acc << layer.fraction_bits) + int(np.abs(layer.bias).max())
        extra = 0
        if layer.neuron is not None:
            extra = int(layer.neuron.theta.max()) + int(np.abs(layer.neuron.reset).max())
        if (current + extra) * self.timesteps >= 1 << 62:
            raise OverflowError(f"layer {layer.name!r}: its sums may pass 62 bits")

    def is_static(self, layer: Layer) -> bool:
        """Whether the layer's current is the same at every timestep."""
        return self.input.static and all(path.source == INPUT for path in layer.paths)

    def bounds(self, layer: Layer) -> Bounds:
        """Prove the accumulator and membrane ranges from the weights, for any input and all T."""
        self._check_int64(layer)
        channels = layer.shape[0]
        acc_low, acc_high = np.zeros(channels, np.int64), np.zeros(channels, np.int64)
        for path in layer.paths:
            capacity = self.source_capacity(path) * (path.pool.taps if path.pool else 1)
            low, high = numeric.sum_bounds(path.weight, capacity)
            acc_low += low << path.exponent
            acc_high += high << path.exponent
        current_low = (acc_low << layer.fraction_bits) + layer.bias
        current_high = (acc_high << layer.fraction_bits) + layer.bias
        if layer.neuron is None:
            return Bounds(
                acc_low=acc_low,
                acc_high=acc_high,
                u_low=np.minimum(current_low, current_low * self.timesteps),
                u_high=np.maximum(current_high, current_high * self.timesteps),
            )
        neuron = layer.neuron
        v_low = v_high = np.zeros(channels, np.int64)
        u_low, u_high = current_low, current_high
        for _ in range(self.timesteps):
            step_low = numeric.decay(v_low, neuron.decay, neuron.decay_bits) + current_low
            step_high = numeric.decay(v_high, neuron.decay, neuron.decay_bits) + current_high
            u_low, u_high = np.minimum(u_low, step_low), np.maximum(u_high, step_high)
            fires = step_high >= neuron.theta
            silent_high = np.minimum(step_high, neuron.theta - 1)
            v_high = np.where(fires, np.maximum(silent_high, step_high - neuron.reset), step_high)
            fired_low = np.maximum(step_low, neuron.theta) - neuron.reset
            v_low = np.where(fires, np.minimum(step_low, fired_low), step_low)
            u_low, u_high = np.minimum(u_low, v_low), np.maximum(u_high, v_high)
        return Bounds(acc_low=acc_low, acc_high=acc_high, u_low=u_low, u_high=u_high)


def _vector(values: Any, place: str) -> Integers:
    array = np.asarray(values)
    _require(array.ndim == 1, f"{place} must be a vector, not of shape {array.shape}")
    _require(np.issubdtype(array.dtype, np.integer), f"{place} must be integers, not {array.dtype}")
    array = array.astype(np.int64)
    array.flags.writeable = False
    return array
