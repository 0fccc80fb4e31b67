"""The finished integer layer: bias, threshold, reset and decay in the unit of each channel."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lbq_hw import numeric
from lbq_hw.network import INPUT, Layer, Path, Window
from lbq_hw.network import Neuron as IntegerNeuron
from train.data import InputSpec
from train.deploy.fold import Floats, bias, number
from train.deploy.rounding import Quantized
from train.graph import Population
from train.neurons import Neuron


def integer_layer(
    population: Population,
    quantized: Quantized,
    spec: InputSpec,
    *,
    fraction: int,
    decay_bits: int,
    max_pool: Window | None,
) -> Layer:
    """Bias, threshold, reset and decay in the channel's unit: the finished layer."""
    unit = 2.0**fraction / quantized.scale
    neuron, gamma = None, None
    if population.neuron is not None:
        gamma = number(population.neuron.gamma)
        neuron = _integer_neuron(population.neuron, unit * gamma, decay_bits)
    channels = population.shape[0]
    constant = unit * bias(population.current, channels)
    constant -= 2.0**fraction * mean_current(quantized.paths, spec, channels)
    return Layer(
        name=population.name,
        shape=population.shape,
        paths=quantized.paths,
        bias=numeric.to_integer(constant),
        fraction_bits=fraction,
        neuron=neuron,
        pool=max_pool,
        scale=quantized.scale,
        gamma=gamma,
    )


def _integer_neuron(neuron: Neuron, step: Floats, decay_bits: int) -> IntegerNeuron:
    beta = number(neuron.beta) if neuron.stateful else 0.0
    decay, bits = numeric.to_ratio(beta, decay_bits)
    return IntegerNeuron(
        capacity=neuron.capacity,
        theta=np.maximum(numeric.to_integer(step), 1),
        reset=numeric.to_integer(number(neuron.alpha) * step),
        decay=decay,
        decay_bits=bits,
    )


def mean_current(paths: Sequence[Path], spec: InputSpec, channels: int) -> Floats:
    """What an image of mean pixels adds to the accumulators, through the codes themselves.

    Subtracting it leaves ``codes * (pixels - mean)``. Taken from the weights before rounding, it
    would leave in each channel the sum of their rounding errors times the mean.
    """
    total = np.zeros(channels)
    for path in paths:
        if path.source != INPUT or not spec.mean:
            continue
        pixels = np.array(spec.mean) * spec.full_scale * (path.pool.taps if path.pool else 1)
        each = path.weight * pixels if path.is_identity else path.weight.sum(axis=(2, 3)) @ pixels
        total = total + each * 2.0**path.exponent
    return total


def fraction_bits(gammas: Sequence[tuple[float, Floats]], most: int = 8) -> int:
    """The fewest fractional bits, at most `most`, that give every threshold 8 bits of precision."""
    smallest = min((float((gamma / scale).min()) for gamma, scale in gammas), default=256.0)
    return int(np.clip(np.ceil(np.log2(256.0 / smallest)), 0, most))
