"""Networks that are made for a core, to use what drawn ones leave idle: whole tables, thresholds
that are just reached, and planes with one set bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from lbq_hw.config import CoreConfig
from lbq_hw.network import INPUT, Input, Layer, Network, NetworkError, Neuron, Path, Window
from lbq_hw.numeric import Integers
from lbq_hw.sim.drawn.networks import random_network
from lbq_hw.sim.mutants.strong import first, fits

__all__ = ["deep_network", "edge_network", "large_network", "lonely_network"]

_MOST_LAYERS = 12
_ALONE, _TILES = 3, 2
"""Layers of a network without input, and tiles of each."""


def deep_network(config: CoreConfig, seed: int, *, channels: int | None = None) -> Network:
    """A random network with as many layers as a core has room for, so with high addresses."""
    networks = (random_network(seed, layers=n, channels=channels) for n in range(1, _MOST_LAYERS))
    found = [network for network in networks if fits(network, config)]
    if not found:
        raise ValueError(f"no network of seed {seed} fits the core")
    return found[-1]


def large_network(config: CoreConfig, seed: int) -> Network:
    """A random network with images as large as a core has room for, and with max-pools."""
    sides = [side for side in range(config.side, 6, -1) for _ in range(8)]
    networks = (
        random_network(8 * seed + try_, side=side, layers=1 + seed % 2)
        for try_, side in enumerate(sides)
    )
    network = next(network for network in networks if fits(network, config))
    pool = Window(kernel=(3, 3), stride=(1, 1), padding=(1, 1))  # keeps the layer's shape
    for number, layer in enumerate(network.layers[:-1]):
        if layer.pool is None:
            network = first(network, number, [replace(layer, pool=pool)], config)
    return network


def edge_network(config: CoreConfig, seed: int) -> Network:
    """A network without input, whose membranes reach their thresholds exactly, or miss them by 1,
    so that the smallest error of a membrane changes a level.
    """
    random = np.random.default_rng(seed)
    for most in reversed(range(4, config.membrane_bits)):
        try:
            network = _alone(config, [_edges(random, config, most) for _ in range(_ALONE)])
        except NetworkError:
            continue
        if fits(network, config):
            return network
    raise ValueError("no network at its thresholds fits the core")


def _edges(random: np.random.Generator, config: CoreConfig, most: int) -> tuple[Neuron, Integers]:
    """Neurons and their biases, of up to `most` bits.

    Some fire first in their second timestep, from two biases. Others fire at once, and are then at
    their floor or near it.
    """
    count = config.lanes * _TILES
    decay = int(2 * random.integers(1 << config.decay_bits - 1) + 1)
    below, above = (np.int64(2 ** (most * random.random(count))) for _ in range(2))
    floor = np.minimum(random.integers(-8, 9, count) - below, 0)
    at_once = random.random(count) < 0.5
    bias = np.where(at_once, below + above, above)
    before = np.where(at_once, np.maximum(-below, floor), bias)
    theta = (decay * before >> config.decay_bits) + bias + random.integers(0, 2, count)
    neuron = Neuron(
        capacity=int(random.integers(1, 1 << config.planes)),
        theta=np.maximum(1, theta),
        reset=np.where(at_once, bias + below, np.maximum(0, theta - bias)),
        decay=decay,
        decay_bits=config.decay_bits,
        floor=floor,
    )
    return neuron, bias


def lonely_network(config: CoreConfig, seed: int) -> Network:
    """A network without input, in which one channel of a layer fires in each plane."""
    count = config.lanes * _TILES
    layers = []
    for number in range(_ALONE):
        bias = np.full(count, -1)
        begin = (seed * _ALONE + number) * config.planes
        for plane in range(config.planes):
            bias[(begin + plane) % count] = 1 << plane
        neuron = Neuron(
            capacity=(1 << config.planes) - 1,
            theta=np.ones(count, np.int64),
            reset=np.where(bias > 0, bias, 0),
            decay=0,
            decay_bits=0,
        )
        layers.append((neuron, bias))
    return _alone(config, layers)


def _alone(config: CoreConfig, layers: Sequence[tuple[Neuron, Integers]]) -> Network:
    """Layers of one pixel, whose neurons have no input but their biases."""
    source, made = INPUT, list[Layer]()
    channels = 1
    for number, (neuron, bias) in enumerate(layers):
        path = Path(source=source, weight=np.zeros((len(bias), channels, 1, 1), np.int64))
        source, channels = f"layer{number}", len(bias)
        made.append(
            Layer(
                name=source, shape=(channels, 1, 1), paths=(path,), bias=bias, fraction_bits=0,
                neuron=neuron,
            )
        )  # fmt: skip
    path = Path(source=source, weight=np.ones((2, channels, 1, 1), np.int64))
    readout = Layer(
        name="logits", shape=(2, 1, 1), paths=(path,), bias=np.zeros(2, np.int64), fraction_bits=0,
        neuron=None,
    )  # fmt: skip
    return Network(
        name="alone",
        input=Input(shape=(1, 1, 1), static=True, bits=1, shift=0, border=0, border_value=()),
        timesteps=config.timesteps,
        weight_bits=config.weight_bits,
        layers=(*made, readout),
    )
