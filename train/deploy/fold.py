"""Float modules in the terms of burst levels: norms folded, gammas and pixel scales absorbed.

The real numbers of export, on the `Analysis` of a model, all float64. :mod:`train.deploy.rounding`
makes the weights integers, :mod:`train.deploy.layer` the rest.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from lbq_hw.train.data import InputSpec
from lbq_hw.train.graph import Current, Identity, Levels, Norm, Placed, Sum, Synapse, Term, taps
from lbq_hw.train.quantize import Deployed, codes, gain

Floats = NDArray[np.float64]


def bias(current: Current, channels: int) -> Floats:
    """The constant part of a current after its norms, in real units, without the input's mean."""
    if isinstance(current, Norm):
        inner = bias(current.current, channels)
        norm = current.module
        assert norm.running_mean is not None
        shift = array(norm.bias) if norm.affine else np.zeros(channels)
        factor = gain([norm], channels).cpu().numpy()
        return factor * (inner - array(norm.running_mean)) + shift
    if isinstance(current, Sum):
        return np.sum([bias(part, channels) for part in current.currents], axis=0)
    if isinstance(current, Placed):
        return _in_place(bias(current.current, current.size), current)
    if isinstance(current, Identity):
        return np.zeros(channels)
    own = current.module.bias
    return np.zeros(channels) if own is None else array(own)


def folded_weight(term: Term, spec: InputSpec) -> Floats:
    """A path's weight per integer level of its source, with norms and gamma or pixel scale folded
    in.
    """
    origin = term.origin
    unit = level_value(origin.levels, spec)
    if isinstance(origin, Identity):
        channels = origin.levels.shape[0]
        return np.broadcast_to(unit, channels) * gain(term.norms, channels).cpu().numpy()
    kernel = _kernel(origin) * unit.reshape(1, -1, 1, 1)
    kernel = kernel * gain(term.norms, len(kernel)).cpu().numpy().reshape(-1, 1, 1, 1)
    return in_place(term, kernel)


def in_place(term: Term, rows: NDArray[Any]) -> NDArray[Any]:
    """A value per channel of a path, extended to all channels, also those that it does not
    reach.
    """
    return rows if term.placed is None else _in_place(rows, term.placed)


def _in_place(rows: NDArray[Any], placed: Placed) -> NDArray[Any]:
    whole = np.zeros((placed.channels, *rows.shape[1:]), rows.dtype)
    whole[placed.first : placed.first + placed.size] = rows
    return whole


def level_value(levels: Levels, spec: InputSpec) -> Floats:
    """Real value of one level, per channel or for all; a pool's 1/n is part of it."""
    if levels.neuron is not None:
        return np.array([number(levels.neuron.gamma) / levels.divisor])
    std = np.array(spec.std or (1.0,), dtype=np.float64)
    return 1.0 / (spec.full_scale * std * levels.divisor)


def _kernel(synapse: Synapse) -> Floats:
    """A layer's weight as the convolution that the integer network has.

    After quantized training, it is the quantized weight, never the latent float behind it.
    """
    module = synapse.module
    weight = array(module.weight)
    if isinstance(module, Deployed) and module.bits is not None:
        with torch.no_grad():
            step, _ = module.current_step()
            weight = array(codes(module.weight, step, module.bits)) * array(step)
    return taps.kernel(synapse, weight)


def array(tensor: torch.Tensor) -> Floats:
    return tensor.detach().double().cpu().numpy()


def number(value: float | torch.Tensor) -> float:
    return value.detach().double().item() if isinstance(value, torch.Tensor) else value
