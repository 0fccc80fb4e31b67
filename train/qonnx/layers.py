"""The torch layers of ONNX nodes, with quantized weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from lbq_hw.train.frameworks.rules import with_codes
from lbq_hw.train.graph import RefusalError
from lbq_hw.train.qonnx.quantizers import Array, Codes

_UNEQUAL = "its padding differs from side to side"
_SAME = "pad both sides of an axis alike"


def conv(codes: Codes, bias: Array | None, options: dict[str, Any]) -> nn.Module:
    """A Conv of images."""
    weight = codes.values
    if weight.ndim != 4:
        raise RefusalError(f"its weights have {weight.ndim} axes", "use convolutions of images")
    groups = int(options.get("group", 1))
    made: Any = nn.Conv2d(
        weight.shape[1] * groups,
        weight.shape[0],
        weight.shape[2:],
        stride=_pair(options.get("strides", (1, 1))),
        padding=padding(options),
        dilation=_pair(options.get("dilations", (1, 1))),
        groups=groups,
        device="meta",
    )
    return _filled(made, codes, bias)


def linear(codes: Codes, bias: Array | None) -> nn.Module:
    """A Gemm or a MatMul whose weights are ``(out, in)``."""
    if codes.values.ndim != 2:
        raise RefusalError(f"its weights have {codes.values.ndim} axes", "use two")
    outputs, inputs = codes.values.shape
    made: Any = nn.Linear(inputs, outputs, device="meta")
    return _filled(made, codes, bias)


def _filled(layer: Any, codes: Codes, bias: Array | None) -> nn.Module:
    outputs = len(codes.values)
    if bias is not None and bias.size != outputs:
        raise RefusalError(f"its bias has {bias.size} numbers", f"use {outputs}, one per output")
    layer.bias = None if bias is None else nn.Parameter(tensor(bias).reshape(outputs))
    return with_codes(layer, tensor(codes.values), tensor(codes.scale), codes.bits)


def norm(values: list[Array], options: dict[str, Any], *, flat: bool) -> nn.Module:
    """A BatchNormalization: gain, bias, mean and variance."""
    gain, bias, mean, variance = map(tensor, values)
    kind = nn.BatchNorm1d if flat else nn.BatchNorm2d
    made = kind(len(gain), eps=float(options.get("epsilon", 1e-5)))
    assert made.running_mean is not None
    assert made.running_var is not None
    with torch.no_grad():
        for own, given in (
            (made.weight, gain),
            (made.bias, bias),
            (made.running_mean, mean),
            (made.running_var, variance),
        ):
            own.copy_(given)
    return made


def pool(kind: str, options: dict[str, Any]) -> nn.Module:
    """A MaxPool or an AveragePool."""
    kernel = _pair(options["kernel_shape"])
    stride = _pair(options.get("strides", (1, 1)))
    if options.get("ceil_mode", 0):
        raise RefusalError("it has ceil_mode", "use whole windows")
    if kind == "MaxPool":
        dilation = _pair(options.get("dilations", (1, 1)))
        return nn.MaxPool2d(kernel, stride, padding(options), dilation)
    counted = bool(options.get("count_include_pad", 0))
    return nn.AvgPool2d(kernel, stride, padding(options), count_include_pad=counted)


def padding(options: dict[str, Any]) -> tuple[int, int]:
    """The padding of each axis, equal on both sides."""
    if options.get("auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        raise RefusalError(f"its auto_pad is {options['auto_pad']}", "write its pads")
    pads = [int(value) for value in options.get("pads", (0, 0, 0, 0))]
    if len(pads) != 4 or pads[:2] != pads[2:]:
        raise RefusalError(_UNEQUAL, _SAME)
    return pads[0], pads[1]


def tensor(values: Array) -> Tensor:
    return torch.from_numpy(np.array(values, np.float32))


def _pair(values: Any) -> tuple[int, int]:
    found = [int(value) for value in values]
    if len(found) != 2:
        raise RefusalError(f"it acts on {len(found)} axes", "use layers of images, with two")
    return found[0], found[1]
