"""Networks that use what drawn ones leave idle: all bits of sums and membranes, whole tables, and
planes with few events.

A core is as wide as the proven ranges of its networks, and as deep as the largest of them. Sums of
drawn images stay far from those ranges, small networks fill the low entries of memories, and their
words of planes are rarely empty.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from lbq_hw import compiler, golden
from lbq_hw.compiler import CompileError
from lbq_hw.config import CoreConfig
from lbq_hw.network import INPUT, Input, Layer, Network, NetworkError, Neuron, Path, Window
from lbq_hw.numeric import Integers
from lbq_hw.sim.drawn.networks import random_images, random_network

__all__ = [
    "deep_network",
    "edge_network",
    "large_network",
    "lonely_network",
    "scaled",
    "sparse",
    "widened",
]

_MOST_LAYERS = 12
_SPARSE = 0.03
"""Share of levels above 0."""
_ALONE, _TILES = 3, 2
"""Layers of a network without input, and tiles of each."""


def deep_network(config: CoreConfig, seed: int, *, channels: int | None = None) -> Network:
    """A random network with as many layers as a core has room for, so with high addresses."""
    networks = (random_network(seed, layers=n, channels=channels) for n in range(1, _MOST_LAYERS))
    found = [network for network in networks if _fits(network, config)]
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
    network = next(network for network in networks if _fits(network, config))
    pool = Window(kernel=(3, 3), stride=(1, 1), padding=(1, 1))  # keeps the layer's shape
    for number, layer in enumerate(network.layers[:-1]):
        if layer.pool is None:
            network = _first(network, number, [replace(layer, pool=pool)], config)
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
        if _fits(network, config):
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
        first = (seed * _ALONE + number) * config.planes
        for plane in range(config.planes):
            bias[(first + plane) % count] = 1 << plane
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


def widened(network: Network, config: CoreConfig, seed: int) -> Network:
    """A network that fits a core, with sums, thresholds, biases, resets and floors as large as the
    core can have them, of either sign.
    """
    random = np.random.default_rng(seed)
    for number, layer in enumerate(network.layers):
        signs = random.choice((-1, 1), layer.shape[0])
        exponents = (_one_sided(layer, signs, more) for more in reversed(range(8)))
        network = _first(network, number, exponents, config)
        layer = network.layers[number]
        fractions = random.permutation(config.fraction_bits + 1).tolist()
        layers = (replace(layer, fraction_bits=bits) for bits in fractions)
        network = _first(network, number, layers, config)
        part = random.random((4, layer.shape[0]))
        limits = ((1 << bits) - 1 for bits in reversed(range(4, config.membrane_bits)))
        layer = network.layers[number]
        network = _first(network, number, (_large(layer, most, part) for most in limits), config)
    return network


def scaled(network: Network, config: CoreConfig, seed: int) -> Network:
    """A network that fits a core, whose neurons count in steps of all sizes, with decays of all
    bits. Half of them have no other input than their bias, so that the smallest steps count, too.
    """
    random = np.random.default_rng(seed)
    for number, layer in enumerate(network.layers):
        if layer.neuron is None:
            continue
        part = random.random((6, layer.shape[0]))
        decay = int(2 * random.integers(1 << config.decay_bits - 1) + 1)
        limits = reversed(range(2, config.membrane_bits - 1))
        layers = (_small(layer, bits, part, decay, config.decay_bits) for bits in limits)
        network = _first(network, number, layers, config)
    return network


def sparse(network: Network, config: CoreConfig, seed: int) -> Network:
    """A network that fits a core, in which few neurons fire, so that most words are empty and most
    others have one bit.
    """
    image = random_images(network, 1, seed)
    for number, layer in enumerate(network.layers):
        while (neuron := layer.neuron) is not None:
            layer = replace(layer, neuron=replace(neuron, theta=2 * neuron.theta))
            changed = _first(network, number, [layer], config)
            levels = golden.run(changed, image, keep="levels").emitted(0)[layer.name]
            if changed is network or not levels.any():
                break
            network = changed
            if np.mean(levels > 0) < _SPARSE:
                break
    return network


def _small(layer: Layer, bits: int, part: np.ndarray, decay: int, decay_bits: int) -> Layer:
    """Numbers of up to `bits` bits; `part` has six fractions per channel."""
    neuron = layer.neuron
    assert neuron is not None
    theta = np.maximum(1, np.int64(2 ** (bits * part[0])))
    silent = part[1] < 0.5
    paths = (
        path
        if path.is_identity
        else replace(path, weight=np.where(silent[:, None, None, None], 0, path.weight))
        for path in layer.paths
    )
    floor = None if neuron.floor is None else np.int64(-4 * theta * part[5] ** 2)
    reset = 0 * theta if neuron.to_zero else np.int64(theta * part[4])
    return replace(
        layer,
        paths=tuple(paths),
        bias=np.int64(theta * (part[2] * (neuron.capacity + 2) - 1 + part[3])),
        neuron=replace(
            neuron, theta=theta, reset=reset, floor=floor, decay=decay, decay_bits=decay_bits
        ),
    )


def _one_sided(layer: Layer, signs: Integers, more: int) -> Layer:
    """Weights of one sign per channel, and larger exponents: sums reach the ends of their range."""
    paths = (
        path
        if path.is_identity
        else replace(
            path,
            weight=abs(path.weight) * signs[:, None, None, None],
            exponent=path.exponent + more,
        )
        for path in layer.paths
    )
    return replace(layer, paths=tuple(paths))


def _large(layer: Layer, most: int, part: np.ndarray) -> Layer:
    """Numbers up to `most`; `part` has four fractions per channel."""
    neuron = layer.neuron
    if neuron is None:
        return replace(layer, bias=np.int64(most * (2 * part[0] - 1)))
    theta = np.maximum(1, np.int64(most * part[0] ** 2))
    levels = part[1] * (neuron.capacity + 2) - 1
    return replace(
        layer,
        bias=np.int64((theta * levels).clip(-most, most)),
        neuron=replace(
            neuron,
            theta=theta,
            reset=np.int64(0 * theta if neuron.to_zero else theta * part[2]),
            floor=None if neuron.floor is None else np.int64(-most * part[3] ** 2),
        ),
    )


def _first(network: Network, number: int, layers: Iterable[Layer], config: CoreConfig) -> Network:
    """The network with the first of some layers in the place of its own that fits a core."""
    for layer in layers:
        changed = (*network.layers[:number], layer, *network.layers[number + 1 :])
        try:
            found = replace(network, layers=changed)
        except NetworkError:
            continue
        if _fits(found, config):
            return found
    return network


def _fits(network: Network, config: CoreConfig) -> bool:
    try:
        compiler.compile_network(network, config)
    except CompileError:
        return False
    return True
