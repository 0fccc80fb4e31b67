"""The integer network: what is deployed, and the definition everything else must equal.

A `Network` is a list of `Layer`s in execution order. A layer sums one or more `Path`s into an
integer current; a spiking layer turns it into burst levels, the last layer (the readout) has no
neuron and sums its current over time into logits. Arithmetic: `lbq_hw.golden`; file: `lbq_hw.file`.

Here: how layers fit together. `input` and `layer` have the parts, `bounds` proves how far their
integers reach.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from lbq_hw import numeric
from lbq_hw.network.base import NetworkError, Pair, Shape, require
from lbq_hw.network.bounds import Bounds, path_bound, prove
from lbq_hw.network.input import INPUT, Input
from lbq_hw.network.layer import Layer, Neuron, Path, Window

__all__ = [
    "INPUT",
    "Bounds",
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
        require(
            type(self.timesteps) is int and self.timesteps >= 1,
            f"timesteps must be an integer of at least 1, not {self.timesteps!r}",
        )
        limit = numeric.weight_limit(self.weight_bits)
        require(bool(self.layers), "a network needs at least one layer")
        shapes: dict[str, Shape] = {INPUT: self.input.tensor_shape}
        for index, layer in enumerate(self.layers):
            last = index == len(self.layers) - 1
            place = f"layer {layer.name!r}"
            require(layer.name not in shapes, f"{place}: the name is taken")
            require(
                (layer.neuron is None) == last,
                f"{place}: the last layer, and only it, must have no neuron",
            )
            for path in layer.paths:
                self._check_path(place, layer, path, shapes, limit)
            require(min(layer.shape) >= 1, f"{place}: its shape {layer.shape} is empty")
            require(
                min(layer.output_shape) >= 1, f"{place}: its output {layer.output_shape} is empty"
            )
            shapes[layer.name] = layer.output_shape

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
                f"{place}: weight from {path.source!r} wants {path.weight.shape[1]} channels, "
                f"the source has {source[0]}",
            )
            require(
                -limit <= int(path.weight.min()) and int(path.weight.max()) <= limit,
                f"{place}: weights from {path.source!r} exceed the codes -{limit}..{limit}",
            )
        else:
            require(
                path.weight.shape[0] == source[0],
                f"{place}: identity from {path.source!r} wants {path.weight.shape[0]} channels, "
                f"the source has {source[0]}",
            )
        shape = path.output_shape(source)
        require(
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

    def is_static(self, layer: Layer) -> bool:
        """Whether the layer's current is the same at every timestep."""
        return self.input.static and all(path.source == INPUT for path in layer.paths)

    def path_bound(self, path: Path) -> int:
        """Largest magnitude of any partial sum of this path, exponent not applied."""
        return path_bound(path, self.source_capacity(path))

    def bounds(self, layer: Layer) -> Bounds:
        """Prove the accumulator and membrane ranges from the weights, for any input and all T."""
        capacities = [self.source_capacity(path) for path in layer.paths]
        return prove(layer, capacities, self.timesteps)
