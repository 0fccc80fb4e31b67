"""Replaces a user's subclasses of torch layers by plain torch layers, and refuses hooks.

An integer network has torch's layers. A subclass may compute something else, so it is taken only if
its forward can be checked. A convolution or linear layer is traced; what it computes from its
weights alone (weight standardization, a mask, a parametrization) is folded into the weights. Every
other layer must have torch's forward, or the forward of SpikingJelly's layer of the same name,
which adds time. Hooks belong to no layer, so they are refused.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, fx, nn
from torch.nn.utils import prune

from lbq_hw.train.graph import RefusalError, Violation
from lbq_hw.train.graph.modes import evaluating

LAYERS: tuple[type[nn.Module], ...] = (
    *(nn.Conv1d, nn.Conv2d, nn.Linear, nn.BatchNorm1d, nn.BatchNorm2d),
    *(nn.MaxPool1d, nn.MaxPool2d, nn.AdaptiveMaxPool1d, nn.AdaptiveMaxPool2d),
    *(nn.AvgPool1d, nn.AvgPool2d, nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d),
    *(nn.ZeroPad1d, nn.ZeroPad2d, nn.ConstantPad1d, nn.ConstantPad2d),
    *(nn.Flatten, nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Identity),
)
"""The torch layers that are read, themselves or as subclasses."""

_OURS = __name__.removesuffix("graph.plain")  # the package of this project's layers
_CONV = ("input", "weight", "bias", "stride", "padding", "dilation", "groups")
_REMOVED = {
    "WeightNorm": "call torch.nn.utils.remove_weight_norm, which leaves the weights that it gives",
    "SpectralNorm": "call torch.nn.utils.remove_spectral_norm, which leaves the weights it gives",
}
_PRUNED = "call torch.nn.utils.prune.remove, which leaves the pruned weights"


def hooks(model: nn.Module) -> Iterator[Violation]:
    """Every hook of a forward pass, with its place."""
    for path, module in model.named_modules():
        found: dict[str, list[Any]] = {
            "pre-hook": [*module._forward_pre_hooks.values()],
            "hook": [*module._forward_hooks.values()],
        }
        for kind, all_of_kind in found.items():
            for hook in all_of_kind:
                name = type(hook).__name__
                mend = "remove it, or make what it computes a layer"
                yield Violation(
                    path=path or type(model).__name__,
                    reason=f"has a forward {kind} ({getattr(hook, '__name__', name)}), and hooks "
                    "are no part of a network",
                    mend=_PRUNED
                    if isinstance(hook, prune.BasePruningMethod)
                    else _REMOVED.get(name, mend),
                    trainable=False,
                )


def plain(module: nn.Module, *, training: bool = False) -> nn.Module:
    """The torch layer that computes the same as `module`, one of `LAYERS` or a subclass.

    With `training`, it must have the parameters of `module`. RefusalError if there is no such one.
    """
    kind = next(kind for kind in LAYERS if isinstance(module, kind))
    if type(module).__module__.startswith(_OURS):
        return module  # it was prepared before
    if "forward" in vars(module):
        raise RefusalError(
            "its forward was replaced, and is not the forward of its class", "put it into a class"
        )
    if issubclass(kind, nn.Conv1d | nn.Conv2d | nn.Linear):
        as_it_is = type(module) is kind and "weight" in module._parameters
        return module if as_it_is else _folded(module, kind, training=training)
    if type(module) is kind:
        return module
    if type(module).forward is not kind.forward and not _adds_time(type(module), kind):
        raise RefusalError(
            f"{type(module).__name__} is a {kind.__name__} with a forward of its own",
            f"use nn.{kind.__name__}, and make what else it computes a layer",
        )
    return _twin(module, kind)


def check_forward(module: nn.Module) -> None:
    """RefusalError if a subclass of one of this project's neurons or time layers has a forward of
    its own.
    """
    bases = type(module).__mro__
    owner = next(base for base in bases if "forward" in vars(base))
    if "forward" in vars(module) or not owner.__module__.startswith(_OURS):
        ours = next(base for base in bases if base.__module__.startswith(_OURS))
        raise RefusalError(
            f"{type(module).__name__} is a {ours.__name__} with a forward of its own",
            f"use {ours.__name__}, and make what else it computes a layer",
        )


def _adds_time(owner: type[nn.Module], kind: type[nn.Module]) -> bool:
    """Whether a class has the forward of SpikingJelly's layer, which applies torch's over time."""
    base = next(base for base in owner.__mro__ if "forward" in vars(base))
    return base.__module__.startswith("spikingjelly.") and base.__name__ == kind.__name__


def _twin(module: nn.Module, kind: type[nn.Module]) -> nn.Module:
    twin = kind.__new__(kind)
    twin.__dict__.update(vars(module))
    return twin


class _WeightTracer(fx.Tracer):
    """Traces only what depends on the input, and computes with the module's own tensors."""

    def getattr(
        self,
        attr: str,  # noqa: ARG002
        attr_val: Any,
        parameter_proxy_cache: dict[str, Any],  # noqa: ARG002
    ) -> Any:
        return attr_val

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:  # noqa: ARG002
        return False


