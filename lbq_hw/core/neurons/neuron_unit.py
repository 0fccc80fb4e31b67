"""The datapath of one neuron unit: current, leak, threshold, reset, level."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from amaranth import Cat, Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from lbq_hw.core.fabric.registers import delayed
from lbq_hw.core.neurons.rules import apply_rules
from lbq_hw.core.sizes import check_size
from lbq_hw.network.neuron import SUBTRACT, Rule

__all__ = ["NeuronUnit", "Positions", "next_remainder", "staged", "turned", "wrap"]

ADDS_PER_STAGE = 2  # two chained adds ripple together: the second costs about one more bit of carry


@dataclass(frozen=True, kw_only=True)
class Positions:
    """The pipeline of a `NeuronUnit`: the cycle of each input and output.

    A channel is at position 1 in the cycle in which ``bias`` is given, and advances by one position
    per cycle.
    """

    planes: int
    decay_bits: int

    @property
    def acc(self) -> int:
        """``acc`` is given."""
        return 1

    @property
    def v(self) -> int:
        """``v`` is given, after two cycles for the shift and the bias."""
        return 3

    @property
    def leak_stages(self) -> int:
        """Cycles of the leak, without the cycle that adds the current."""
        return -(-max(0, self.decay_bits - 1) // ADDS_PER_STAGE)

    def decay(self, bit: int) -> int:
        """A bit of ``decay`` is used."""
        if bit == self.decay_bits:
            return self.theta
        return self.v + max(0, bit - 1) // ADDS_PER_STAGE

    @property
    def theta(self) -> int:
        """``theta`` and the parameters of rules are given."""
        return self.v + self.leak_stages

    @property
    def fire(self) -> int:
        """``next_v`` is valid."""
        return self.theta + 1

    @property
    def loop(self) -> int:
        """Cycles from a ``v`` to the first ``v`` that may be its ``next_v``."""
        return self.theta - self.v + 3

    @property
    def end(self) -> int:
        """``pooled`` is given, and ``level`` is valid."""
        return self.theta + self.planes + 2


class NeuronUnit(wiring.Component):
    """Updates one channel per cycle in a pipeline.

    All arithmetic is modulo ``2**membrane_bits``, so it is exact if U and V' fit, even if an
    intermediate term overflows::

        U  = leak(v) + bias + (acc << shift)        leak(v) = floor(decay * v / 2**decay_bits)
        V' = U, changed by the rules of the neurons: a spike is fire and U >= theta
        S  = min(floor(U / theta), capacity), 0 for a negative U; its maximum with `pooled`

    The leak follows Horner's scheme from the lowest bit of ``decay``, with one conditional addition
    and one shift per bit; nested floors keep it exact. The level comes from a non-restoring
    division, with one addition or subtraction per plane. ``U >= theta`` is a separate comparison,
    which keeps the division out of the loop from V' to the next v.

    There is a register in front of each addition. `CompactUnit` has fewer registers.

    `Positions` has the cycle of each input and output. Outputs are combinational.

    Parameters
    ----------
    acc_bits, membrane_bits : int
        Signed widths of ``acc``, and of all membrane values.
    planes : int
        Bits K of a level.
    decay_bits, shift_bits : int
        B, and the bits that hold the largest F.
    rules : sequence of `Rule`
        The rules that the unit has circuits for, in the order in which they apply.

    Members
    -------
    acc, bias, v, theta : signed
        ``1 <= theta < 2**(membrane_bits - 1)``.
    parameters of rules : signed, given with theta
    decay : B + 1 bits
        At most ``2**B``; all bits 0 for a membrane that starts from 0.
    shift, capacity : unsigned
        F and N.
    fire : bit
        0: the rules change nothing, for a readout.
    flags of rules : bit each
    pooled : unsigned
        Lower bound of the level: its maximum over the earlier positions of the pool window.
    next_v : signed
    level : unsigned
    """

    def __init__(
        self,
        *,
        acc_bits: int,
        membrane_bits: int,
        planes: int,
        decay_bits: int,
        shift_bits: int,
        rules: Sequence[Rule] = (SUBTRACT,),
    ):
        check_size("acc_bits", acc_bits)
        check_size("membrane_bits", membrane_bits, least=2)
        check_size("planes", planes)
        check_size("decay_bits", decay_bits, least=0)
        check_size("shift_bits", shift_bits, least=0)
        if membrane_bits < planes:
            raise ValueError(f"membrane_bits must be at least planes, not {membrane_bits!r}")
        self._positions = self._make_positions(planes=planes, decay_bits=decay_bits)
        self._rules = tuple(rules)
        membrane = signed(membrane_bits)
        super().__init__(
            {
                "acc": In(signed(acc_bits)),
                "bias": In(membrane),
                "v": In(membrane),
                "theta": In(membrane),
                **{rule.name: In(membrane) for rule in rules if rule.per_channel},
                "decay": In(decay_bits + 1),
                "shift": In(shift_bits),
                "capacity": In(planes),
                "fire": In(1),
                "pooled": In(planes),
                "next_v": Out(membrane),
                "level": Out(planes),
                **{rule.name: In(1) for rule in rules if not rule.per_channel},
            }
        )

    @property
    def positions(self) -> Positions:
        """The cycle of each input and output."""
        return self._positions

    def _make_positions(self, *, planes: int, decay_bits: int) -> Positions:
        return Positions(planes=planes, decay_bits=decay_bits)

    def elaborate(self, _platform):
        m = Module()
        width = len(self.v)
        later = partial(staged, m)
        current = wrap(later(self._shift(), "shifted") + later(self.bias, "bias"), width)
        current = later(current, "current", self._positions.leak_stages + 1)
        u = later(wrap(self._leak(later) + current, width), "u")
        theta = later(self.theta[:-1], "theta")
        level = later(self._divide(later, u, theta), "level")
        capped = later(self._cap(level), "capped")
        m.d.comb += [
            self.next_v.eq(self._reset(m, later, u, theta)),
            self.level.eq(Mux(self.pooled > capped, self.pooled, capped)),
        ]
        return m

    def _shift(self):
        """``acc << shift``."""
        width, shifted = len(self.v), self.acc
        for i, bit in enumerate(self.shift):
            shifted = Mux(bit, shifted << (1 << i), shifted)[:width].as_signed()
        return shifted

    def _reset(self, m, later, u, theta):
        """V': the membrane after the rules of the neurons."""
        fires = Signal()
        spiked, silent = apply_rules(self._rules, self, later, u)
        m.d.comb += fires.eq(self.fire & (u >= theta))
        return Mux(fires, spiked, silent)

    def _cap(self, level):
        return Mux(level > self.capacity, self.capacity, level)

    def _leak(self, later):
        """``floor(decay * v / 2**B)``, at the position of ``theta``."""
        v = self.v
        decay_bits = self._positions.decay_bits
        total = (v & self.decay[0].replicate(len(v)).as_signed()) >> 1
        if decay_bits == 0:
            total = v & 0
        for bit in range(1, decay_bits):
            total = (total + (v & self.decay[bit].replicate(len(v)).as_signed())) >> 1
            if bit % ADDS_PER_STAGE == 0 or bit == decay_bits - 1:
                total, v = later(wrap(total, len(v)), "leak"), later(v, "v")
        return total | (v & self.decay[-1].replicate(len(v)).as_signed())

    def _divide(self, later, u, theta):
        """``floor(u / theta)``, saturated at both ends, as planes: the highest plane at once, each
        further plane a cycle later.

        A non-restoring division: theta times 2**j is subtracted from the remainder, j falling. If
        the remainder becomes negative, the next plane adds instead. So each plane takes one carry
        chain, whose sign gives its bit of the level. The bits of u below bit j wait in `rest`. A
        negative u never sets a bit.
        """
        planes = len(self.level)
        rest, top = u[: planes - 1], u[planes - 1 :].as_signed()
        remainder = wrap(top - theta, len(u) + 1)
        bits = Cat(~remainder[-1])
        for plane in reversed(range(planes - 1)):
            remainder, rest = later(remainder, "remainder"), later(rest, "rest")
            theta, bits = later(theta, "theta"), later(bits, "bits")
            operand = turned(theta, bits[0])
            remainder = next_remainder(remainder, rest[plane], operand, bits[0])
            bits = Cat(~remainder[-1], bits)
        return bits


def staged(m, value, name, cycles=1):
    """A value, delayed by some cycles."""
    return delayed(m, value, cycles, name=name, reset_less=True)


def next_remainder(remainder, bit, operand, subtract):
    """The remainder, with the next bit of u shifted in, minus or plus theta. To subtract, `operand`
    is theta inverted, and the carry into the lowest bit is 1.
    """
    width = len(remainder)
    operand = Cat(subtract, operand, subtract.replicate(width - len(operand)))
    total = Cat(1, bit, remainder[:-1]) + operand
    return wrap(total[1:], width)


def turned(theta, subtract):
    """Theta, with all bits inverted if it is subtracted."""
    return (theta ^ subtract.replicate(len(theta)))[: len(theta)]


def wrap(value, width):
    return value[:width].as_signed()
