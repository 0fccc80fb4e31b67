"""A narrower network of the same structure, to size cores for networks that are not trained yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from lbq_hw.network import INPUT, Layer, Network, Path


def narrowed(network: Network, *, divide: int, timesteps: int) -> Network:
    """The first 1 / `divide` of each layer's channels, over `timesteps`; the readout keeps its own.

    Its levels mean nothing; its shapes are those that a trained network of that width would have.
    """
    layers = tuple(_layer(layer, divide) for layer in network.layers)
    return replace(network, layers=layers, timesteps=timesteps)


def narrowed_levels(
    levels: Mapping[str, NDArray[Any]], *, divide: int, timesteps: int
) -> dict[str, NDArray[Any]]:
    """Levels of the same channels of the wide network: as busy as they are there."""
    return {
        name: values[:timesteps, : len(values[0]) // (1 if name == INPUT else divide)]
        for name, values in levels.items()
    }


def _layer(layer: Layer, divide: int) -> Layer:
    neuron = layer.neuron
    channels = layer.shape[0] // (divide if neuron else 1)
    if neuron is not None:
        neuron = replace(neuron, theta=neuron.theta[:channels], reset=neuron.reset[:channels])
    return replace(
        layer,
        shape=(channels, *layer.shape[1:]),
        paths=tuple(_path(path, channels, divide) for path in layer.paths),
        bias=layer.bias[:channels],
        neuron=neuron,
        scale=None if layer.scale is None else layer.scale[:channels],
    )


def _path(path: Path, channels: int, divide: int) -> Path:
    if path.is_identity:
        return replace(path, weight=path.weight[:channels])
    inputs = path.weight.shape[1] // (1 if path.source == INPUT else divide)
    return replace(path, weight=path.weight[:channels, :inputs])
