"""Spiking neurons, and the ReLUs they are compared with, as interchangeable modules.

All levelled neurons share one recurrence over T timesteps, from ``V = 0`` at each call::

    U[t] = beta * V[t-1] + I[t]                 never clamped
    S[t] = level of U[t] / gamma                an integer in 0..N (-N..N where signed)
    V[t] = U[t] - alpha * gamma * sign(S[t])    ONE step, whatever the level

and differ in the :class:`Quantizer` that makes the level and stands in for its derivative, and in
what is learned. Gradients flow through V over time; ``sign(S)`` is not differentiated.

Inputs and outputs are ``(T*B, ...)``, time outermost (see :mod:`train.layers`). A neuron sends
``gamma * S``, or S itself where ``emit_levels`` is set: integers are exact in bf16, ``gamma * S``
is not, so consumers that multiply gamma into their weights train what is deployed. They multiply by
``gamma.detach()``: the neuron itself adds what they would find, which for everything that sees S
only through ``gamma * S`` is ``sum(S * dL/dS) / gamma``, one sum instead of one a consumer.

CUDA tensors take the fused kernels of :mod:`train.kernels` where these cover the case; everything
else takes the plain torch below, which defines the result.
"""

from __future__ import annotations

import difflib
import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypedDict, Unpack

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from train import kernels

Surrogate = Literal["relsg", "box", "arctan"]


