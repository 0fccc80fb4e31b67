"""The integer network, as it is deployed: the definition that everything else must equal.

A `Network` is a list of `Layer`s in execution order. A layer sums one or more `Path`s into an
integer current; a spiking layer turns it into burst levels, the last layer (the readout) has no
neuron and sums its current over time into logits. Arithmetic: `lbq_hw.golden`; file: `lbq_hw.file`.

This file has the network as a whole. `input`, `layer` and `neuron` have its parts, `held_out` the
images that were not used for training, `limits` the limits on all sizes, and `bounds` proves the
ranges of all integers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from lbq_hw import numeric
from lbq_hw.network import limits
from lbq_hw.network.base import NetworkError, Pair, Shape, require
from lbq_hw.network.bounds import Bounds, check_int64, path_bound, prove
from lbq_hw.network.held_out import HeldOut
from lbq_hw.network.input import INPUT, Input
from lbq_hw.network.layer import Layer, Path, Window
from lbq_hw.network.neuron import Neuron

__all__ = [
    "INPUT",
    "Bounds",
    "HeldOut",
    "Input",
    "Layer",
    "Network",
    "NetworkError",
    "Neuron",
    "Pair",
    "Path",
    "Shape",
    "Window",
]


@dataclass(frozen=True, kw_only=True, eq=False)
class Network:
    """A checked integer network.

    Members: `input`; `timesteps` T; `weight_bits` of all convolutions, unless their layer has fewer
    (identity weights may be wider); `layers` in execution order, the readout last; `meta`,
    JSON-able facts about its origin; `class_names`, one per class, or empty; `held_out`, the images
    of the user's undivided data that were not used for training.
    """

    name: str
    input: Input
    timesteps: int
    weight_bits: int
    layers: tuple[Layer, ...]
    meta: Mapping[str, Any] = field(default_factory=dict)
    class_names: tuple[str, ...] = ()
    held_out: HeldOut | None = None

    def __post_init__(self) -> None:
        limits.check_network_name(self.name)
        require(
            type(self.timesteps) is int and 1 <= self.timesteps <= limits.MAX_TIMESTEPS,
            f"timesteps must be an integer of 1..{limits.MAX_TIMESTEPS}, not {self.timesteps!r}",
        )
        numeric.weight_limit(self.weight_bits)
        require(bool(self.layers), "a network needs at least one layer")
        require(
            len(self.layers) <= limits.MAX_LAYERS,
            f"{len(self.layers)} layers are more than {limits.MAX_LAYERS}",
        )
        limits.check_levels(math.prod(self.input.tensor_shape) * self.timesteps, INPUT)
        work = 0
        shapes: dict[str, Shape] = {INPUT: self.input.tensor_shape}
        for index, layer in enumerate(self.layers):
            last = index == len(self.layers) - 1
            place = f"layer {layer.name!r}"
            require(layer.name not in shapes, f"{place}: another layer has this name")
            require(
                (layer.neuron is None) == last,
                f"{place}: the last layer, and only it, must have no neuron",
            )
            own = layer.weight_bits
            require(
                own is None or (type(own) is int and 2 <= own < self.weight_bits),
                f"{place}: weight_bits must be 2 or more and fewer than the network's "
                f"{self.weight_bits}, or None, not {own!r}",
            )
            limit = numeric.weight_limit(self.layer_bits(layer))
            for path in layer.paths:
                self._check_path(place, layer, path, shapes, limit)
                self._check_padding(place, path, shapes[path.source])
                work += math.prod(layer.shape[1:]) * path.weight.size * self.timesteps
            limits.check_levels(math.prod(layer.shape) * self.timesteps, place)
            require(
                work <= limits.MAX_WORK,
                f"{place}: with it, an image takes {work} multiplications, more than 2**42",
            )
            require(
                min(layer.output_shape) >= 1, f"{place}: its output {layer.output_shape} is empty"
            )
            shapes[layer.name] = layer.output_shape
        if self.class_names:
            limits.check_class_names(self.class_names, self.classes)

    @staticmethod
    def _check_path(
        place: str, layer: Layer, path: Path, shapes: dict[str, Shape], limit: int
    ) -> None:
        require(
            path.source in shapes, f"{place}: reads {path.source!r}, which no earlier layer makes"
        )
        source = shapes[path.source]
        require(
            min(path.pooled_shape(source)) >= 1,
            f"{place}: pooling {path.source!r} leaves {path.pooled_shape(source)}, which is empty",
        )
        if not path.is_identity:
            require(
                path.weight.shape[1] == source[0],
                f"{place}: weight from {path.source!r} needs {path.weight.shape[1]} channels, "
                f"the source has {source[0]}",
            )
            require(
                -limit <= int(path.weight.min()) and int(path.weight.max()) <= limit,
                f"{place}: weights from {path.source!r} exceed the codes -{limit}..{limit}",
            )
        else:
            require(
                path.weight.shape[0] == source[0],
                f"{place}: identity from {path.source!r} needs {path.weight.shape[0]} channels, "
                f"the source has {source[0]}",
            )
        shape = path.output_shape(source)
        require(
            shape == layer.shape,
            f"{place}: the path from {path.source!r} yields {shape}, the layer is {layer.shape}",
        )

    def _check_padding(self, place: str, path: Path, source: Shape) -> None:
        """Refuse padded tensors that are too large, even if strides skip most of them."""
        place = f"{place}, path from {path.source!r}"
        for shape, window in ((source, path.pool), (path.pooled_shape(source), path)):
            if window is not None:
                height, width = (
                    side + 2 * pixels
                    for side, pixels in zip(shape[1:], window.padding, strict=True)
                )
                limits.check_levels(shape[0] * height * width * self.timesteps, place)

    @cached_property
    def by_name(self) -> dict[str, Layer]:
        return {layer.name: layer for layer in self.layers}

    @property
    def classes(self) -> int:
        return int(np.prod(self.layers[-1].shape))

    @property
    def parameters(self) -> int:
        """Integers that must be loaded: weights, biases, and the vectors of neurons."""
        total = 0
        for layer in self.layers:
            per_channel = 1 + (0 if layer.neuron is None else len(layer.neuron.vectors))
            total += sum(path.weight.size for path in layer.paths) + per_channel * layer.shape[0]
        return total

    def layer_bits(self, layer: Layer) -> int:
        """Weight bits of the convolutions of a layer."""
        return self.weight_bits if layer.weight_bits is None else layer.weight_bits

    @property
    def narrow_bits(self) -> tuple[int, ...]:
        """The distinct weight bits of layers with fewer bits than the network, largest first."""
        found = {layer.weight_bits for layer in self.layers if layer.weight_bits is not None}
        return tuple(sorted(found, reverse=True))

    def source_shape(self, path: Path) -> Shape:
        if path.source == INPUT:
            return self.input.tensor_shape
        return self.by_name[path.source].output_shape

    def source_capacity(self, path: Path) -> int:
        if path.source == INPUT:
            return self.input.capacity
        return self.by_name[path.source].capacity

    def is_static(self, layer: Layer) -> bool:
        """Whether the layer's current is the same at every timestep."""
        return self.input.static and all(path.source == INPUT for path in layer.paths)

    def path_bound(self, path: Path) -> int:
        """Largest magnitude of any partial sum of this path, exponent not applied."""
        return path_bound(path, self.source_capacity(path))

    def bounds(self, layer: Layer) -> Bounds:
        """Prove the accumulator and membrane ranges from the weights, for any input and all T."""
        own = self.by_name.get(layer.name) is layer
        if own and layer.name in self._proven:
            return self._proven[layer.name]
        capacities = self._capacities(layer)
        found = prove(layer, capacities, self.timesteps)
        if own:
            self._proven[layer.name] = found
        return found

    def check_ranges(self) -> None:
        """NetworkError if a layer is not proven to fit 64-bit integers and exact floats."""
        for layer in self.layers:
            try:
                check_int64(layer, self._capacities(layer), self.timesteps)
                for path in layer.paths:
                    if not path.is_identity:
                        numeric.exact_float_dtype(self.path_bound(path))
            except OverflowError as error:
                place = "" if str(error).startswith("layer ") else f"layer {layer.name!r}: "
                raise NetworkError(f"{place}{error}") from None

    def _capacities(self, layer: Layer) -> list[int]:
        return [self.source_capacity(path) for path in layer.paths]

    @cached_property
    def _proven(self) -> dict[str, Bounds]:
        """Cache of proven bounds: over many timesteps a proof takes a while."""
        return {}
