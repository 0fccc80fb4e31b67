"""Measures statistics of norms whose parameters did not come from training."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from lbq_hw.train.graph.modes import evaluating

Norm = nn.BatchNorm1d | nn.BatchNorm2d


@torch.no_grad()
def settle(model: nn.Module, batches: Iterable[Tensor]) -> None:
    """Give every norm the mean and variance of its input, and adapt its weight and bias so that the
    model does not change in evaluation mode.

    In training mode, norms use the statistics of the batch. With wrong running statistics, a model
    would be another function in training mode.
    """
    norms = [module for module in model.modules() if isinstance(module, Norm) and module.affine]
    sums: dict[nn.Module, list[Tensor]] = {}

    def see(norm: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        x = inputs[0].transpose(0, 1).flatten(1).double()
        seen = [torch.tensor(x.shape[1], device=x.device), x.sum(1), x.square().sum(1)]
        sums[norm] = (
            [a + b for a, b in zip(sums[norm], seen, strict=True)] if norm in sums else seen
        )

    hooks = [norm.register_forward_pre_hook(see) for norm in norms]
    try:
        with evaluating(model):
            for x in batches:
                model(x)
    finally:
        for hook in hooks:
            hook.remove()
    for norm in norms:
        if norm in sums:
            count, total, squares = sums[norm]
            mean = total / count
            _set_statistics(norm, mean, (squares / count - mean.square()).clamp_min(0.0))


def _set_statistics(norm: Norm, mean: Tensor, variance: Tensor) -> None:
    assert norm.running_mean is not None
    assert norm.running_var is not None
    slope = norm.weight.double() * (norm.running_var.double() + norm.eps).rsqrt()
    shift = norm.bias.double() - slope * norm.running_mean.double()
    norm.running_mean.copy_(mean)
    norm.running_var.copy_(variance)
    norm.weight.copy_(slope * (variance + norm.eps).sqrt())
    norm.bias.copy_(shift + slope * mean)