@dataclass(frozen=True, kw_only=True)
class Quantizer:
    """``r = U / gamma`` to an integer level, and a curve B(r) whose slope stands in for its own.

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

    def level(self, r: Tensor) -> Tensor:
        """``clip(floor(r), 0, N)``; where signed, the same of ``|r|`` with the sign of r."""
        return r.trunc().clamp(-self.capacity if self.signed else 0, self.capacity)

    def slopes(self, r: Tensor, lam: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """dB/dr, which stands in for the derivative of the level, and dB/dlam (ReLSG-ET only)."""
        if self.surrogate == "arctan":
            x = (math.pi / 2 * self.sharpness) * (r - 1.0)
            return (self.sharpness / 2) / (1.0 + x * x), None
        if self.surrogate == "box":
            size = r.abs() if self.signed else r
            return ((size >= self.low) & (size <= self.high)).to(r.dtype), None
        assert lam is not None
        beyond = r - r.clamp(self.low, self.high)
        fall = beyond.abs().neg().exp()  # of a number that is never above 0: no overflow
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
    compute = torch.promote_types(current.dtype, torch.float32)
    gamma, lam = gamma.to(compute), None if lam is None else lam.to(compute)
    levels: list[Tensor] = []
    u = current
    for step in current.to(compute).chunk(timesteps):
        u = beta * (u - alpha * gamma * levels[-1].detach().sign()) + step if levels else step
        level = _Level.apply(u, gamma, lam, quantizer)
        assert isinstance(level, Tensor)
        levels.append(level)
    out = levels[0] if timesteps == 1 else torch.cat(levels)
    return (out if emit_levels else gamma.detach() * out).to(current.dtype)


class Shared(TypedDict, total=False):
    """Options that every neuron with a state has."""

    gamma0: float
    eps: float
    beta: float
    learn_beta: bool
    alpha: float
    learn_alpha: bool


class Neuron(nn.Module):
    """What the levelled neurons share: their parameters, and the way to :func:`recurrence`.

    =============  ============================================================================
    timesteps      T
    capacity       N, the largest level
    gamma          the step: ``softplus(rho) + eps`` where learned, else the buffer ``step``
    beta           the decay, in 0..1: ``sigmoid(beta_logit)`` where learned, else a float
    alpha          the reset factor: ``softplus(alpha_rho)`` where learned, else a float
    lam            tail strength ``sigmoid(eta)`` of the ReLSG-ET surrogate, else None
    signed         levels go down to -N
    stateful       False: each timestep is seen alone
    scale_step     the gradient of gamma is scaled, see :meth:`step_for`
    emit_levels    send S, for consumers that multiply by ``gamma.detach()``, not gamma * S
    fused          False: plain torch on every device
    =============  ============================================================================
    """

    stateful: bool = True
    scale_step: bool = False
    step: Tensor

    def __init__(
        self,
        *,
        timesteps: int,
        quantizer: Quantizer,
        gamma0: float = 1.0,
        learn_gamma: bool = False,
        eps: float = 1e-4,
        beta: float = 0.5,
        learn_beta: bool = False,
        alpha: float = 1.0,
        learn_alpha: bool = False,
    ) -> None:
        super().__init__()
        self.timesteps = _integer("timesteps", timesteps)
        self.quantizer = quantizer
        self.emit_levels = False
        self.fused = True

        self.eps = _real("eps", eps, "at least 0", lambda x: x >= 0)
        gamma0 = _real("gamma0", gamma0, f"above eps = {self.eps:g}", lambda x: x > self.eps)
        self.learn_gamma = _flag("learn_gamma", learn_gamma)
        if learn_gamma:
            self.rho = nn.Parameter(torch.tensor(_softplus_inverse(gamma0 - self.eps)))
        else:
            self.register_buffer("step", torch.tensor(gamma0))

        self.learn_beta = _flag("learn_beta", learn_beta)
        if learn_beta:
            self._beta = _real("beta", beta, "above 0 and below 1", lambda x: 0 < x < 1)
            self.beta_logit = nn.Parameter(torch.tensor(math.log(beta / (1 - beta))))
        else:
            self._beta = _real("beta", beta, "in 0..1", lambda x: 0 <= x <= 1)

        self.learn_alpha = _flag("learn_alpha", learn_alpha)
        if learn_alpha:
            self._alpha = _real("alpha", alpha, "above 0", lambda x: x > 0)
            self.alpha_rho = nn.Parameter(torch.tensor(_softplus_inverse(alpha)))
        else:
            self._alpha = _real("alpha", alpha, "at least 0", lambda x: x >= 0)

    @property
    def capacity(self) -> int:
        return self.quantizer.capacity

    @property
    def signed(self) -> bool:
        return self.quantizer.signed

    @property
    def gamma(self) -> Tensor:
        return F.softplus(self.rho) + self.eps if self.learn_gamma else self.step

    def step_for(self, current: Tensor) -> Tensor:
        """gamma; where `scale_step`, with its gradient over sqrt(F * N), of F neurons an image."""
        gamma = self.gamma
        if not self.scale_step:
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

    def forward(self, current: Tensor) -> Tensor:
        if current.shape[0] % self.timesteps:
            raise ValueError(
                f"current must have a first size divisible by timesteps = {self.timesteps},"
                f" not {current.shape[0]}"
            )
        options: dict[str, Any] = {
            "timesteps": self.timesteps if self.stateful else 1,
            "beta": self.beta,
            "alpha": self.alpha,
            "quantizer": self.quantizer,
            "emit_levels": self.emit_levels,
        }
        fixed = not (self.learn_beta or self.learn_alpha)
        if self.fused and fixed and kernels.available(current, options["timesteps"]):
            return kernels.recurrence(current, self.step_for(current), self.lam, **options)
        return recurrence(current, self.step_for(current), self.lam, **options)

    def extra_repr(self) -> str:
        learned = ", ".join(name for name, _ in self.named_parameters()) or "nothing"
        return (
            f"timesteps={self.timesteps}, capacity={self.capacity},"
            f" surrogate={self.quantizer.surrogate!r}, learned: {learned}"
        )


class LBQ(Neuron):
    """Learned burst quantization: levels 0..N of a step that is learned per layer.

    Sends ``gamma * (B(r) + stopgrad(S - B(r)))`` with ``r = U / gamma``, so that d out/dU is B'(r)
    and d out/dgamma is S - r*B'(r) at each timestep.

    ============  =============================================================================
    surrogate     "relsg": exponential tails of strength ``lam = sigmoid(eta)``; "box": none
    learn_gamma   the step is learned (``rho``), or fixed at gamma0
    learn_lambda  the tail strength is learned (``eta``), or fixed at sigmoid(eta0)
    ============  =============================================================================
    """

    eta: Tensor

    def __init__(
        self,
        *,
        timesteps: int,
        capacity: int,
        surrogate: Literal["relsg", "box"] = "relsg",
        learn_gamma: bool = True,
        learn_lambda: bool = True,
        eta0: float = 0.0,
        **shared: Unpack[Shared],
    ) -> None:
        if surrogate not in ("relsg", "box"):
            raise ValueError(f"surrogate must be 'relsg' or 'box', not {surrogate!r}")
        n = _integer("capacity", capacity, 255)
        quantizer = Quantizer(capacity=n, surrogate=surrogate, high=float(n))
        super().__init__(
            timesteps=timesteps, quantizer=quantizer, learn_gamma=learn_gamma, **shared
        )
        self.learn_lambda = _flag("learn_lambda", learn_lambda)
        eta = torch.tensor(_real("eta0", eta0))
        if surrogate == "relsg" and learn_lambda:
            self.eta = nn.Parameter(eta)
        elif surrogate == "relsg":
            self.register_buffer("eta", eta)

    @property
    def lam(self) -> Tensor | None:
        return self.eta.sigmoid() if self.quantizer.surrogate == "relsg" else None


class BinaryLIF(Neuron):
    """Leaky integrate-and-fire: one spike where U reaches the threshold gamma0, soft reset.

    The surrogate is an arctan's slope, its sharpness in units of the threshold.
    """

    def __init__(self, *, timesteps: int, sharpness: float = 2.0, **shared: Unpack[Shared]) -> None:
        sharpness = _real("sharpness", sharpness, "above 0", lambda x: x > 0)
        quantizer = Quantizer(capacity=1, surrogate="arctan", sharpness=sharpness)
        super().__init__(timesteps=timesteps, quantizer=quantizer, **shared)


class Ternary(Neuron):
    """Levels -1, 0, 1: ``S = sign(U)`` where ``|U| >= gamma``, else 0; fixed or learned step.

    The surrogate is a box of slope 1 on ``low <= |r| <= high``. By default it is centred on the
    jump that it stands for, and has that jump's area.
    """

    def __init__(
        self,
        *,
        timesteps: int,
        learn_gamma: bool = False,
        low: float = 0.5,
        high: float = 1.5,
        **shared: Unpack[Shared],
    ) -> None:
        low = _real("low", low, "at least 0", lambda x: x >= 0)
        high = _real("high", high, f"above low = {low:g}", lambda x: x > low)
        quantizer = Quantizer(capacity=1, surrogate="box", low=low, high=high, signed=True)
        super().__init__(
            timesteps=timesteps, quantizer=quantizer, learn_gamma=learn_gamma, **shared
        )


class QuantReLU(Neuron):
    """ReLU of N + 1 levels, the quantized ANN: what LBQ sends at T = 1, with no state.

    Straight-through: slope 1 on ``0 <= r <= N``, 0 outside. The step's gradient is a sum over all
    F neurons of the layer and is scaled by 1 / sqrt(F * N), as in learned step size quantization
    (LSQ): unscaled, the steps of a ResNet-20 diverge.
    """

    stateful = False
    scale_step = True

    def __init__(
        self,
        *,
        timesteps: int,
        capacity: int,
        learn_gamma: bool = True,
        gamma0: float = 1.0,
        eps: float = 1e-4,
    ) -> None:
        n = _integer("capacity", capacity, 255)
        super().__init__(
            timesteps=timesteps,
            quantizer=Quantizer(capacity=n, surrogate="box", low=0.0, high=float(n)),
            gamma0=gamma0,
            learn_gamma=learn_gamma,
            eps=eps,
            beta=0.0,
            alpha=0.0,
        )


class ReLU(nn.Module):
    """Plain ReLU with a neuron's attributes, the ANN. It has no levels: capacity 0, gamma 1."""

    capacity = 0
    beta = 0.0
    alpha = 0.0
    lam = None
    signed = False
    stateful = False
    gamma: Tensor

    def __init__(self, *, timesteps: int) -> None:
        super().__init__()
        self.timesteps = _integer("timesteps", timesteps)
        self.emit_levels = False
        self.register_buffer("gamma", torch.tensor(1.0), persistent=False)

    def forward(self, current: Tensor) -> Tensor:
        return F.relu(current)

    def extra_repr(self) -> str:
        return f"timesteps={self.timesteps}"


