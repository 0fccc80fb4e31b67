"""The finished integer layer: bias, threshold, reset and decay in the unit of each channel."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lbq_hw import numeric
from lbq_hw.network import INPUT, Layer, Path, Window, limits
from lbq_hw.network import Neuron as IntegerNeuron
from lbq_hw.numeric import Integers
from lbq_hw.train.data import InputSpec
from lbq_hw.train.deploy.fold import Floats, array, bias, number
from lbq_hw.train.deploy.rounding import Quantized
from lbq_hw.train.deploy.uniform import exact_steps
from lbq_hw.train.graph import Population
from lbq_hw.train.neurons import Neuron, UniformReLU

_WHOLE = 1e-9  # a threshold with a smaller relative distance to an integer counts as this integer


def integer_layer(
    population: Population,
    quantized: Quantized,
    spec: InputSpec,
    *,
    fraction: int,
    decay_bits: int,
    max_pool: Window | None,
    weight_bits: int | None,
) -> Layer:
    """Bias, threshold, reset and decay in the channel's unit: the finished layer.

    A uniform ReLU has the fraction bits with which it is exact. `weight_bits` are those of the
    layer, where they are fewer than the network's.
    """
    unit = 2.0**fraction / quantized.scale
    neuron, gamma = None, None
    if population.neuron is not None:
        gamma = number(population.neuron.gamma)
        neuron = _integer_neuron(population.neuron, unit, decay_bits)
    channels = population.shape[0]
    constant = unit * bias(population.current, channels)
    constant -= 2.0**fraction * mean_current(quantized.paths, spec, channels)
    integers = numeric.to_integer(constant)
    if isinstance(population.neuron, UniformReLU):
        step = number(population.neuron.gamma) / quantized.scale
        constant = constant * 2.0**-fraction + population.neuron.offset * step
        fraction, theta, integers = exact_steps(step, constant, population.neuron.capacity)
        neuron = IntegerNeuron(
            capacity=population.neuron.capacity, theta=theta, reset=theta, decay=0, decay_bits=0
        )
    return Layer(
        name=population.name,
        shape=population.shape,
        paths=quantized.paths,
        bias=integers,
        fraction_bits=fraction,
        neuron=neuron,
        pool=max_pool,
        scale=quantized.scale,
        gamma=gamma,
        weight_bits=weight_bits,
    )


def _integer_neuron(neuron: Neuron, unit: Floats, decay_bits: int) -> IntegerNeuron:
    step = unit * array(neuron.threshold)
    beta = number(neuron.beta) if neuron.stateful else 0.0
    decay, bits = numeric.to_ratio(beta, decay_bits)
    theta = _threshold(neuron, step)
    alpha = 0.0 if neuron.to_zero else number(neuron.alpha)
    if neuron.late and decay:  # the network's own leak, so that one threshold is subtracted
        alpha = 2.0**bits / decay
    reset = numeric.to_integer(alpha * step)
    return IntegerNeuron(
        capacity=neuron.capacity,
        theta=np.maximum(theta, 1),
        reset=np.broadcast_to(reset, theta.shape),
        decay=decay,
        decay_bits=bits,
        **neuron.rules(unit),
    )


def _threshold(neuron: Neuron, step: Floats) -> Integers:
    """The least membrane that fires. For a neuron that subtracts its threshold at once, the
    threshold is rounded, unless it is a whole number: threshold and reset are then equal, and share
    a memory.
    """
    nearest = numeric.to_integer(step)
    whole = np.abs(step - nearest) <= _WHOLE * step
    least = np.where(whole, nearest, numeric.to_integer(np.ceil(step)))
    if neuron.strict:
        least = np.where(whole, nearest + 1, least)
    exact = neuron.to_zero or neuron.late
    return np.where(whole | exact, least, nearest)


def mean_current(paths: Sequence[Path], spec: InputSpec, channels: int) -> Floats:
    """The sums that an image of mean pixels gives, computed from the integer codes.

    Subtracting them leaves ``codes * (pixels - mean)``. If they were computed from the float
    weights, each channel would keep the sum of its rounding errors times the mean.
    """
    total = np.zeros(channels)
    for path in paths:
        if path.source != INPUT or not spec.mean:
            continue
        pixels = np.array(spec.mean) * spec.full_scale * (path.pool.taps if path.pool else 1)
        each = path.weight * pixels if path.is_identity else path.weight.sum(axis=(2, 3)) @ pixels
        total = total + each * 2.0**path.exponent
    return total


def fraction_bits(thresholds: Sequence[tuple[Floats, Floats]]) -> int:
    """The fewest fractional bits that give every threshold 8 bits of precision, or the most that a
    network may have."""
    smallest = min(
        (float((threshold / scale).min()) for threshold, scale in thresholds), default=256.0
    )
    return int(np.clip(np.ceil(np.log2(256.0 / smallest)), 0, limits.MAX_FRACTION_BITS))
