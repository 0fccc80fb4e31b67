"""The reverse of export: loads an integer network into a model, so that training can continue.

Export folds norms into weights and rounds the result. Here codes times their steps become weights
again, and norms become plain affine maps (`train.norms` then gives them the statistics that
training needs). A channel's scale follows from its threshold, ``s_c = gamma * 2**F / theta_c``, so
that weights, bias, threshold and reset are exact. Only identity weights, which a model does not
have, keep the rounding of the export.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from lbq_hw.datasets import meaning
from lbq_hw.network import Layer, Network, Path
from lbq_hw.train.data import InputSpec
from lbq_hw.train.deploy.fold import Floats, level_value, number
from lbq_hw.train.deploy.layer import mean_current
from lbq_hw.train.graph import GraphError, Identity, Population, Synapse, Term, taps, terms
from lbq_hw.train.graph.trace import analyze
from lbq_hw.train.neurons import LBQ, IntegrateFire, Neuron, softplus_inverse
from lbq_hw.train.quantize import Deployed, gain

CHANNEL_NORM = 0.35
"""Length of the weights of one output channel that has a norm after it.

A norm leaves this length free, but the effect of a learning rate depends on its square. Channels of
a ResNet-20 have about this length after 300 epochs with a weight decay of 5e-4.
"""
_LEAST_TAIL = 1e-4  # tail strengths are taken up within this of 0 and 1, where their logits end

Norms = nn.BatchNorm1d | nn.BatchNorm2d
Found = TypeVar("Found")


class TakeUpError(ValueError):
    """A network that cannot be loaded into a model; one sentence for the user."""


@torch.no_grad()
def take_up(
    model: nn.Module, spec: InputSpec, network: Network, tails: Mapping[str, float] | None = None
) -> None:
    """Load the weights, steps and decays of a network of the same shape into a model, in place.

    `tails` are tail strengths by layer: they act in training alone, so a network has none of them,
    and a neuron that is not named keeps its own.
    """
    populations = _populations(model, spec, network)
    for population in populations:
        if population.neuron is not None:
            _set_neuron(population, network.by_name[population.name])
            _set_tail(population.neuron, (tails or {}).get(population.name))
    users: dict[nn.Module, int] = {}
    for population in populations:
        for term in terms(population.current):
            for norm in term.norms:
                users[norm] = users.get(norm, 0) + 1
    for population in populations:
        layer = network.by_name[population.name]
        scale = _scale(population, layer)
        for term, path in _pairs(population, layer):
            for norm in term.norms:
                _set_affine(norm, torch.ones(len(_own(term, scale))))
            if isinstance(term.origin, Synapse):
                _set_weight(term, path, scale, spec, own=[n for n in term.norms if users[n] == 1])
        constant = layer.bias * 2.0**-layer.fraction_bits
        constant = scale * (constant + mean_current(layer.paths, spec, len(scale)))
        _set_bias(population, constant)


@torch.no_grad()
def take_up_steps(model: nn.Module, spec: InputSpec, network: Network) -> None:
    """Give the quantizers of a prepared model that has taken up a network the steps of that
    network, where they have as many weight bits: its codes are then the model's codes.
    """
    for population in _populations(model, spec, network):
        layer = network.by_name[population.name]
        scale = _scale(population, layer)
        for term, path in _pairs(population, layer):
            if not isinstance(term.origin, Synapse):
                continue
            module = term.origin.module
            assert isinstance(module, Deployed)
            if module.bits != network.layer_bits(layer):
                continue
            worth = float(level_value(term.origin.levels, spec)[0])
            value = _own(term, scale) * 2.0**path.exponent
            worth = worth * gain(term.norms, len(value)).abs().cpu().numpy()
            if module.step.numel() == 1:
                module.step.fill_(float(value.max() / worth.mean()))
            else:
                alive = np.divide(value, worth, out=np.ones_like(value), where=worth > 0)
                module.step.copy_(torch.from_numpy(alive).reshape(module.step.shape))


def _populations(model: nn.Module, spec: InputSpec, network: Network) -> list[Population]:
    """The populations of the model, which must match the layers of the network."""
    found = analyze(model, spec)
    if found.violations:
        raise GraphError(found.violations)
    if network.input.shape != spec.shape or network.input.static != spec.static:
        raise TakeUpError(f"its input is {network.input.shape}, and the model's is {spec.shape}")
    if (network.input.bits, network.input.shift) != (spec.bits, spec.shift):
        raise TakeUpError(
            f"its input has {network.input.bits} bits after a shift of {network.input.shift}, and "
            f"the model's {spec.bits} after {spec.shift}"
        )
    white = meaning.full_scale(network)
    if spec.static and white != spec.white:
        raise TakeUpError(f"its full scale is a raw value of {white}, and the model's {spec.white}")
    ours = {population.name: tuple(population.shape) for population in found.populations}
    theirs = {layer.name: tuple(layer.shape) for layer in network.layers}
    if ours != theirs:
        raise TakeUpError("its layers are not those of the model")
    return found.populations


def _pairs(population: Population, layer: Layer) -> Iterator[tuple[Term, Path]]:
    """The paths of a population in the model and in the network."""
    parts = list(terms(population.current))
    mine = [(t.origin.levels.source, isinstance(t.origin, Identity)) for t in parts]
    if mine != [(path.source, path.is_identity) for path in layer.paths]:
        raise TakeUpError(f"layer {layer.name!r} has other paths than the model's")
    yield from zip(parts, layer.paths, strict=True)


def _set_neuron(population: Population, layer: Layer) -> None:
    neuron, integers = population.neuron, layer.neuron
    assert neuron is not None
    assert integers is not None
    gamma = _known(layer.gamma, layer, "gamma")
    foreign = any(rule.optional for rule in integers.rules)
    if foreign or isinstance(neuron, IntegrateFire):
        raise TakeUpError(
            f"layer {layer.name!r} was imported from another framework, and has no gradient"
        )
    if not neuron.learn_gamma:
        neuron.step.fill_(gamma)
    elif gamma <= neuron.eps:
        raise TakeUpError(f"layer {layer.name!r} has gamma = {gamma:g}, and eps is {neuron.eps:g}")
    else:
        neuron.rho.fill_(softplus_inverse(gamma - neuron.eps))
    if neuron.learn_beta:
        beta = min(max(integers.decay / 2**integers.decay_bits, 1e-3), 1 - 1e-3)
        neuron.beta_logit.fill_(math.log(beta / (1 - beta)))
    if neuron.learn_alpha:
        alpha = max(float(np.median(integers.reset / integers.theta)), 1e-3)
        neuron.alpha_rho.fill_(softplus_inverse(alpha))


def _set_tail(neuron: Neuron, tail: float | None) -> None:
    if tail is not None and isinstance(neuron, LBQ) and neuron.lam is not None:
        tail = min(max(tail, _LEAST_TAIL), 1 - _LEAST_TAIL)
        neuron.eta.fill_(math.log(tail / (1 - tail)))


def _scale(population: Population, layer: Layer) -> Floats:
    """The value of one accumulator step in the model's units, per channel."""
    if population.neuron is None or layer.neuron is None:
        return np.asarray(_known(layer.scale, layer, "scale"), np.float64)
    return number(population.neuron.gamma) * 2.0**layer.fraction_bits / layer.neuron.theta