KINDS: dict[str, Callable[..., nn.Module]] = {
    "lbq": LBQ,
    "burst": partial(LBQ, learn_gamma=False),
    "binary": BinaryLIF,
    "ternary": Ternary,
    "relu": ReLU,
    "quant-relu": QuantReLU,
}


def options(kind: str) -> list[str]:
    """The names of the options that ``build`` takes for this kind."""
    if kind not in KINDS:
        near = difflib.get_close_matches(str(kind), KINDS, 1, 0.0)[0]
        raise ValueError(f"kind must be one of {', '.join(KINDS)} (nearest: {near}), not {kind!r}")
    names = [*inspect.signature(KINDS[kind]).parameters]
    if "shared" in names:
        names += Shared.__annotations__
    return [name for name in names if name not in ("timesteps", "capacity", "shared")]


def build(kind: str, *, timesteps: int, capacity: int, **chosen: Any) -> nn.Module:
    """The neuron called ``kind``, with options of :func:`options`.

    Only "lbq", "burst" (LBQ of a fixed step) and "quant-relu" have a capacity to choose: the binary
    and the ternary neuron have 1 and "relu" has none, whatever is asked.
    """
    known = options(kind)
    for name in chosen:
        if name not in known:
            raise TypeError(
                f"option of a {kind!r} neuron must be one of {', '.join(known) or 'none'},"
                f" not {name!r}"
            )
    if kind in ("lbq", "burst", "quant-relu"):
        chosen["capacity"] = capacity
    return KINDS[kind](timesteps=timesteps, **chosen)


def _softplus_inverse(y: float) -> float:
    return y + math.log(-math.expm1(-y))


def _flag(name: str, value: bool) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be a boolean, not {value!r}")
    return value


def _integer(name: str, value: int, most: int | None = None) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} must be an integer, not {value!r}")
    if value < 1 or (most is not None and value > most):
        raise ValueError(
            f"{name} must be {'at least 1' if most is None else f'in 1..{most}'}, not {value!r}"
        )
    return value


def _real(
    name: str, value: float, must: str = "finite", holds: Callable[[float], bool] = math.isfinite
) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError(f"{name} must be a number, not {value!r}")
    if not (math.isfinite(value) and holds(value)):
        raise ValueError(f"{name} must be {must}, not {value!r}")
    return float(value)
