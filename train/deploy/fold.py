"""From float modules to integer layers: fold norms, absorb gammas, share one scale per channel.

The arithmetic of export, on the `Analysis` of a model. Floats are float64 here; they become
integers through `lbq_hw.numeric` and nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from lbq_hw import numeric
from lbq_hw.network import INPUT, Input, Layer, Path, Window
from lbq_hw.network import Neuron as IntegerNeuron
from train.data import InputSpec
from train.deploy import exponents
from train.graph import (
    Current,
    Identity,
    Levels,
    Norm,
    Population,
    Sum,
    Synapse,
    Term,
    terms,
    windows,
)
from train.neurons import Neuron
from train.quantize import Deployed, codes, gain

Floats = NDArray[np.float64]

# Of gamma, for a source at full level: keeps a dead channel's threshold from growing without bound.
FINEST_STEP = 2.0**-14
MAX_REFINEMENT = 6  # bits that a scale may shrink by for the sake of identities
_EMPTY_STEP = 2.0**-12  # of a readout without weights, for its bias
IDENTITY_CODE = 64  # an identity weight is rounded by at most one part in twice this, if it can be
_CLIPS = np.linspace(1.0, 0.4, 13)  # part of a channel's range that codes span


@dataclass(frozen=True, kw_only=True)
class Quantized:
    """The paths of a population as integers in the channel scale `scale`.

    `error` is the relative RMS error of each convolution's weights, `identity_error` the largest
    relative error of an identity's weight, for the report.
    """

    scale: Floats
    paths: tuple[Path, ...]
    error: tuple[float, ...]
    identity_error: float


def bias(current: Current, channels: int) -> Floats:
    """The constant part of a current, norms applied, in real units, but for an input's mean."""
    if isinstance(current, Norm):
        inner = bias(current.current, channels)
        norm = current.module
        assert norm.running_mean is not None
        shift = _array(norm.bias) if norm.affine else np.zeros(channels)
        factor = gain([norm], channels).cpu().numpy()
        return factor * (inner - _array(norm.running_mean)) + shift
    if isinstance(current, Sum):
        return np.sum([bias(part, channels) for part in current.currents], axis=0)
    if isinstance(current, Identity):
        return np.zeros(channels)
    own = current.module.bias
    return np.zeros(channels) if own is None else _array(own)


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


def folded_weight(term: Term, spec: InputSpec) -> Floats:
    """A path's weight per integer level of its source: norms folded, gamma or pixel scale in."""
    origin = term.origin
    unit = _level_value(origin.levels, spec)
    if isinstance(origin, Identity):
        channels = origin.levels.shape[0]
        return np.broadcast_to(unit, channels) * gain(term.norms, channels).cpu().numpy()
    kernel = _kernel(origin) * unit.reshape(1, -1, 1, 1)
    return kernel * gain(term.norms, len(kernel)).cpu().numpy().reshape(-1, 1, 1, 1)


def _level_value(levels: Levels, spec: InputSpec) -> Floats:
    """Real value of one level, per channel or for all; a pool's 1/n is part of it."""
    taps = levels.sum_pool.taps if levels.sum_pool else 1
    if levels.neuron is not None:
        return np.array([_number(levels.neuron.gamma) / taps])
    std = np.array(spec.std or (1.0,), dtype=np.float64)
    return 1.0 / (spec.full_scale * std * taps)


def _kernel(synapse: Synapse) -> Floats:
    """A convolution's weight, or a linear one's as the convolution that covers its input.

    Trained quantized, it is the one that the network ran with, never the latent float behind it.
    """
    module = synapse.module
    weight = _array(module.weight)
    if isinstance(module, Deployed) and module.bits is not None:
        with torch.no_grad():
            step, _ = module.current_step()
            weight = _array(codes(module.weight, step, module.bits)) * _array(step)
    if isinstance(module, nn.Conv2d):
        return weight
    return weight.reshape(len(weight), *synapse.levels.shape)


def _array(tensor: torch.Tensor) -> Floats:
    return tensor.detach().double().cpu().numpy()


def learned_bits(population: Population) -> int | None:
    """Weight bits a population was trained with, None for float weights."""
    for term in terms(population.current):
        module = term.origin.module if isinstance(term.origin, Synapse) else None
        if isinstance(module, Deployed):
            return module.bits
    return None


