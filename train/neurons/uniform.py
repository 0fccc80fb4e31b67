"""The activation of quantized ANNs: ReLU, rounded to a uniform grid.

It is for networks that were trained elsewhere, so it has no surrogate gradient.
"""

from __future__ import annotations

from torch import Tensor

from lbq_hw.train.neurons.base import Neuron
from lbq_hw.train.neurons.checks import integer, real
from lbq_hw.train.neurons.recurrence import Quantizer


class UniformReLU(Neuron):
    """``step * clip(round(I / step), 0, N)``, ties to even, for evaluation at T = 1 only.

    A burst neuron rounds down, so the integer network adds half a step to the current. The two then
    differ only in ties, which the integer network rounds up. With ``offset`` 0, this ReLU rounds
    down itself.
    """

    stateful = False
    streams = False

    def __init__(self, *, step: float, capacity: int, offset: float = 0.5) -> None:
        super().__init__(
            timesteps=1,
            quantizer=Quantizer(capacity=integer("capacity", capacity, 255), surrogate="box"),
            gamma0=real("step", step, "above 0", lambda x: x > 0),
            eps=0.0,
            beta=0.0,
        )
        self.offset = real("offset", offset, "0 or 0.5", lambda x: x in (0.0, 0.5))

    def forward(self, current: Tensor) -> Tensor:
        ratio = current / self.step
        levels = (ratio.round() if self.offset else ratio.floor()).clamp(0, self.capacity)
        return levels if self.emit_levels else levels * self.step

    def ties(self, current: Tensor) -> int:
        """Number of currents halfway between two levels for which the even level is the lower one;
        there the integer network rounds up.
        """
        ratio = current / self.step
        low = ratio.floor()
        within = (low >= 0) & (low < self.capacity) & (low % 2 == 0)
        return int(((ratio - low == self.offset) & within & (self.offset > 0)).sum())

    def extra_repr(self) -> str:
        rounding = "to nearest" if self.offset else "down"
        return f"step={self.step.item():g}, capacity={self.capacity}, rounds {rounding}"