def _known(value: Found | None, layer: Layer, name: str) -> Found:
    if value is None:
        raise TakeUpError(f"layer {layer.name!r} has no {name}, which a model needs")
    return value


def _set_weight(
    term: Term, path: Path, scale: Floats, spec: InputSpec, *, own: list[nn.Module]
) -> None:
    """Set weights to the values of their codes; a norm after them gets the remaining factor."""
    assert isinstance(term.origin, Synapse)
    module = term.origin.module
    unit = level_value(term.origin.levels, spec).reshape(1, -1, 1, 1)
    worth = path.weight * (scale * 2.0**path.exponent).reshape(-1, 1, 1, 1) / unit
    try:
        worth = taps.values(term.origin, _own(term, worth), tuple(module.weight.shape))
    except ValueError:
        raise TakeUpError(f"the weights of {term.origin.path!r} have another shape") from None
    if own:
        rows = worth.reshape(len(worth), -1)
        length = np.sqrt((rows**2).sum(axis=1)) / CHANNEL_NORM
        _set_affine(own[0], torch.from_numpy(length))
        worth = (rows / np.where(length > 0, length, 1.0)[:, None]).reshape(worth.shape)
    module.weight.copy_(torch.from_numpy(worth))
    if module.bias is not None:
        module.bias.zero_()


def _own(term: Term, rows: Floats) -> Floats:
    """The rows, one per channel, that belong to the channels of a path."""
    placed = term.placed
    return rows if placed is None else rows[placed.first : placed.first + placed.size]


def _set_affine(norm: nn.Module, slope: Tensor) -> None:
    """Make a norm, in evaluation mode, a multiplication."""
    assert isinstance(norm, Norms)
    if norm.running_mean is None or norm.running_var is None or not norm.affine:
        raise TakeUpError("the model has a norm without weights or running statistics")
    norm.running_mean.zero_()
    norm.running_var.fill_(1 - norm.eps)
    norm.weight.copy_(slope)
    norm.bias.zero_()


def _set_bias(population: Population, constant: Floats) -> None:
    """Set the constant of a population, in the last norm of a path or in a layer; joined parts have
    one each."""
    parts = list(terms(population.current))
    for placed in dict.fromkeys(term.placed for term in parts):
        own = [term for term in parts if term.placed is placed]
        _set_part(population, own, _own(own[0], constant))


def _set_part(population: Population, parts: list[Term], constant: Floats) -> None:
    value = torch.from_numpy(constant)
    for term in parts:
        if term.norms:
            last = term.norms[-1]
            assert isinstance(last, Norms)
            last.bias.copy_(value)
            return
    for term in parts:
        if isinstance(term.origin, Synapse) and term.origin.module.bias is not None:
            term.origin.module.bias.copy_(value)
            return
    if constant.any():
        raise TakeUpError(f"layer {population.name!r} has a bias, and the model's has none")
