"""Part of a network as a network of its own, with the activity that reaches it there."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from lbq_hw import golden, numeric
from lbq_hw.network import INPUT, Input, Layer, Network, Path, Shape, Window


def excerpt(
    network: Network, first: str, last: str, images: NDArray[np.uint8]
) -> tuple[Network, NDArray[np.uint8]]:
    """Layers `first` to `last`, and what enters them as raw input while the network sees `images`.

    They must read one tensor of levels from outside. A readout of one class, the sum of the last
    layer's levels, ends the part, since every network has one.
    """
    names = [layer.name for layer in network.layers]
    for name in (first, last):
        if name not in names:
            raise ValueError(f"{network.name!r} has no layer {name!r}, only {', '.join(names)}")
    inner = network.layers[names.index(first) : names.index(last) + 1]
    inside = {layer.name for layer in inner}
    outside = {path.source for layer in inner for path in layer.paths} - inside
    if len(outside) != 1 or outside == {INPUT}:
        raise ValueError(f"{first} to {last} must read one layer's levels, not {sorted(outside)}")
    source = network.layers[names.index(outside.pop())]
    assert source.neuron is not None
    front = _with_readout(network, f"{network.name} to {source.name}", network.input,
                          network.layers[: names.index(source.name) + 1])  # fmt: skip
    levels = golden.run(front, images, keep="levels").traces[source.name].output
    assert levels is not None
    frames = Input(
        shape=source.output_shape, static=False, bits=numeric.plane_count(source.neuron.capacity)
    )
    layers = tuple(_redirect(layer, source.name) for layer in inner)
    part = _with_readout(network, f"{network.name}: {first} to {last}", frames, layers)
    return part, np.ascontiguousarray(levels.swapaxes(0, 1)).astype(np.uint8)


def _redirect(layer: Layer, source: str) -> Layer:
    """The layer, reading the input where it read `source`."""
    paths = tuple(
        dataclasses.replace(path, source=INPUT) if path.source == source else path
        for path in layer.paths
    )
    return dataclasses.replace(layer, paths=paths)


def _with_readout(network: Network, name: str, frames: Input, layers: tuple[Layer, ...]) -> Network:
    return Network(
        name=name,
        input=frames,
        timesteps=network.timesteps,
        weight_bits=network.weight_bits,
        layers=(*layers, total(layers[-1].name, layers[-1].output_shape)),
    )


def total(source: str, shape: Shape) -> Layer:
    """A readout of one class that sums all levels of a tensor."""
    channels, height, width = shape
    window = Window(kernel=(height, width), stride=(height, width))
    ones = np.ones((1, channels, 1, 1), np.int8)
    return Layer(
        name="total",
        shape=(1, 1, 1),
        paths=(Path(source=source, weight=ones, pool=window),),
        bias=np.zeros(1, np.int64),
        fraction_bits=0,
        neuron=None,
    )