def _folded(module: nn.Module, kind: type[nn.Module], *, training: bool) -> nn.Module:
    """A convolution or linear layer with the weights that the forward of `module` uses."""
    name = type(module).__name__
    copied: Any = _twin(module, type(module))  # the tracer leaves constants on it
    if getattr(copied, "step_mode", None) == "m":
        copied.step_mode = "s"  # SpikingJelly: one timestep
    try:
        with torch.no_grad(), evaluating(copied):
            graph = _WeightTracer().trace(copied)
        weight, bias, options = _called(graph, copied, kind)
    except Exception:  # a user's forward may raise anything; it is then not one convolution
        what = "product with its weights" if kind is nn.Linear else "convolution"
        raise RefusalError(
            f"{name} is a {kind.__name__} whose forward is not one {what}",
            f"use nn.{kind.__name__}, and make what else it computes a layer",
        ) from None
    own = weight is module._parameters.get("weight") and bias is module._parameters.get("bias")
    if training and not own:
        raise RefusalError(
            f"{name} computes its weights, which no layer that is trained here does",
            f"train nn.{kind.__name__}; once it is trained, export takes the model without prepare",
        )
    layer = _layer(weight, bias, options)
    return layer.train(module.training)


def _layer(weight: Tensor, bias: Tensor | None, options: dict[str, Any]) -> nn.Module:
    """A layer with these tensors, built without an initialization, so no random number is drawn."""
    outputs, inputs, *kernel = weight.shape
    with_bias = bias is not None
    if kernel:
        inputs *= options.get("groups", 1)
        conv: Any = nn.Conv2d if len(kernel) == 2 else nn.Conv1d
        layer: nn.Module = conv(
            inputs, outputs, tuple(kernel), bias=with_bias, device="meta", **options
        )
    else:
        layer = nn.Linear(inputs, outputs, bias=with_bias, device="meta")
    layer.weight = _parameter(weight)
    if bias is not None:
        layer.bias = _parameter(bias)
    return layer


def _parameter(tensor: Tensor) -> nn.Parameter:
    if isinstance(tensor, nn.Parameter):
        return tensor
    return nn.Parameter(tensor.detach().clone(), requires_grad=False)


def _called(
    graph: fx.Graph, owner: nn.Module, kind: type[nn.Module]
) -> tuple[Tensor, Tensor | None, dict[str, Any]]:
    """Weight, bias and options of the forward's only call; ValueError if the forward does more."""
    functions: dict[Any, Any] = {nn.Conv1d: torch.conv1d, nn.Conv2d: torch.conv2d}
    names, function = (_CONV[:3] if kind is nn.Linear else _CONV), functions.get(kind, F.linear)
    steps = [node for node in graph.nodes if node.op != "get_attr"]
    if [node.op for node in steps] != ["placeholder", "call_function", "output"]:
        raise ValueError("not one call")
    start, call, end = steps
    given = dict(zip(names, call.args, strict=False)) | call.kwargs
    if call.target is not function or given.pop("input") is not start or end.args != (call,):
        raise ValueError("not a call on the input")
    found = {
        name: operator.attrgetter(str(value.target))(owner)
        for name, value in given.items()
        if isinstance(value, fx.Node)
    }
    options = {name: value for name, value in given.items() if name not in ("weight", "bias")}
    return found["weight"], found.get("bias"), options