def quantize(population: Population, spec: InputSpec, bits: int) -> Quantized:
    """Codes, exponents and the common scale of all paths into a population."""
    parts = list(terms(population.current))
    weights = [folded_weight(term, spec) for term in parts]
    finest = 0.0 if any(weight.any() for weight in weights) else _EMPTY_STEP
    if population.neuron is not None:
        sources = {term.origin.levels.neuron for term in parts}
        levels = max(2**spec.bits - 1 if n is None else n.capacity for n in sources)
        finest = _number(population.neuron.gamma) * FINEST_STEP / levels
    learned = learned_bits(population)
    shared = population.neuron is None
    if learned is not None and learned <= bits:  # codes of fewer bits fit as they are
        scale, powers, integers = _learned(parts, weights, bits, spec, finest, shared=shared)
    else:
        scale, powers, integers = _fitted(weights, bits, finest, shared=shared)
    identities = [weight for weight in weights if weight.ndim == 1]
    if identities and len(identities) < len(weights):
        finer = _identity_refinement(identities, scale)
        scale = scale / 2.0**finer
        powers = [x + finer if w.ndim == 4 else 0 for x, w in zip(powers, weights, strict=True)]
        integers = [
            numeric.to_integer(w / scale) if w.ndim == 1 else code
            for code, w in zip(integers, weights, strict=True)
        ]
    paths, error, identity_error = [], [], 0.0
    for term, weight, exponent, integer in zip(parts, weights, powers, integers, strict=True):
        if weight.ndim == 4:
            back = integer * (scale * 2.0**exponent).reshape(-1, 1, 1, 1)
            size = max(float(np.linalg.norm(weight)), np.finfo(np.float64).tiny)
            error.append(float(np.linalg.norm(back - weight)) / size)
        else:
            exact = weight / (scale * 2.0**exponent)
            off = np.abs(integer - exact)[exact != 0] / np.abs(exact[exact != 0])
            identity_error = max(identity_error, float(off.max(initial=0.0)))
        paths.append(_path(term, integer, exponent))
    return Quantized(
        scale=scale, paths=tuple(paths), error=tuple(error), identity_error=identity_error
    )


def _identity_refinement(identities: Sequence[Floats], scale: Floats) -> int:
    """Bits by which the common scale must shrink for identity weights to round well.

    The codes of convolutions stay and their exponents grow instead, which costs the hardware
    nothing but accumulator width.
    """
    smallest = min(
        float(np.min(np.abs(w) / scale, where=w != 0, initial=IDENTITY_CODE)) for w in identities
    )
    return int(np.clip(np.ceil(np.log2(IDENTITY_CODE / smallest)), 0, MAX_REFINEMENT))


def _path(term: Term, weight: NDArray[np.int64], exponent: int) -> Path:
    origin = term.origin
    stride, padding = (1, 1), (0, 0)
    if isinstance(origin, Synapse) and isinstance(origin.module, nn.Conv2d):
        stride = (origin.module.stride[0], origin.module.stride[1])
        padding = windows.padding(origin.module)
        assert padding is not None
    return Path(
        source=origin.levels.source,
        weight=weight,
        stride=stride,
        padding=padding,
        exponent=exponent,
        pool=origin.levels.sum_pool,
    )


def _learned(
    parts: Sequence[Term],
    weights: Sequence[Floats],
    bits: int,
    spec: InputSpec,
    finest: float,
    *,
    shared: bool,
) -> tuple[Floats, list[int], list[NDArray[np.int64]]]:
    """What quantization-aware training learned: its steps, hence its codes, unchanged.

    Only a channel that is finer than `finest` in all of its paths is rounded again, to that step.
    """
    trained = [_trained(term, spec) for term in parts]
    lowest = min(path.exponent for path in trained if path is not None)
    worth = [path.worth / 2.0 ** (path.exponent - lowest) for path in trained if path is not None]
    learned = np.max(worth, axis=0)  # alike in all paths but those that are dead in a channel
    if shared:
        learned = np.full_like(learned, learned.max())
    scale = np.maximum(learned, finest)
    exponents, integers = [], []
    for path, weight in zip(trained, weights, strict=True):
        exponent = 0 if path is None else path.exponent - lowest
        exponents.append(exponent)
        if path is None:
            integers.append(numeric.to_integer(weight / scale))
            continue
        coarse = _codes(weight, scale * 2.0**exponent, bits)
        exact = path.codes.reshape(weight.shape)
        integers.append(np.where((learned < finest).reshape(-1, 1, 1, 1), coarse, exact))
    return scale, exponents, integers


@dataclass(frozen=True, kw_only=True)
class _Trained:
    """A path as it was trained: its signed codes and what a code of 1 is worth, per channel."""

    codes: NDArray[np.int64]
    exponent: int
    worth: Floats


