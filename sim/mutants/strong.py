"""Networks that use what drawn ones leave idle: all bits of sums and membranes, and whole tables.

A core is as wide as the proven ranges of its networks, and as deep as the largest of them. Sums of
drawn images stay far from those ranges, and small networks fill the low entries of memories.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from lbq_hw import compiler
from lbq_hw.compiler import CompileError
from lbq_hw.config import CoreConfig
from lbq_hw.network import Layer, Network, NetworkError
from lbq_hw.numeric import Integers
from lbq_hw.sim.drawn.networks import random_network

__all__ = ["deep_network", "widened"]

_MOST_LAYERS = 12


def deep_network(config: CoreConfig, seed: int, *, channels: int | None = None) -> Network:
    """A random network with as many layers as a core has room for, so with high addresses."""
    networks = (random_network(seed, layers=n, channels=channels) for n in range(1, _MOST_LAYERS))
    found = [network for network in networks if _fits(network, config)]
    if not found:
        raise ValueError(f"no network of seed {seed} fits the core")
    return found[-1]


def widened(network: Network, config: CoreConfig, seed: int) -> Network:
    """A network that fits a core, with sums, thresholds, biases, resets and floors as large as the
    core can have them, of either sign.
    """
    random = np.random.default_rng(seed)
    for number, layer in enumerate(network.layers):
        signs = random.choice((-1, 1), layer.shape[0])
        exponents = (_one_sided(layer, signs, more) for more in reversed(range(8)))
        network = _first(network, number, exponents, config)
        part = random.random((4, layer.shape[0]))
        limits = ((1 << bits) - 1 for bits in reversed(range(4, config.membrane_bits)))
        layer = network.layers[number]
        network = _first(network, number, (_large(layer, most, part) for most in limits), config)
    return network


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
