"""Multi-level neurons of other papers, for comparison with LBQ; each computes as its authors' code.

Their step is fixed, and they are for training only: `trained_only` says what the chip cannot do.
As in the authors' code, the surrogate gradient of a level's jump is a box of slope 1.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor, nn

from lbq_hw.train.neurons.base import Neuron
from lbq_hw.train.neurons.checks import integer
from lbq_hw.train.neurons.recurrence import Quantizer


class Baseline(Neuron, ABC):
    """The base of these neurons: a fixed step, plain torch in at least fp32, and no state between
    calls.

    In a subclass, `levels` computes the levels for the currents of T timesteps.
    """

    streams = False

    def __init__(
        self, *, timesteps: int, capacity: int, low: float, high: float, gamma0: float, beta: float
    ) -> None:
        quantizer = Quantizer(capacity=capacity, surrogate="box", low=low, high=high)
        super().__init__(timesteps=timesteps, quantizer=quantizer, gamma0=gamma0, beta=beta)
        self.fused = False

    @abstractmethod
    def levels(self, currents: Tensor) -> list[Tensor]:
        """The levels of each timestep, of currents ``(T, B, ...)``."""

    def forward(self, current: Tensor) -> Tensor:
        self.check_steps(current)
        compute = torch.promote_types(current.dtype, torch.float32)
        out = torch.cat(self.levels(current.to(compute).unflatten(0, (self.timesteps, -1))))
        return (out if self.emit_levels else self.gamma * out).to(current.dtype)


class ILIF(Baseline):
    """Integer LIF (Luo et al., ECCV 2024, arXiv:2407.20708)::

        U[t] = beta * V[t-1] + I[t]
        S[t] = round(clip(U[t] / gamma, 0, N))      a half goes to the even level
        V[t] = U[t] - gamma * S[t]                  one step per level

    The slope is 1 on ``0 <= U / gamma <= N``; S is not differentiated in the reset.
    """

    trained_only = "its reset takes away as many steps as its level"

    def __init__(
        self, *, timesteps: int = 1, capacity: int = 5, gamma0: float = 1.0, beta: float = 0.25
    ) -> None:
        n = integer("capacity", capacity, 255)
        shared: dict[str, Any] = {"timesteps": timesteps, "gamma0": gamma0, "beta": beta}
        super().__init__(capacity=n, low=0.0, high=float(n), **shared)

    def levels(self, currents: Tensor) -> list[Tensor]:
        found: list[Tensor] = []
        v = torch.zeros_like(currents[0])
        for current in currents:
            u = self.beta * v + current
            r = u / self.gamma
            level = r.detach().clamp(0, self.capacity).round()
            found.append(_stand_in(r, level, (r >= 0) & (r <= self.capacity)))
            v = u - self.gamma * level
        return found


class MLF(Baseline):
    """Multi-level firing (Feng et al., IJCAI 2022): the summed spikes of N binary neurons, which
    share one current and have a membrane each. With ``k`` in 0..N-1::

        U_k[t] = beta * U_k[t-1] * (1 - S_k[t-1]) + I[t]        reset to zero
        S_k[t] = 1 where U_k[t] > (0.6 + k) * gamma
        S[t]   = sum of S_k[t]

    The slope is 1 within half a step of each threshold, and in the reset too.
    """

    trained_only = "it has a membrane for each level"
    FIRST = 0.6

    def __init__(
        self, *, timesteps: int = 1, capacity: int = 5, gamma0: float = 1.0, beta: float = 0.25
    ) -> None:
        n = integer("capacity", capacity, 255)
        shared: dict[str, Any] = {"timesteps": timesteps, "gamma0": gamma0, "beta": beta}
        super().__init__(capacity=n, low=self.FIRST - 0.5, high=self.FIRST + n - 0.5, **shared)

    def levels(self, currents: Tensor) -> list[Tensor]:
        each = torch.arange(self.capacity, dtype=currents.dtype, device=currents.device)
        threshold = (self.FIRST + each).reshape(-1, *[1] * (currents.dim() - 1))
        found: list[Tensor] = []
        u = spikes = torch.zeros_like(currents[:1])
        for current in currents:
            u = self.beta * u * (1 - spikes) + current
            r = u / self.gamma
            fires = (r > threshold).to(r.dtype)
            spikes = _stand_in(r, fires, (r - threshold).abs() < 0.5)
            found.append(spikes.sum(0))
        return found


class LMHT(Baseline):
    """Learnable multi-hierarchical thresholds (Hao et al., NeurIPS 2024)::

        U[t] = (sigmoid(leak) + 0.5) * V[t-1] + sum over j of 2/T * sigmoid(mixing[t, j]) * I[j]
        S[t] = clip(floor(U[t] / gamma), 0, N)
        V[t] = U[t] - gamma * S[t]                  one step per level

    `leak` and the T x T matrix `mixing` are learned. Both start at 0: then V does not decay, and
    every timestep sees the mean of all currents. The slope is 1 on ``0.5 <= U / gamma <= N + 0.5``,
    and V is not differentiated.
    """

    trained_only = "each of its timesteps sees the currents of all of them"

    def __init__(self, *, timesteps: int = 1, capacity: int = 5, gamma0: float = 1.0) -> None:
        n = integer("capacity", capacity, 255)
        super().__init__(
            timesteps=timesteps, capacity=n, low=0.5, high=n + 0.5, gamma0=gamma0, beta=1.0
        )
        self.leak = nn.Parameter(torch.tensor(0.0))
        self.mixing = nn.Parameter(torch.zeros(self.timesteps, self.timesteps))

    @property
    def beta(self) -> Tensor:
        return self.leak.sigmoid() + 0.5

    def levels(self, currents: Tensor) -> list[Tensor]:
        share = 2 / self.timesteps * self.mixing.sigmoid()
        found: list[Tensor] = []
        v = torch.zeros_like(currents[0])
        for row in share:  # a sum that torch.compile fuses; as a product of matrices it does not
            mixed = torch.stack([part * each for part, each in zip(row, currents, strict=True)])
            u = self.beta * v + mixed.sum(0)
            r = u / self.gamma
            level = r.detach().floor().clamp(0, self.capacity)
            found.append(_stand_in(r, level, (r >= 0.5) & (r <= self.capacity + 0.5)))
            v = (u - self.gamma * level).detach()
        return found


class _Level(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, _r: Tensor, level: Tensor, inside: Tensor) -> Tensor:
        ctx.save_for_backward(inside)
        return level.view_as(level)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor):
        (inside,) = ctx.saved_tensors
        return grad_outputs[0] * inside, None, None


def _stand_in(r: Tensor, level: Tensor, inside: Tensor) -> Tensor:
    """`level`, with a gradient by r of 1 where `inside` and of 0 elsewhere."""
    level = _Level.apply(r, level, inside)
    assert isinstance(level, Tensor)
    return level
