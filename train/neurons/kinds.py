"""The kinds of neuron: LBQ, binary and ternary neurons, and the ReLUs of an ANN.

The levelled neurons differ in which parameters are learned, and in their
:class:`~train.neurons.recurrence.Quantizer`.
"""

from __future__ import annotations

from typing import Literal, Unpack

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lbq_hw.train.neurons.base import Neuron, Shared
from lbq_hw.train.neurons.checks import flag, integer, interval, real
from lbq_hw.train.neurons.recurrence import Quantizer


class LBQ(Neuron):
    """Learned burst quantization: levels 0..N with a step that is learned per layer.

    Sends ``gamma * (B(r) + stopgrad(S - B(r)))`` with ``r = U / gamma``, so that d out/dU is B'(r)
    and d out/dgamma is S - r*B'(r) at each timestep.

    ============  =============================================================================
    surrogate     "relsg": exponential tails of strength ``lam = sigmoid(eta)``; "box": none
    low, high     the interval of r on which B' is 1; ``high`` None stands for N
    learn_gamma   the step is learned (``rho``), or fixed at gamma0
    scale_step    the step's gradient is scaled as in :class:`QuantReLU`
    learn_lambda  the tail strength is learned (``eta``), or fixed at sigmoid(eta0)
    ============  =============================================================================
    """

    eta: Tensor

    def __init__(
        self,
        *,
        timesteps: int = 1,
        capacity: int = 5,
        surrogate: Literal["relsg", "box"] = "relsg",
        low: float = 1.0,
        high: float | None = None,
        learn_gamma: bool = True,
        scale_step: bool = False,
        learn_lambda: bool = True,
        eta0: float = 0.0,
        **shared: Unpack[Shared],
    ) -> None:
        if surrogate not in ("relsg", "box"):
            raise ValueError(f"surrogate must be 'relsg' or 'box', not {surrogate!r}")
        n = integer("capacity", capacity, 255)
        low, high = interval(low, float(n) if high is None else high)
        super().__init__(
            timesteps=timesteps,
            quantizer=Quantizer(capacity=n, surrogate=surrogate, low=low, high=high),
            learn_gamma=learn_gamma,
            scale_step=scale_step,
            **shared,
        )
        self.learn_lambda = flag("learn_lambda", learn_lambda)
        eta = torch.tensor(real("eta0", eta0))
        if surrogate == "relsg" and learn_lambda:
            self.eta = nn.Parameter(eta)
        elif surrogate == "relsg":
            self.register_buffer("eta", eta)

    @property
    def lam(self) -> Tensor | None:
        return self.eta.sigmoid() if self.quantizer.surrogate == "relsg" else None


class BinaryLIF(Neuron):
    """Leaky integrate-and-fire: a spike if U reaches the threshold gamma0, soft reset.

    The surrogate is the slope of an arctan; its sharpness is in units of the threshold.
    """

    def __init__(
        self, *, timesteps: int = 1, sharpness: float = 2.0, **shared: Unpack[Shared]
    ) -> None:
        sharpness = real("sharpness", sharpness, "above 0", lambda x: x > 0)
        quantizer = Quantizer(capacity=1, surrogate="arctan", sharpness=sharpness)
        super().__init__(timesteps=timesteps, quantizer=quantizer, **shared)


class Ternary(Neuron):
    """Levels -1, 0, 1: ``S = sign(U)`` where ``|U| >= gamma``, else 0; fixed or learned step.

    The surrogate is a box of slope 1 on ``low <= |r| <= high``. By default it is centred on the
    jump of the level, and its area is the height of the jump.
    """

    def __init__(
        self,
        *,
        timesteps: int = 1,
        learn_gamma: bool = False,
        scale_step: bool = False,
        low: float = 0.5,
        high: float = 1.5,
        **shared: Unpack[Shared],
    ) -> None:
        low = real("low", low, "at least 0", lambda x: x >= 0)
        high = real("high", high, f"above low = {low:g}", lambda x: x > low)
        super().__init__(
            timesteps=timesteps,
            quantizer=Quantizer(capacity=1, surrogate="box", low=low, high=high, signed=True),
            learn_gamma=learn_gamma,
            scale_step=scale_step,
            **shared,
        )


class QuantReLU(Neuron):
    """ReLU with N + 1 levels, as in a quantized ANN: LBQ at T = 1, without a state.

    Straight-through: slope 1 on ``low <= r <= high``, by default 0 to N, and 0 outside. The step's
    gradient is a sum over all F neurons of the layer. With ``scale_step`` it is multiplied by
    1 / sqrt(F * N), as in learned step size quantization (LSQ); without, the steps of a ResNet-20
    diverge.
    """

    stateful = False

    def __init__(
        self,
        *,
        timesteps: int = 1,
        capacity: int = 5,
        low: float = 0.0,
        high: float | None = None,
        learn_gamma: bool = True,
        scale_step: bool = True,
        gamma0: float = 1.0,
        eps: float = 1e-4,
    ) -> None:
        n = integer("capacity", capacity, 255)
        low, high = interval(low, float(n) if high is None else high)
        super().__init__(
            timesteps=timesteps,
            quantizer=Quantizer(capacity=n, surrogate="box", low=low, high=high),
            gamma0=gamma0,
            learn_gamma=learn_gamma,
            scale_step=scale_step,
            eps=eps,
            beta=0.0,
            alpha=0.0,
        )


class ReLU(nn.Module):
    """Plain ReLU with the attributes of a neuron, for an ANN. No levels: capacity 0, gamma 1."""

    capacity = 0
    beta = 0.0
    alpha = 0.0
    lam = None
    signed = False
    stateful = False
    gamma: Tensor

    def __init__(self, *, timesteps: int = 1) -> None:
        super().__init__()
        self.timesteps = integer("timesteps", timesteps)
        self.emit_levels = False
        self.register_buffer("gamma", torch.tensor(1.0), persistent=False)

    def forward(self, current: Tensor) -> Tensor:
        return F.relu(current)

    def extra_repr(self) -> str:
        return f"timesteps={self.timesteps}"
