"""Weights as integers: codes, exponents, and the scale that all paths into a population share.

Floats become integers only in `lbq_hw.numeric`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from lbq_hw import numeric
from lbq_hw.network import Path
from lbq_hw.train.data import InputSpec
from lbq_hw.train.deploy import exponents
from lbq_hw.train.deploy.fold import Floats, array, folded_weight, in_place, level_value
from lbq_hw.train.graph import Population, Synapse, Term, counts_spikes, taps, terms
from lbq_hw.train.neurons import IntegrateFire
from lbq_hw.train.quantize import Deployed, codes, gain

# The least step of a code, as a part of gamma, for a source at its largest level. Without it a dead
# channel's threshold would grow without bound.
FINEST_STEP = 2.0**-14
MAX_REFINEMENT = 6  # bits that a scale may shrink by for the sake of identities
_EMPTY_STEP = 2.0**-12  # the scale of a readout whose weights are all 0: its bias is rounded to it
IDENTITY_CODE = 64  # identity weights reach this where possible: rounding errs by 1 part in 128
_COARSEST, _FINEST_GRID = 15, -20  # powers of two that are tried as the step of exact weights
_CLIPS = np.linspace(1.0, 0.4, 13)  # tried parts of a channel's range for the codes to span


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


def learned_bits(population: Population) -> int | None:
    """The most weight bits that a path of a population was trained with, None for float weights."""
    origins = (term.origin for term in terms(population.current))
    modules = (origin.module for origin in origins if isinstance(origin, Synapse))
    trained = [module.bits for module in modules if isinstance(module, Deployed)]
    return max((bits for bits in trained if bits is not None), default=None)


def quantize(population: Population, spec: InputSpec, bits: int) -> Quantized:
    """Codes, exponents and the common scale of all paths into a population."""
    parts = list(terms(population.current))
    weights = [folded_weight(term, spec) for term in parts]
    finest = 0.0 if any(weight.any() for weight in weights) else _EMPTY_STEP
    if population.neuron is not None:
        sources = {term.origin.levels.neuron for term in parts}
        levels = max(2**spec.bits - 1 if n is None else n.capacity for n in sources)
        finest = float(array(population.neuron.threshold).min()) * FINEST_STEP / levels
    learned = learned_bits(population)
    shared = population.neuron is None
    if counts_spikes(population):
        scale = np.full(len(weights[0]), weights[0][0])
        powers, integers = [0], [np.ones(len(scale), np.int64)]
    elif (grid := _grid(population, weights, bits)) is not None:
        scale, powers = grid, [0] * len(weights)
        integers = [
            numeric.to_integer(weight / grid.reshape(-1, *[1] * (weight.ndim - 1)))
            for weight in weights
        ]
    elif learned is not None and learned <= bits:  # codes of fewer bits fit as they are
        scale, powers, integers = _learned(parts, weights, learned, spec, finest, shared=shared)
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
    return _quantized(parts, weights, scale, powers, integers)


def rescaled(
    population: Population, spec: InputSpec, bits: int, old: Quantized, factor: float | Floats
) -> Quantized:
    """Float weights rounded again, in scales that are `factor` times the `old` ones: one factor, or
    one per channel. Exponents stay.
    """
    parts = list(terms(population.current))
    weights = [folded_weight(term, spec) for term in parts]
    scale, powers = old.scale * factor, [path.exponent for path in old.paths]
    return _quantized(parts, weights, scale, powers, _rounded(weights, scale, powers, bits))


def _quantized(
    parts: Sequence[Term],
    weights: Sequence[Floats],
    scale: Floats,
    powers: Sequence[int],
    integers: Sequence[NDArray[np.int64]],
) -> Quantized:
    """Paths with these integers, and their rounding errors."""
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


def _grid(population: Population, weights: Sequence[Floats], bits: int) -> Floats | None:
    """For a population from another framework: per channel, a power of two of which all weights are
    integer multiples, or None. With it, weights that were quantized elsewhere stay exact, and so do
    sums at a threshold.
    """
    if not isinstance(population.neuron, IntegrateFire):
        return None
    limit = numeric.weight_limit(bits)
    rows = np.concatenate([weight.reshape(len(weight), -1) for weight in weights], axis=1)
    grid = np.zeros(len(rows))
    for power in range(_COARSEST, _FINEST_GRID - 1, -1):
        codes = rows * 2.0**-power
        fits = (codes == np.rint(codes)).all(axis=1) & (np.abs(codes).max(axis=1) <= limit)
        grid = np.where((grid == 0) & fits & rows.any(axis=1), 2.0**power, grid)
    alive = grid[rows.any(axis=1)]
    if not alive.all() or not alive.size:
        return None
    return np.where(rows.any(axis=1), grid, alive.min())


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
    if isinstance(origin, Synapse):
        stride, padding = taps.stride(origin), taps.padding(origin)
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
    """The codes and steps from quantization-aware training, unchanged.

    Only a channel whose step is below `finest` in all its paths is rounded again, to that step.
    """
    trained = [trained_path(term, spec) for term in parts]
    lowest = min(path.exponent for path in trained if path is not None)
    worth = [path.worth / 2.0 ** (path.exponent - lowest) for path in trained if path is not None]
    learned = np.max(worth, axis=0)  # equal in all paths that are alive in a channel
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
        integers.append(np.where((learned < finest).reshape(-1, 1, 1, 1), coarse, path.codes))
    return scale, exponents, integers


@dataclass(frozen=True, kw_only=True)
class _Trained:
    """A path as it was trained: its signed codes and what a code of 1 is worth, per channel."""

    codes: NDArray[np.int64]
    exponent: int
    worth: Floats


def trained_path(term: Term, spec: InputSpec) -> _Trained | None:
    """None for an identity, which has no codes of its own."""
    origin = term.origin
    if not isinstance(origin, Synapse):
        return None
    layer = origin.module
    assert isinstance(layer, Deployed)
    assert layer.bits is not None
    with torch.no_grad():
        step, exponent = layer.current_step()
        raw = array(codes(layer.weight, step, layer.bits))
    factor = gain(term.norms, len(raw)).cpu().numpy()
    unit = float(level_value(origin.levels, spec)[0])
    sign = np.where(factor < 0, -1, 1).reshape(-1, *[1] * (raw.ndim - 1))
    return _Trained(
        codes=in_place(term, taps.kernel(origin, numeric.to_integer(raw) * sign)),
        exponent=int(exponent.item()),
        worth=in_place(term, unit * np.abs(factor) * array(step).reshape(-1)),
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
    return scale, all_exponents, _rounded(weights, scale, all_exponents, bits)


def _rounded(
    weights: Sequence[Floats], scale: Floats, powers: Sequence[int], bits: int
) -> list[NDArray[np.int64]]:
    """Codes of convolutions, and the integers of identities, which may be wider."""
    steps = [scale * 2.0**exponent for exponent in powers]
    return [
        _codes(weight, step, bits) if weight.ndim == 4 else numeric.to_integer(weight / step)
        for weight, step in zip(weights, steps, strict=True)
    ]


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
    """Per channel (or for all), the scale of the clipped range with the least error of the
    codes.
    """
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
