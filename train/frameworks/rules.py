"""What a neuron of another framework is in the terms of `IntegrateFire`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from train.neurons import IntegrateFire


class RefusalError(ValueError):
    """A neuron that has no exact form: why, and what to do."""

    def __init__(self, reason: str, mend: str) -> None:
        super().__init__(reason, mend)
        self.reason, self.mend = reason, mend


@dataclass(frozen=True, kw_only=True)
class Spiking:
    """A neuron as `IntegrateFire` takes it, but for the number of timesteps."""

    threshold: float | Sequence[float]
    beta: float = 1.0
    alpha: float = 1.0
    to_zero: bool = False
    strict: bool = False
    late: bool = False

    def build(self, timesteps: int) -> IntegrateFire:
        return IntegrateFire(
            timesteps=timesteps,
            threshold=self.threshold,
            beta=self.beta,
            alpha=self.alpha,
            to_zero=self.to_zero,
            strict=self.strict,
            late=self.late,
        )


def uniform(values: Any, what: str, mend: str) -> float:
    """The number that all entries are."""
    found = torch.as_tensor(values).detach().double().unique()
    if found.numel() != 1:
        raise RefusalError(f"{what} differs from neuron to neuron", mend)
    return found.item()


def per_channel(values: Any, what: str) -> float | list[float]:
    """One number, or one per channel of values ``()``, ``(C,)`` or ``(C, H, W)``."""
    found = torch.as_tensor(values).detach().double()
    if found.numel() == 1:
        return found.item()
    rows = found.flatten(1) if found.dim() > 1 else found.reshape(-1, 1)
    if not bool((rows == rows[:, :1]).all()):
        raise RefusalError(
            f"{what} differs within a channel", f"use one {what} per channel, or one for all"
        )
    first = rows[:, 0]
    return first[0].item() if bool((first == first[0]).all()) else first.tolist()


def shifted(threshold: float | list[float], by: float, gain: float) -> float | list[float]:
    """A threshold over a resting potential, in units of the current: it must be above 0."""
    values = threshold if isinstance(threshold, list) else [threshold]
    moved = [(value - by) / gain for value in values]
    if not gain > 0 or not min(moved) > 0:
        raise RefusalError(
            "its threshold is not above its resting potential", "train it with a higher threshold"
        )
    return moved if isinstance(threshold, list) else moved[0]
