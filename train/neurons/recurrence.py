"""The definition of every levelled neuron, in plain torch; the kernels must give equal results.

One recurrence over T timesteps, from ``V = 0`` at each call::

    U[t] = beta * V[t-1] + I[t]                 never clamped
    S[t] = level of U[t] / gamma                an integer in 0..N (-N..N where signed)
    V[t] = U[t] - alpha * gamma * sign(S[t])    ONE step, whatever the level

A :class:`Quantizer` computes the level and its surrogate derivative. Gradients flow through V over
time; ``sign(S)`` is not differentiated.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

Surrogate = Literal["relsg", "box", "arctan"]


@dataclass(frozen=True, kw_only=True)
class Quantizer:
    """Maps ``r = U / gamma`` to an integer level, with the slope of a curve B(r) as its surrogate.

    ========  ==================================================================================
    relsg     B' = 1 on ``low <= r <= high``, ``lam * exp(-distance)`` outside (ReLSG-ET)
    box       B' = 1 on ``low <= r <= high`` (``|r|`` where signed), 0 outside
    arctan    B' = a/2 / (1 + (pi/2 * a * (r - 1))^2), with a the ``sharpness``
    ========  ==================================================================================
    """

    capacity: int
    surrogate: Surrogate
    low: float = 1.0
    high: float = 1.0
    sharpness: float = 2.0
    signed: bool = False

    @property
    def options(self) -> tuple[int, bool, Surrogate, float, float, float]:
        """All fields, in the order of the kernels' arguments."""
        return self.capacity, self.signed, self.surrogate, self.low, self.high, self.sharpness

    def level(self, r: Tensor) -> Tensor:
        """``clip(floor(r), 0, N)``; where signed, the same of ``|r|`` with the sign of r."""
        return r.trunc().clamp(-self.capacity if self.signed else 0, self.capacity)

    def slopes(self, r: Tensor, lam: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """dB/dr, the surrogate of the level's derivative, and dB/dlam (ReLSG-ET only)."""
        if self.surrogate == "arctan":
            x = (math.pi / 2 * self.sharpness) * (r - 1.0)
            return (self.sharpness / 2) / (1.0 + x * x), None
        if self.surrogate == "box":
            size = r.abs() if self.signed else r
            return ((size >= self.low) & (size <= self.high)).to(r.dtype), None
        assert lam is not None
        beyond = r - r.clamp(self.low, self.high)
        fall = beyond.abs().neg().exp()  # the exponent is at most 0, so it cannot overflow
        return (lam * fall).masked_fill(beyond == 0, 1.0), (1.0 - fall).copysign(beyond)


class _Level(torch.autograd.Function):
    """S of (U, gamma, lam) as a stand-in for ``gamma * S``, to be multiplied by a gamma whose
    gradient is stopped: dS/dU = B'(r)/gamma, dS/dgamma = (S - r*B'(r))/gamma, dS/dlam = dB/dlam.
    """

    @staticmethod
    def forward(ctx: Any, u: Tensor, gamma: Tensor, lam: Tensor | None, quantizer: Quantizer):
        r = u / gamma
        ctx.save_for_backward(r, gamma, lam)
        ctx.quantizer = quantizer
        return quantizer.level(r)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor):
        (grad,) = grad_outputs
        r, gamma, lam = ctx.saved_tensors
        by_r, by_lam = ctx.quantizer.slopes(r, lam)
        grad_u = grad * by_r / gamma
        grad_gamma = None
        if ctx.needs_input_grad[1]:
            grad_gamma = (grad * ctx.quantizer.level(r) / gamma - grad_u * r).sum()
        grad_lam = None if by_lam is None else (grad * by_lam).sum()
        return grad_u, grad_gamma, grad_lam, None


def recurrence(
    current: Tensor,
    gamma: Tensor,
    lam: Tensor | None,
    *,
    timesteps: int,
    beta: float | Tensor,
    alpha: float | Tensor,
    quantizer: Quantizer,
    emit_levels: bool,
) -> Tensor:
    """The definition of every levelled neuron: plain torch, at least fp32 inside; keeps dtype."""
    out, _ = continued(
        current,
        None,
        gamma,
        lam,
        timesteps=timesteps,
        beta=beta,
        alpha=alpha,
        quantizer=quantizer,
        emit_levels=emit_levels,
    )
    return out


def continued(
    current: Tensor,
    v: Tensor | None,
    gamma: Tensor,
    lam: Tensor | None,
    *,
    timesteps: int,
    beta: float | Tensor,
    alpha: float | Tensor,
    quantizer: Quantizer,
    emit_levels: bool,
) -> tuple[Tensor, Callable[[], Tensor]]:
    """As :func:`recurrence`, but from the membrane ``v`` of earlier timesteps, None for 0. Also
    returns a function that computes the final membrane.
    """
    compute = torch.promote_types(current.dtype, torch.float32)
    gamma, lam = gamma.to(compute), None if lam is None else lam.to(compute)
    levels: list[Tensor] = []
    u = current
    for step in current.to(compute).chunk(timesteps):
        if levels:
            v = u - alpha * gamma * levels[-1].detach().sign()
        u = step if v is None else beta * v + step
        level = _Level.apply(u, gamma, lam, quantizer)
        assert isinstance(level, Tensor)
        levels.append(level)
    out = levels[0] if timesteps == 1 else torch.cat(levels)
    sent = (out if emit_levels else gamma.detach() * out).to(current.dtype)
    return sent, lambda: u - alpha * gamma * levels[-1].detach().sign()
