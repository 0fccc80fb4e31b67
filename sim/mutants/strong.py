"""Changes that make a drawn network use what it leaves idle: all bits of sums and membranes, and
words of planes with few events.

A core is as wide as the proven ranges of its networks. Sums of drawn images stay far from those
ranges, and words of their planes are rarely empty.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from lbq_hw import compiler, golden
from lbq_hw.compiler import CompileError
from lbq_hw.config import CoreConfig
from lbq_hw.network import Layer, Network, NetworkError
from lbq_hw.numeric import Integers
from lbq_hw.sim.drawn.networks import random_images

__all__ = ["first", "fits", "scaled", "sparse", "widened"]

_SPARSE = 0.03
"""Share of levels above 0."""


def widened(network: Network, config: CoreConfig, seed: int) -> Network:
    """A network that fits a core, with sums, thresholds, biases, resets and floors as large as the
    core can have them, of either sign.
    """
    random = np.random.default_rng(seed)
    for number, layer in enumerate(network.layers):
        signs = random.choice((-1, 1), layer.shape[0])
        exponents = (_one_sided(layer, signs, more) for more in reversed(range(8)))
        network = first(network, number, exponents, config)
        layer = network.layers[number]
        fractions = random.permutation(config.fraction_bits + 1).tolist()
        layers = (replace(layer, fraction_bits=bits) for bits in fractions)
        network = first(network, number, layers, config)
        part = random.random((4, layer.shape[0]))
        limits = ((1 << bits) - 1 for bits in reversed(range(4, config.membrane_bits)))
        layer = network.layers[number]
        network = first(network, number, (_large(layer, most, part) for most in limits), config)
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
        network = first(network, number, layers, config)
    return network


def sparse(network: Network, config: CoreConfig, seed: int) -> Network:
    """A network that fits a core, in which few neurons fire, so that most words are empty and most
    others have one bit.
    """
    image = random_images(network, 1, seed)
    for number, layer in enumerate(network.layers):
        while (neuron := layer.neuron) is not None:
            layer = replace(layer, neuron=replace(neuron, theta=2 * neuron.theta))
            changed = first(network, number, [layer], config)
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


def first(network: Network, number: int, layers: Iterable[Layer], config: CoreConfig) -> Network:
    """The network with the first of some layers in the place of its own that fits a core."""
    for layer in layers:
        changed = (*network.layers[:number], layer, *network.layers[number + 1 :])
        try:
            found = replace(network, layers=changed)
        except NetworkError:
            continue
        if fits(found, config):
            return found
    return network


def fits(network: Network, config: CoreConfig) -> bool:
    """Whether a network can be compiled for a core."""
    try:
        compiler.compile_network(network, config)
    except CompileError:
        return False
    return True
