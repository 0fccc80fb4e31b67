"""The datapath of one neuron unit: current, leak, threshold, reset, level."""

from dataclasses import dataclass

from amaranth import Cat, Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from lbq_hw.core.sizes import check_size

__all__ = ["NeuronUnit", "Positions"]

ADDS_PER_STAGE = 2  # two chained adds ripple together: the second costs about one more bit of carry
PLANES_PER_STAGE = 2  # of the division in a unit that is not fast, behind the first plane


@dataclass(frozen=True, kw_only=True)
class Positions:
    """The cycles of the pipeline of a `NeuronUnit`: which value is given or returned when.

    A channel is at position 1 in the cycle in which ``bias`` is given, and moves by one every
    cycle. A unit that is not `fast` does more in each of them, and if it keeps no membranes, it
    makes no V'.
    """

    planes: int
    decay_bits: int
    fast: bool = True
    keeps: bool = True

    @property
    def acc(self) -> int:
        """``acc`` is given."""
        return 1 if self.fast else 0

    @property
    def v(self) -> int:
        """``v`` is given: in a fast unit, shift and bias take the two cycles before it."""
        return 3 if self.fast else 1

    @property
    def leak_stages(self) -> int:
        """Cycles that the leak takes beyond the one that adds the current."""
        return -(-max(0, self.decay_bits - 1) // ADDS_PER_STAGE)

    def decay(self, bit: int) -> int:
        """A bit of ``decay`` is used."""
        if bit == self.decay_bits:
            return self.theta
        return self.v + max(0, bit - 1) // ADDS_PER_STAGE

    @property
    def theta(self) -> int:
        """``theta`` and ``reset`` are given."""
        return self.v + self.leak_stages

    @property
    def fire(self) -> int:
        """``next_v`` is there."""
        return self.theta + self.keeps

    @property
    def loop(self) -> int:
        """Cycles from where v is given until it is what ``next_v`` was."""
        return self.theta - self.v + 3

    @property
    def end(self) -> int:
        """``pooled`` is given and ``level`` is there."""
        if self.fast:
            return self.theta + self.planes + 2
        return self.theta + 1 + self.planes // PLANES_PER_STAGE


class NeuronUnit(wiring.Component):
    """Updates one channel per cycle in a pipeline.

    All arithmetic is modulo ``2**membrane_bits``, so it is exact where U and V' fit, whatever the
    intermediate terms do::

        U  = leak(v) + bias + (acc << shift)        leak(v) = floor(decay * v / 2**decay_bits)
        V' = U - (fire and U >= theta ? reset : 0)  0 if fire and to_zero and U >= theta
        S  = min(floor(U / theta), capacity), 0 for a negative U; its maximum with `pooled`

    The leak follows Horner's scheme from the lowest bit of ``decay``, with one conditional addition
    and a shift per bit: floors nest, so this is exact. The level comes from a non-restoring
    division, with one addition or subtraction per plane. ``U >= theta`` is a comparison of its own,
    which keeps the division out of the loop from V' to the next v.

    A fast unit has a register in front of each addition. In another one, U is made in one cycle out
    of ``bias`` and the shifted sum, and the first plane with it; the planes behind it come two per
    cycle. So parameters are used as they come from their memory.

    `Positions` says in which cycle each input is given and each output is there. Outputs are
    combinational.

    Parameters
    ----------
    acc_bits, membrane_bits : int
        Signed widths of ``acc``, and of all membrane values.
    planes : int
        Bits K of a level.
    decay_bits, shift_bits : int
        B, and the bits that hold the largest F.
    zero_resets : bool
        Whether there is ``to_zero``.
    fast : bool
    keeps : bool
        Whether membranes are kept for a next timestep: else ``next_v`` is U.

    Members
    -------
    acc, bias, v, theta, reset : signed
        ``1 <= theta < 2**(membrane_bits - 1)``.
    decay : B + 1 bits
        At most ``2**B``; all bits 0 for a membrane that starts.
    shift, capacity : unsigned
        F and N.
    fire : bit
        0: no reset, for a readout.
    to_zero : bit, if `zero_resets`
        A spike leaves nothing of the membrane.
    pooled : unsigned
        Least value of the level.
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
        zero_resets: bool = False,
        fast: bool = True,
        keeps: bool = True,
    ):
        check_size("acc_bits", acc_bits)
        check_size("membrane_bits", membrane_bits, least=2)
        check_size("planes", planes)
        check_size("decay_bits", decay_bits, least=0)
        check_size("shift_bits", shift_bits, least=0)
        if membrane_bits < planes:
            raise ValueError(f"membrane_bits must be at least planes, not {membrane_bits!r}")
        self._positions = Positions(planes=planes, decay_bits=decay_bits, fast=fast, keeps=keeps)
        self._zero_resets = zero_resets
        membrane = signed(membrane_bits)
        super().__init__(
            {
                "acc": In(signed(acc_bits)),
                "bias": In(membrane),
                "v": In(membrane),
                "theta": In(membrane),
                "reset": In(membrane),
                "decay": In(decay_bits + 1),
                "shift": In(shift_bits),
                "capacity": In(planes),
                "fire": In(1),
                "pooled": In(planes),
                "next_v": Out(membrane),
                "level": Out(planes),
            }
            | ({"to_zero": In(1)} if zero_resets else {})
        )

    @property
    def positions(self) -> Positions:
        """Where in the pipeline things happen."""
        return self._positions

    def elaborate(self, _platform):
        m = Module()
        width = len(self.v)

        def staged(value, name, cycles=1):
            for _ in range(cycles):
                register = Signal(value.shape(), name=name, reset_less=True)
                m.d.sync += register.eq(value)
                value = register
            return value

        fast, stages = self._positions.fast, self._positions.leak_stages
        shifted = self.acc
        for i, bit in enumerate(self.shift):
            shifted = Mux(bit, shifted << (1 << i), shifted)[:width].as_signed()
        shifted = staged(shifted, "shifted")
        current = _wrap(shifted + (staged(self.bias, "bias") if fast else self.bias), width)
        current = staged(current, "current", stages + fast)
        u, theta = _wrap(self._leak(staged) + current, width), self.theta[:-1]
        late_u, late_theta = u, theta
        if fast or self._positions.keeps:
            late_u, late_theta = staged(u, "u"), staged(theta, "theta")
        m.d.comb += self.next_v.eq(
            self._reset(m, staged, late_u, late_theta) if self._positions.keeps else u
        )

        if fast:
            level = staged(self._divide(staged, late_u, late_theta), "level")
            capped = staged(self._cap(level), "capped")
        else:
            capped = self._cap(staged(self._divide(staged, u, theta), "level"))
        m.d.comb += self.level.eq(Mux(self.pooled > capped, self.pooled, capped))
        return m

    def _reset(self, m, staged, u, theta):
        """V'."""
        reset = staged(self.reset, "reset")
        fires = Signal()
        after = u - reset
        if self._zero_resets:
            after = Mux(self.to_zero, 0, after)
        m.d.comb += fires.eq(self.fire & (u >= theta))
        return Mux(fires, after, u)

    def _cap(self, level):
        return Mux(level > self.capacity, self.capacity, level)

    def _leak(self, staged):
        """``floor(decay * v / 2**B)``, at the position of ``theta``."""
        v = self.v
        decay_bits = self._positions.decay_bits
        total = (v & self.decay[0].replicate(len(v)).as_signed()) >> 1
        if decay_bits == 0:
            total = v & 0
        for bit in range(1, decay_bits):
            total = (total + (v & self.decay[bit].replicate(len(v)).as_signed())) >> 1
            if bit % ADDS_PER_STAGE == 0 or bit == decay_bits - 1:
                total, v = staged(_wrap(total, len(v)), "leak"), staged(v, "v")
        return total | (v & self.decay[-1].replicate(len(v)).as_signed())

    def _divide(self, staged, u, theta):
        """``floor(u / theta)`` as planes, saturated at both ends. The first one is there at once;
        of the others, each takes a cycle, or two of them do if the unit is not fast.

        The remainder is divided by theta times 2**j, j falling; what lies below bit j of u waits
        in `rest`. A remainder below 0 is mended by adding for the next plane, so that each plane is
        one carry chain, whose sign is its bit of the level. A negative u never gets a bit.
        """
        width = len(u) + 1
        planes = len(self.level)
        rest, top = u[: planes - 1], u[planes - 1 :].as_signed()
        remainder = _wrap(top - theta, width)
        bits = Cat(~remainder[-1])
        for i, plane in enumerate(reversed(range(planes - 1))):
            if self._positions.fast:
                remainder = staged(remainder, "remainder")
                rest = staged(rest, "rest")
                theta = staged(theta, "theta")
                bits = staged(bits, "bits")
                operand = _turned(theta, bits[0])
            else:
                operand = _turned(theta, bits[0])
                if i % PLANES_PER_STAGE == 0:
                    remainder = staged(remainder, "remainder")
                    rest = staged(rest, "rest")
                    # A register behind logic has no cell to itself: so theta waits as it is added.
                    operand = staged(operand, "operand")
                    bits = staged(bits, "bits")
                    theta = _turned(operand, bits[0])
            subtract = bits[0]
            operand = Cat(subtract, operand, subtract.replicate(width - len(theta)))
            # The lowest bit carries 1 into the sum where theta is subtracted.
            total = Cat(1, rest[plane], remainder[:-1]) + operand
            remainder = _wrap(total[1:], width)
            bits = Cat(~remainder[-1], bits)
        return bits


def _turned(theta, subtract):
    """Theta, or all its bits inverted."""
    return (theta ^ subtract.replicate(len(theta)))[: len(theta)]


def _wrap(value, width):
    return value[:width].as_signed()
