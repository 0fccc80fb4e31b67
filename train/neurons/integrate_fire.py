"""The neuron of other frameworks: binary spikes, a threshold to reach or to pass, either reset.

It is for networks that were trained elsewhere, so it has no surrogate gradient.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lbq_hw import numeric
from lbq_hw.network import limits
from lbq_hw.train.neurons.base import Neuron
from lbq_hw.train.neurons.checks import flag
from lbq_hw.train.neurons.recurrence import Quantizer


class IntegrateFire(Neuron):
    """(Leaky) integrate-and-fire with levels 0 and 1, for evaluation only::

        U[t] = beta * V[t-1] + I[t]
        S[t] = 1 where U[t] >= threshold, or U[t] > threshold where `strict`
        V[t] = U[t] - alpha * threshold * S[t], or 0 after a spike where `to_zero`
        V[t] = max(V[t], floor) where there is a `floor`

    With `late`, the threshold is subtracted after the leak, from the next U; this is the same as
    `alpha` = 1 / beta. A spike counts 1 for any threshold. Threshold and floor are one number each,
    or one per channel.

    ==========  ===============================================================================
    threshold   above 0
    to_zero     a spike sets V to 0; else `alpha` times the threshold is subtracted
    strict      the membrane must pass the threshold, not just reach it
    late        the threshold is subtracted in the next timestep
    floor       V is clamped to at least this, which is at most 0; None: no clamp
    ==========  ===============================================================================
    """

    streams = False
    limit: Tensor
    floor: Tensor | None

    def __init__(
        self,
        *,
        timesteps: int = 1,
        threshold: float | Sequence[float] = 1.0,
        beta: float = 1.0,
        alpha: float = 1.0,
        to_zero: bool = False,
        strict: bool = False,
        late: bool = False,
        floor: float | Sequence[float] | None = None,
    ) -> None:
        if flag("late", late):
            if to_zero or alpha != 1.0 or not beta > 0 or floor is not None:
                raise ValueError(
                    "late must be False with to_zero, an alpha, a beta of 0 or a floor"
                )
            alpha = 1 / beta
        quantizer = Quantizer(capacity=1, surrogate="box")
        super().__init__(timesteps=timesteps, quantizer=quantizer, beta=beta, alpha=alpha)
        limit = torch.as_tensor(threshold, dtype=torch.float64)
        if limit.dim() > 1 or not bool((torch.isfinite(limit) & (limit > 0)).all()):
            raise ValueError(
                f"threshold must be a number above 0, or one per channel, not {threshold!r}"
            )
        self.register_buffer("limit", limit)
        least = None if floor is None else torch.as_tensor(floor, dtype=torch.float64)
        if least is not None and (least.dim() > 1 or not bool((least <= 0).all())):
            raise ValueError(
                f"floor must be a number of at most 0, or one per channel, not {floor!r}"
            )
        self.register_buffer("floor", least)
        self.to_zero = flag("to_zero", to_zero)
        self.strict = flag("strict", strict)
        self.late = late

    @property
    def threshold(self) -> Tensor:
        return self.limit

    def rules(self, unit: NDArray[np.float64]) -> dict[str, Any]:
        if self.floor is None:
            return super().rules(unit)
        steps = np.maximum(unit * self.floor.cpu().numpy(), -limits.MAX_PARAMETER)
        return super().rules(unit) | {"floor": numeric.to_integer(steps)}

    def forward(self, current: Tensor) -> Tensor:
        self.check_steps(current)
        limit = _channels(self.limit, current)
        least = None if self.floor is None else _channels(self.floor, current)
        v = owed = torch.zeros((), dtype=limit.dtype, device=current.device)
        spikes = []
        for step in current.to(limit.dtype).chunk(self.timesteps):
            u = self.beta * v + step - owed
            fires = u > limit if self.strict else u >= limit
            if self.late:
                v, owed = u, limit * fires
            else:
                v = u.masked_fill(fires, 0.0) if self.to_zero else u - self.alpha * limit * fires
            if least is not None:
                v = torch.maximum(v, least)
            spikes.append(fires)
        return torch.cat(spikes).to(current.dtype)

    def extra_repr(self) -> str:
        reset = "to zero" if self.to_zero else f"by {self.alpha:g} thresholds" + " late" * self.late
        floor = "" if self.floor is None else f", floor={self.floor.tolist()}"
        return f"timesteps={self.timesteps}, beta={self.beta:g}, reset {reset}{floor}"


def _channels(values: Tensor, current: Tensor) -> Tensor:
    """One number, or one per channel, in the type of a current and beside its channels."""
    values = values.to(torch.promote_types(current.dtype, torch.float32))
    return values.reshape(-1, *[1] * (current.dim() - 2)) if values.dim() else values


@dataclass(frozen=True, kw_only=True)
class Spiking:
    """A neuron of another framework: an `IntegrateFire` without its number of timesteps."""

    threshold: float | Sequence[float]
    beta: float = 1.0
    alpha: float = 1.0
    to_zero: bool = False
    strict: bool = False
    late: bool = False
    floor: float | Sequence[float] | None = None

    def build(self, timesteps: int) -> IntegrateFire:
        return IntegrateFire(timesteps=timesteps, **vars(self))
