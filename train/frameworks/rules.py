"""Reads the values of another framework's neurons, for `Spiking` and `IntegrateFire`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from lbq_hw import numeric
from lbq_hw.train.graph import RefusalError
from lbq_hw.train.quantize import Conv1d, Conv2d, Linear, stand_in


def is_own(module: nn.Module, package: str) -> bool:
    """Whether a neuron's class belongs to the framework itself, and is not a user's subclass."""
    return type(module).__module__.startswith(package) and "forward" not in vars(module)


def uniform(values: Any, what: str, mend: str) -> float:
    """The value that all entries have; RefusalError if they differ."""
    found = torch.as_tensor(values).detach().double().unique()
    if found.numel() != 1:
        raise RefusalError(f"{what} differs from neuron to neuron", mend)
    return found.item()


def per_channel(values: Any, what: str, axes: int | None = None) -> float | list[float]:
    """One number, or one per channel.

    `axes` is the number of axes of the neuron's membrane besides the batch, 1 or 3. Values with
    fewer axes are broadcast as in torch, from the last axis on. Without `axes`, values must have
    all axes.
    """
    found = torch.as_tensor(values).detach().double()
    if found.numel() and bool((found == found.flatten()[0]).all()):
        return found.flatten()[0].item()
    shape = tuple(found.shape)
    if axes is not None and found.dim() < axes:
        raise RefusalError(
            f"its {what} of shape {shape} applies along the last axes of its images, not per "
            "channel",
            f"give it the shape ({shape[-1]}, 1, 1) for one {what} per channel",
        )
    if axes is not None and found.dim() > axes:
        if found.dim() > axes + 1 or len(found) != 1:
            raise RefusalError(
                f"its {what} has the shape {shape}, more axes than its membrane",
                f"use one {what} per channel, or one for all",
            )
        found = found[0]
    rows = found.flatten(1) if found.dim() > 1 else found.reshape(-1, 1)
    if not bool((rows == rows[:, :1]).all()):
        raise RefusalError(
            f"{what} differs within a channel", f"use one {what} per channel, or one for all"
        )
    return rows[:, 0].tolist()


def with_codes(plain: Any, weight: Tensor, scale: Tensor, bits: int) -> Conv1d | Conv2d | Linear:
    """A torch layer whose weights are codes of `bits` bits times `scale`, which is one number or
    one per output channel; export keeps codes and scale.
    """
    if scale.numel() not in (1, len(weight)):
        raise RefusalError(
            "its scales are not one number, nor one per channel",
            "use one scale, or one per channel",
        )
    shape = (-1, *[1] * (weight.dim() - 1))
    largest = int((weight / scale.reshape(shape)).round().abs().max())
    if bits > 1 and largest > numeric.weight_limit(bits):
        bits += 1  # a code is -2**(bits - 1), which a norm's negative gain could not negate
    plain.weight = nn.Parameter(weight, requires_grad=False)
    layer = stand_in(plain)
    layer.deploy(source=None, absorb=False, bits=max(bits, 2), per_tensor=scale.numel() == 1)
    layer.step.data.copy_(scale.reshape(layer.step.shape))
    return layer


def shifted(threshold: float | list[float], by: float, gain: float) -> float | list[float]:
    """A threshold relative to the resting potential, in units of the current; must be above 0."""
    values = threshold if isinstance(threshold, list) else [threshold]
    moved = [(value - by) / gain for value in values]
    if not gain > 0 or not min(moved) > 0:
        raise RefusalError(
            "its threshold is not above its resting potential", "train it with a higher threshold"
        )
    return moved if isinstance(threshold, list) else moved[0]