def _trained(term: Term, spec: InputSpec) -> _Trained | None:
    """None for an identity, which has no codes of its own."""
    origin = term.origin
    if not isinstance(origin, Synapse):
        return None
    layer = origin.module
    assert isinstance(layer, Deployed)
    assert layer.bits is not None
    with torch.no_grad():
        step, exponent = layer.current_step()
        raw = _array(codes(layer.weight, step, layer.bits))
    factor = gain(term.norms, len(raw)).cpu().numpy()
    unit = float(_level_value(origin.levels, spec)[0])
    sign = np.where(factor < 0, -1, 1).reshape(-1, *[1] * (raw.ndim - 1))
    return _Trained(
        codes=numeric.to_integer(raw) * sign,
        exponent=int(exponent.item()),
        worth=unit * np.abs(factor) * _array(step).reshape(-1),
    )


def _fitted(
    weights: Sequence[Floats], bits: int, finest: float, *, shared: bool
) -> tuple[Floats, list[int], list[NDArray[np.int64]]]:
    """Scale and exponents with the least squared weight error, for float weights."""
    kernels = [index for index, weight in enumerate(weights) if weight.ndim == 4]
    fitted = kernels or range(len(weights))  # a population of identities alone fits those
    tensors = [weights[i].reshape(len(weights[i]), -1) for i in fitted]
    all_exponents = [0] * len(weights)
    if len(tensors) > 1:
        chosen = exponents.best(tensors, bits, finest=finest, shared=shared)
        for index, exponent in zip(fitted, chosen, strict=True):
            all_exponents[index] = exponent
    factors = [2.0 ** all_exponents[index] for index in fitted]
    scale = _least_error_scale(tensors, factors, bits, finest=finest, shared=shared)
    integers = []
    for weight, exponent in zip(weights, all_exponents, strict=True):
        if weight.ndim == 4:
            integers.append(_codes(weight, scale * 2.0**exponent, bits))
        else:
            integers.append(numeric.to_integer(weight / (scale * 2.0**exponent)))
    return scale, all_exponents, integers


def _codes(weight: Floats, step: Floats, bits: int) -> NDArray[np.int64]:
    limit = numeric.weight_limit(bits)
    ratio = weight / step.reshape(-1, *[1] * (weight.ndim - 1))
    return np.clip(numeric.to_integer(ratio), -limit, limit)


def _least_error_scale(
    tensors: Sequence[Floats],
    factors: Sequence[float],
    bits: int,
    *,
    finest: float,
    shared: bool,
) -> Floats:
    """Per channel (or for all), the scale of the clipped range whose codes err least."""
    limit = numeric.weight_limit(bits)
    span = np.max(
        [np.abs(t).max(axis=1) / (limit * f) for t, f in zip(tensors, factors, strict=True)], axis=0
    )
    if shared:
        span = np.full_like(span, span.max())
    span = np.maximum(span, finest or np.finfo(np.float64).tiny)
    best_scale, best_error = span, np.full(len(span), np.inf)
    for clip in _CLIPS:
        scale = np.maximum(span * clip, finest)
        error = np.zeros(len(span))
        for tensor, factor in zip(tensors, factors, strict=True):
            step = (scale * factor)[:, None]
            rounded = np.clip(np.rint(tensor / step), -limit, limit) * step
            error += ((rounded - tensor) ** 2).sum(axis=1)
        if shared:
            error = np.full_like(error, error.sum() / len(error))
        better = error < best_error
        best_scale = np.where(better, scale, best_scale)
        best_error = np.where(better, error, best_error)
    return best_scale


def fraction_bits(gammas: Sequence[tuple[float, Floats]], most: int = 8) -> int:
    """The fewest fractional bits, at most `most`, that give every threshold 8 bits of precision."""
    smallest = min((float((gamma / scale).min()) for gamma, scale in gammas), default=256.0)
    return int(np.clip(np.ceil(np.log2(256.0 / smallest)), 0, most))


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
        gamma = _number(population.neuron.gamma)
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
    beta = _number(neuron.beta) if neuron.stateful else 0.0
    decay, bits = numeric.to_ratio(beta, decay_bits)
    return IntegerNeuron(
        capacity=neuron.capacity,
        theta=np.maximum(numeric.to_integer(step), 1),
        reset=numeric.to_integer(_number(neuron.alpha) * step),
        decay=decay,
        decay_bits=bits,
    )


def _number(value: float | torch.Tensor) -> float:
    return value.detach().double().item() if isinstance(value, torch.Tensor) else value


def border_levels(spec: InputSpec) -> Floats:
    """The level of the mean pixel, per channel, before it is rounded."""
    return np.array(spec.mean or (0.0,) * spec.shape[0]) * spec.full_scale


def integer_input(spec: InputSpec, border: int) -> Input:
    """The network's input; a border of mean pixels stands for zero padding after a mean, to half
    a level, since pixels are integers."""
    values = tuple(int(v) for v in numeric.to_integer(border_levels(spec)))
    return Input(
        shape=spec.shape,
        static=spec.static,
        bits=spec.bits,
        shift=spec.shift,
        border=border,
        border_value=values if border else (),
    )
