"""Makes one module of a neuron and the norms before it, so that a training step runs them fused.

:func:`fuse` rewrites the graph of a prepared model in place: ``neuron(norm(x))``, with a repetition
over time or a second path in the sum, becomes one call of a :class:`NormedNeuron`. The modules stay
registered where they were, so a state dict neither gains nor loses a name. In evaluation, and in
cases that :mod:`train.kernels.normed` does not cover, they are called as before.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import Tensor, fx, nn

from lbq_hw.train.kernels import normed
from lbq_hw.train.layers import Repeat, Scale
from lbq_hw.train.neurons import Neuron


class NormedNeuron(nn.Module):
    """``neuron(repeat(norm(x)) + path(y))``; the repetition and the second path may be missing.

    ``path`` is the norm of a projecting shortcut or the `Scale` of an identity.
    """

    def __init__(
        self,
        *,
        neuron: Neuron,
        norm: nn.BatchNorm2d,
        repeat: Repeat | None = None,
        path: nn.BatchNorm2d | Scale | None = None,
    ) -> None:
        super().__init__()
        self._parts = (neuron, norm, repeat, path)  # in a tuple: it is registered elsewhere

    def forward(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        neuron, norm, repeat, path = self._parts
        timesteps = neuron.timesteps if neuron.stateful or repeat is not None else 1
        whole = repeat is not None or x.shape[0] % timesteps == 0  # if not, the neuron raises
        covered = neuron.fused and not neuron.keeps_state
        if norm.training and covered and whole and normed.available(x, y, timesteps):
            return self._fused(x, y, timesteps)
        current = norm(x)
        if repeat is not None:
            current = repeat(current)
        if path is not None:
            current = current + path(y)
        return neuron(current)

    def _fused(self, x: Tensor, y: Tensor | None, timesteps: int) -> Tensor:
        neuron, norm, repeat, path = self._parts
        second: tuple[Tensor | None, ...] = (None, None, None)
        if isinstance(path, nn.BatchNorm2d):
            assert y is not None
            second = (statistics(path, y), path.weight, path.bias)
        elif path is not None:
            second = (None, path.gain, None)
        beta, alpha = neuron.beta, neuron.alpha
        assert isinstance(beta, float)
        assert isinstance(alpha, float)
        return normed.recurrence(
            x,
            statistics(norm, x),
            norm.weight,
            norm.bias,
            y,
            *second,
            neuron.step_for(x),
            neuron.lam,
            static=repeat is not None,
            timesteps=timesteps,
            beta=beta,
            alpha=alpha,
            quantizer=neuron.quantizer,
            emit_levels=neuron.emit_levels,
        )


def statistics(norm: nn.BatchNorm2d, x: Tensor) -> Tensor:
    """Mean and invstd ``(2, C)`` of the batch; updates the norm's running statistics."""
    assert norm.running_mean is not None
    assert norm.running_var is not None
    assert norm.num_batches_tracked is not None
    assert norm.momentum is not None
    mean, variance = normed.moments(x)
    rows = x.numel() // x.shape[1]
    old, new = 1 - norm.momentum, norm.momentum
    with torch.no_grad():
        norm.num_batches_tracked.add_(1)
        norm.running_mean.mul_(old).add_(new * mean)
        norm.running_var.mul_(old).add_(new * rows / (rows - 1) * variance)
    return torch.stack((mean, torch.rsqrt(variance + norm.eps)))


def fuse(model: fx.GraphModule) -> int:
    """Rewrite the graph in place; returns the number of neurons that were fused with their norm."""
    modules: dict[str, nn.Module] = dict(model.named_modules())
    count = 0
    for node in list(model.graph.nodes):
        neuron = _called(modules, node, Neuron)
        if neuron is None or not neuron.fused or neuron.learn_beta or neuron.learn_alpha:
            continue
        match = _match(modules, node.all_input_nodes[0])
        if match is None:
            continue
        parts, inputs, spent = match
        name = f"{node.name!s}_normed"
        model.add_submodule(name, NormedNeuron(neuron=neuron, **parts))
        with model.graph.inserting_before(node):
            node.replace_all_uses_with(model.graph.call_module(name, inputs))
        for each in (node, *spent):
            model.graph.erase_node(each)
        count += 1
    model.recompile()
    return count


def _match(
    modules: dict[str, nn.Module], source: fx.Node
) -> tuple[dict[str, Any], tuple[fx.Node, ...], list[fx.Node]] | None:
    """The parts of a current: its modules, their inputs, and their nodes, the last node first."""
    repeat = _called(modules, source, Repeat)
    added = source.op == "call_function" and source.target is operator.add
    operands = source.all_input_nodes if added or repeat is not None else [source]
    spent = [source, *operands] if operands != [source] else operands
    if len(operands) != 1 + added or any(len(node.users) != 1 for node in spent):
        return None
    found = [_called(modules, node, nn.BatchNorm2d | Scale) for node in operands]
    norms = [module for module in found if isinstance(module, nn.BatchNorm2d)]
    plain = all(norm.affine and norm.track_running_stats and norm.momentum for norm in norms)
    if None in found or not norms or not plain:
        return None
    first = found.index(norms[0])
    parts: dict[str, Any] = {"norm": found.pop(first), "repeat": repeat}
    inputs = [operands[first], *operands[:first], *operands[first + 1 :]]
    if found:
        parts["path"] = found[0]
    return parts, tuple(node.all_input_nodes[0] for node in inputs), spent


def _called(modules: dict[str, nn.Module], node: fx.Node, kind: Any) -> Any:
    """The module that a node calls, if it is of this kind."""
    if node.op != "call_module":
        return None
    module = modules[str(node.target)]
    return module if isinstance(module, kind) else None
