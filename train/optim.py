"""The optimizer of a recipe, its learning rate, and the average of the weights."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import nn
from torch.optim.swa_utils import get_ema_multi_avg_fn

from lbq_hw.train import models
from lbq_hw.train.settings.recipe import Recipe


def build_optimizer(model: nn.Module, train: Recipe) -> torch.optim.Optimizer:
    """Weight decay acts on weights and, with ``decay_norms``, on norms and biases. It never acts on
    the neurons' scalars or the weight quantizers' steps, which are scales and not weights.
    """
    fixed = scales(model)
    groups: tuple[list[nn.Parameter], list[nn.Parameter]] = ([], [])
    for name, parameter in model.named_parameters():
        decays = name not in fixed and (train.decay_norms or parameter.ndim > 1)
        groups[0 if decays else 1].append(parameter)
    options = [
        {"params": group, "weight_decay": decay}
        for group, decay in zip(groups, (train.weight_decay, 0.0), strict=True)
        if group
    ]
    fused = options[0]["params"][0].is_cuda or None
    if train.optimizer == "adamw":
        return torch.optim.AdamW(options, lr=train.lr, betas=train.adam_betas, fused=fused)
    nesterov = train.nesterov and train.momentum > 0
    return torch.optim.SGD(
        options, lr=train.lr, momentum=train.momentum, nesterov=nesterov, fused=fused
    )


def scales(model: nn.Module) -> set[str]:
    """The names of parameters that scale a layer: neurons' scalars and weight quantizers' steps."""
    steps = {name for name, _ in model.named_parameters() if name.endswith(".step")}
    return steps | set(models.neuron_parameters(model))


def learning_rate(train: Recipe, step: int, steps: int) -> float:
    """The rate of a step, counted from 0, in a run of ``steps`` steps per epoch."""
    warmup, total = train.warmup_epochs * steps, train.epochs * steps
    if step < warmup:
        return train.lr * min(1.0, (step + 1) / warmup)
    if train.schedule == "constant":
        return train.lr
    return train.lr * (1 + math.cos(math.pi * (step - warmup) / (total - warmup))) / 2


def activity_weight(train: Recipe, step: int, steps: int) -> float:
    """The weight of the activity in the loss of a step, counted from 0."""
    risen = step + 1 - train.activity_start * steps
    ramp = train.activity_ramp * steps
    return train.activity * min(max(risen / ramp if ramp else float(risen > 0), 0.0), 1.0)


def follower(average: nn.Module | None, model: nn.Module, decay: float) -> Callable[[], None]:
    """A function that moves averaged weights and statistics towards the present ones; counters are
    copied.
    """
    if average is None:
        return lambda: None
    pairs = list(zip(average.state_dict().values(), model.state_dict().values(), strict=True))
    floats = [pair for pair in pairs if pair[0].is_floating_point()]
    counters = [pair for pair in pairs if not pair[0].is_floating_point()]
    update = get_ema_multi_avg_fn(decay)

    def follow() -> None:
        update([old for old, _ in floats], [new for _, new in floats], None)
        for old, new in counters:
            old.copy_(new)

    return follow
