"""The datapath of one neuron unit with few registers."""

from dataclasses import dataclass
from functools import partial

from amaranth import Cat, Module, Mux

from lbq_hw.core.neurons.neuron_unit import (
    NeuronUnit,
    Positions,
    next_remainder,
    staged,
    turned,
    wrap,
)

__all__ = ["CompactPositions", "CompactUnit"]

PLANES_PER_STAGE = 2  # of the division, behind the first plane


@dataclass(frozen=True, kw_only=True)
class CompactPositions(Positions):
    """The positions of a `CompactUnit`, which does more work per cycle."""

    keeps: bool = True

    @property
    def acc(self) -> int:
        return 0

    @property
    def v(self) -> int:
        return 1

    @property
    def fire(self) -> int:
        return self.theta + self.keeps

    @property
    def end(self) -> int:
        return self.theta + 1 + self.planes // PLANES_PER_STAGE


class CompactUnit(NeuronUnit):
    """As `NeuronUnit`, with fewer registers: for a slow clock on an iCE40, whose cells are few.

    U and the first plane are computed in one cycle from ``bias`` and the shifted sum; the other
    planes follow two per cycle. Parameters are used directly as they come from their memory.

    Parameters
    ----------
    keeps : bool
        Whether membranes are stored for another timestep; otherwise ``next_v`` is U.
    """

    def __init__(self, *, keeps: bool = True, **sizes):
        self._keeps = keeps
        super().__init__(**sizes)

    def _make_positions(self, *, planes: int, decay_bits: int) -> CompactPositions:
        return CompactPositions(planes=planes, decay_bits=decay_bits, keeps=self._keeps)

    def elaborate(self, _platform):
        m = Module()
        width = len(self.v)
        later = partial(staged, m)
        current = wrap(later(self._shift(), "shifted") + self.bias, width)
        current = later(current, "current", self._positions.leak_stages)
        u, theta = wrap(self._leak(later) + current, width), self.theta[:-1]
        capped = self._cap(later(self._divide(later, u, theta), "level"))
        m.d.comb += [
            self.next_v.eq(self._kept(m, later, u, theta)),
            self.level.eq(Mux(self.pooled > capped, self.pooled, capped)),
        ]
        return m

    def _kept(self, m, later, u, theta):
        """Compute ``next_v``."""
        if not self._keeps:
            return u
        return self._reset(m, later, later(u, "u"), later(theta, "theta"))

    def _divide(self, later, u, theta):
        """As in `NeuronUnit`, but two planes per cycle after the first."""
        planes = len(self.level)
        rest, top = u[: planes - 1], u[planes - 1 :].as_signed()
        remainder = wrap(top - theta, len(u) + 1)
        bits = Cat(~remainder[-1])
        for i, plane in enumerate(reversed(range(planes - 1))):
            operand = turned(theta, bits[0])
            if i % PLANES_PER_STAGE == 0:
                remainder, rest = later(remainder, "remainder"), later(rest, "rest")
                # theta is registered after its inversion: on an iCE40 the LUT and the flip-flop
                # then share one cell.
                operand, bits = later(operand, "operand"), later(bits, "bits")
                theta = turned(operand, bits[0])
            remainder = next_remainder(remainder, rest[plane], operand, bits[0])
            bits = Cat(~remainder[-1], bits)
        return bits
