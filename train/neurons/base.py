"""The levelled neuron as a module; each kind is a subclass.

CUDA tensors use the fused kernels of :mod:`train.kernels.recurrence` if these cover the case.
Everything else uses the plain torch of :mod:`train.neurons.recurrence`, which defines the result.
"""

from __future__ import annotations

import math
from typing import Any, TypedDict

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from lbq_hw.train.kernels import continued as long_kernels
from lbq_hw.train.kernels import recurrence as kernels
from lbq_hw.train.neurons.checks import flag, integer, real
from lbq_hw.train.neurons.recurrence import Quantizer, continued, recurrence


class Shared(TypedDict, total=False):
    """Options that every neuron with a state has."""

    gamma0: float
    eps: float
    beta: float
    learn_beta: bool
    alpha: float
    learn_alpha: bool


class Neuron(nn.Module):
    """The base of the levelled neurons: their parameters, and the call of :func:`recurrence`.

    ============= ============================================================================
    timesteps T capacity N, the largest level gamma the step: ``softplus(rho) + eps`` where learned,
    else the buffer ``step`` beta the decay, in 0..1: ``sigmoid(beta_logit)`` where learned, else a
    float alpha the reset factor: ``softplus(alpha_rho)`` where learned, else a float lam tail
    strength ``sigmoid(eta)`` of the ReLSG-ET surrogate, else None signed levels go down to -N
    threshold what U must reach for the first level: gamma, except in imported neurons to_zero a
    spike leaves nothing of the membrane strict U must pass the threshold, not just reach it late
    the reset is subtracted after the next leak: alpha is 1 / beta stateful False: no membrane is
    carried from one timestep to the next scale_step the gradient of a learned gamma is scaled, see
    :meth:`step_for` emit_levels send S, for consumers that multiply by ``gamma.detach()``, not
    gamma * S fused False: plain torch on every device streams it can keep its state between calls
    keeps_state each call continues from the membrane of the previous call v this membrane, None if
    there is none; set it to None to start from 0 trained_only why the chip cannot run it; empty if
    it can =============
    ============================================================================
    """

    stateful: bool = True
    streams: bool = True
    to_zero: bool = False
    strict: bool = False
    late: bool = False
    trained_only: str = ""
    step: Tensor

    def __init__(
        self,
        *,
        timesteps: int,
        quantizer: Quantizer,
        gamma0: float = 1.0,
        learn_gamma: bool = False,
        scale_step: bool = False,
        eps: float = 1e-4,
        beta: float = 0.5,
        learn_beta: bool = False,
        alpha: float = 1.0,
        learn_alpha: bool = False,
    ) -> None:
        super().__init__()
        self.timesteps = integer("timesteps", timesteps)
        self.quantizer = quantizer
        self.emit_levels = False
        self.fused = True
        self.keeps_state = False
        self.v: Tensor | None = None

        self.eps = real("eps", eps, "at least 0", lambda x: x >= 0)
        gamma0 = real("gamma0", gamma0, f"above eps = {self.eps:g}", lambda x: x > self.eps)
        self.learn_gamma = flag("learn_gamma", learn_gamma)
        self.scale_step = flag("scale_step", scale_step)
        if learn_gamma:
            self.rho = nn.Parameter(torch.tensor(softplus_inverse(gamma0 - self.eps)))
        else:
            self.register_buffer("step", torch.tensor(gamma0))

        self.learn_beta = flag("learn_beta", learn_beta)
        if learn_beta:
            self._beta = real("beta", beta, "above 0 and below 1", lambda x: 0 < x < 1)
            self.beta_logit = nn.Parameter(torch.tensor(math.log(beta / (1 - beta))))
        else:
            self._beta = real("beta", beta, "in 0..1", lambda x: 0 <= x <= 1)

        self.learn_alpha = flag("learn_alpha", learn_alpha)
        if learn_alpha:
            self._alpha = real("alpha", alpha, "above 0", lambda x: x > 0)
            self.alpha_rho = nn.Parameter(torch.tensor(softplus_inverse(alpha)))
        else:
            self._alpha = real("alpha", alpha, "at least 0", lambda x: x >= 0)

    @property
    def capacity(self) -> int:
        return self.quantizer.capacity

    @property
    def signed(self) -> bool:
        return self.quantizer.signed

    @property
    def gamma(self) -> Tensor:
        return F.softplus(self.rho) + self.eps if self.learn_gamma else self.step

    @property
    def threshold(self) -> Tensor:
        return self.gamma

    def rules(self, _unit: NDArray[np.float64]) -> dict[str, Any]:
        """Fields of the integer neuron for rules other than the soft reset, see
        `lbq_hw.network.neuron`. `unit` is the number of membrane steps per unit of the current, per
        channel.
        """
        return {"to_zero": True} if self.to_zero else {}

    def step_for(self, current: Tensor) -> Tensor:
        """gamma; with `scale_step`, its gradient is over sqrt(F * N) for F neurons per image."""
        gamma = self.gamma
        if not (self.scale_step and self.learn_gamma):
            return gamma
        features = current.numel() // current.shape[0]
        fixed = gamma.detach()
        return fixed + (features * self.capacity) ** -0.5 * (gamma - fixed)

    @property
    def beta(self) -> float | Tensor:
        return self.beta_logit.sigmoid() if self.learn_beta else self._beta

    @property
    def alpha(self) -> float | Tensor:
        return F.softplus(self.alpha_rho) if self.learn_alpha else self._alpha

    @property
    def lam(self) -> Tensor | None:
        return None

    def check_steps(self, current: Tensor) -> None:
        """Refuse a current whose first size is not a multiple of the timesteps."""
        if current.shape[0] % self.timesteps:
            raise ValueError(
                f"current must have a first size divisible by timesteps = {self.timesteps},"
                f" not {current.shape[0]}"
            )

    def __getstate__(self) -> dict[str, Any]:
        """A copy has no membrane, because a membrane may hold on to an autograd graph."""
        return self.__dict__ | {"v": None}

    def forward(self, current: Tensor) -> Tensor:
        self.check_steps(current)
        options: dict[str, Any] = {
            "timesteps": self.timesteps if self.stateful else 1,
            "beta": self.beta,
            "alpha": self.alpha,
            "quantizer": self.quantizer,
            "emit_levels": self.emit_levels,
        }
        fixed = not (self.learn_beta or self.learn_alpha)
        by_kernels = self.fused and fixed and kernels.available(current)
        step = self.step_for(current)
        if self.keeps_state and self.stateful:
            self._check_state(current)
            if by_kernels:
                out, self.v = long_kernels.continued(current, self.v, step, self.lam, **options)
            else:
                out, leave = continued(current, self.v, step, self.lam, **options)
                self.v = leave()
            return out
        if not by_kernels:
            return recurrence(current, step, self.lam, **options)
        if options["timesteps"] > kernels.MAX_TIMESTEPS:
            return long_kernels.continued(current, None, step, self.lam, **options)[0]
        return kernels.recurrence(current, step, self.lam, **options)

    def _check_state(self, current: Tensor) -> None:
        shape = current.shape[0] // self.timesteps, *current.shape[1:]
        if self.v is not None and tuple(self.v.shape) != tuple(shape):
            raise ValueError(
                f"current must have the shape {tuple(self.v.shape)} per timestep that the state "
                f"has, not {tuple(shape)}: call reset_state before other images"
            )

    def extra_repr(self) -> str:
        learned = ", ".join(name for name, _ in self.named_parameters()) or "nothing"
        return (
            f"timesteps={self.timesteps}, capacity={self.capacity},"
            f" surrogate={self.quantizer.surrogate!r}, learned: {learned}"
        )


def softplus_inverse(y: float) -> float:
    """The number whose softplus is y."""
    return y + math.log(-math.expm1(-y))
