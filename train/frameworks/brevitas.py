"""Brevitas' quantized ANNs: layers of quantized weights, and uniform ReLUs between them.

A `QuantReLU` of b bits and scale s sends ``s * clip(round(x / s), 0, 2**b - 1)``. A burst neuron
with step s does the same at T = 1 if half a step is added to its current. Only ties differ:
Brevitas rounds them to even, and the network rounds them up. Weights have codes and a scale
already, and keep both.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from lbq_hw.train.frameworks.rules import is_own, uniform, with_codes
from lbq_hw.train.graph import RefusalError
from lbq_hw.train.neurons import UniformReLU

_LAYERS: dict[str, type[nn.Module]] = {
    "QuantConv1d": nn.Conv1d,
    "QuantConv2d": nn.Conv2d,
    "QuantLinear": nn.Linear,
}
_OFFSETS = {"ROUND": 0.5, "FLOOR": 0.0}
_ONE = "use one scale for all channels of an activation"


@dataclass(frozen=True, kw_only=True)
class Layer:
    """A layer or an activation without its number of timesteps."""

    module: nn.Module

    def build(self, timesteps: int) -> nn.Module:
        if timesteps != 1:
            raise RefusalError("an ANN has no timesteps", "adopt it with timesteps=1")
        return self.module


def knows(module: Any) -> bool:
    """Whether this is a layer or an activation of Brevitas."""
    return any(kind.__module__.startswith("brevitas.nn.") for kind in type(module).__mro__)


@contextmanager
def at_rest(module: Any) -> Iterator[None]:  # noqa: ARG001
    """Does nothing: an ANN has no state."""
    yield


def read(module: Any, axes: int) -> Layer:  # noqa: ARG001
    """The equal layer of this project; RefusalError if there is no exact form."""
    name = type(module).__name__
    if not is_own(module, "brevitas.nn."):
        raise RefusalError(f"{name} is a layer of Brevitas with changes", "use Brevitas' own")
    if name == "QuantReLU":
        return Layer(module=_activation(module))
    if name in _LAYERS:
        return Layer(module=_synapse(module, _LAYERS[name]))
    if name == "QuantIdentity":
        raise RefusalError(
            "it quantizes again what is quantized, or pixels",
            "leave it out: QuantReLU quantizes what layers send, InputSpec pixels",
        )
    raise RefusalError(
        f"Brevitas' {name} has no integer form",
        "use QuantConv1d, QuantConv2d, QuantLinear and QuantReLU",
    )


def _activation(module: Any) -> UniformReLU:
    quantizer = module.act_quant
    if not quantizer.is_quant_enabled or quantizer.is_signed:
        raise RefusalError("it is not quantized, or signed", "use an unsigned act_quant")
    if module.input_quant.is_quant_enabled:
        raise RefusalError("it quantizes its input too", "use input_quant=None")
    offset = _OFFSETS.get(quantizer.rounding_mode)
    if offset is None:
        raise RefusalError(f"it rounds by {quantizer.rounding_mode}", "use ROUND or FLOOR")
    with torch.no_grad():
        step = uniform(quantizer.scale(), "its scale", _ONE)
        bits = int(uniform(quantizer.bit_width(), "its bit width", _ONE))
        zero = uniform(quantizer.zero_point(), "its zero point", _ONE)
    if zero != 0:
        raise RefusalError("its zero point is not 0", "use an act_quant without a zero point")
    narrow = bool(quantizer.is_narrow_range)
    return UniformReLU(step=step, capacity=2**bits - 1 - narrow, offset=offset)


def _synapse(module: Any, kind: type[nn.Module]) -> nn.Module:
    for what in ("input_quant", "output_quant"):
        if getattr(module, what).is_quant_enabled:
            raise RefusalError(
                f"it has an {what}", f"use {what}=None, and QuantReLU between layers"
            )
    if module.bias is not None and module.bias_quant.is_quant_enabled:
        raise RefusalError("it quantizes its bias", "use bias_quant=None")
    if not module.weight_quant.is_quant_enabled:
        raise RefusalError("its weights are not quantized", "use a weight_quant")
    with torch.no_grad():
        quantized = module.quant_weight()
        weight, scale = quantized.value.detach(), quantized.scale.detach()
        bits = int(uniform(quantized.bit_width, "its bit width", "use one"))
        if uniform(quantized.zero_point, "its zero point", "use one") != 0:
            raise RefusalError("its zero point is not 0", "use a symmetric weight_quant")
    plain = _plain(module, kind)
    plain.bias = module.bias
    return with_codes(plain, weight, scale, bits)


def _plain(module: Any, kind: type[nn.Module]) -> Any:
    """A torch layer with the options of Brevitas' layer, without values."""
    if kind is nn.Linear:
        return nn.Linear(module.in_features, module.out_features, device="meta")
    names = ("stride", "padding", "dilation", "groups", "padding_mode")
    options: dict[str, Any] = {name: getattr(module, name) for name in names}
    sizes = (module.in_channels, module.out_channels, module.kernel_size)
    return kind(*sizes, device="meta", **options)
