"""Layers for time: timesteps are merged into the batch, time outermost.

Between these layers every tensor is ``(T*B, ...)`` with index ``t*B + b``, so that only neurons
need to know about time, and convolutions, norms and pools do not.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


def check_timesteps(timesteps: int) -> int:
    """A number of timesteps, checked."""
    if not isinstance(timesteps, int):
        raise TypeError(f"timesteps must be an integer, not {timesteps!r}")
    if timesteps < 1:
        raise ValueError(f"timesteps must be at least 1, not {timesteps!r}")
    return timesteps


class Repeat(nn.Module):
    """Repeat a static current over T timesteps: ``(B, ...) -> (T*B, ...)``."""

    def __init__(self, timesteps: int) -> None:
        super().__init__()
        self.timesteps = check_timesteps(timesteps)

    def forward(self, x: Tensor) -> Tensor:
        return x if self.timesteps == 1 else torch.cat([x] * self.timesteps)

    def extra_repr(self) -> str:
        return f"timesteps={self.timesteps}"


class MergeTime(nn.Module):
    """Merge the time axis of a temporal input: ``(T, B, ...) -> (T*B, ...)``."""

    def forward(self, x: Tensor) -> Tensor:
        return x.flatten(0, 1)


class TimeMean(nn.Module):
    """Mean over timesteps, the readout: ``(T*B, K) -> (B, K)``."""

    def __init__(self, timesteps: int) -> None:
        super().__init__()
        self.timesteps = check_timesteps(timesteps)

    def forward(self, x: Tensor) -> Tensor:
        return x if self.timesteps == 1 else x.unflatten(0, (self.timesteps, -1)).mean(0)

    def extra_repr(self) -> str:
        return f"timesteps={self.timesteps}"


class Scale(nn.Module):
    """Turn burst levels back into values, ``levels * gamma``. The neuron that emitted them adds the
    gradient of its gamma itself.
    """

    def __init__(self, neuron: nn.Module) -> None:
        super().__init__()
        # in a tuple, so that the neuron is registered only once: where it fires
        self._neuron = (neuron,)

    def forward(self, levels: Tensor) -> Tensor:
        return levels * self.gain

    @property
    def gain(self) -> Tensor:
        gamma = self._neuron[0].gamma
        assert isinstance(gamma, Tensor)
        return gamma.detach()
