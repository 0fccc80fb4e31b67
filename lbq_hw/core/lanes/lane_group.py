"""A group of lanes, with its own copy of the registers that enable them."""

from amaranth import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from lbq_hw.core.fabric.contracts import must
from lbq_hw.core.fabric.registers import copies, delayed_while

__all__ = ["ACTION", "LaneGroup", "PairLaneGroup", "SpreadLaneGroup"]

ACTION = data.StructLayout({"valid": 1, "clear": 1, "double": 1, "end": 1})
"""The effect of an event on the accumulators."""


class LaneGroup(wiring.Component):
    """Adds weights to the accumulators of some lanes, and stalls while a sum waits.

    All groups of an array get the same actions and the same ``room``, so their control registers
    are copies of each other. Each copy feeds itself back, so that synthesis cannot merge them, and
    the placer can put each copy beside its lanes.

    Timing. The group advances only in cycles with ``advance``. Counted in these cycles, a mask
    comes `stages` cycles before its weights, an action comes with its weights, and the weights are
    added one cycle later.

    Parameters
    ----------
    lanes : int
    mask_bits : int
        1, or one for each lane.
    stages : int
        Cycles of a weight read.
    weight_bits, acc_bits : int
        Signed widths of a weight and of an accumulator.

    Members
    -------
    room : in
        Sums can be taken in the next cycle.
    mask : in
        Lanes that add their weight.
    weights : in, ``lanes`` signed
    action : in, `ACTION`
    advance : out
        The lanes' pipeline advances in this cycle.
    adding, ends : out
        An event is in the stage that adds; it has ``end``.
    sums : out, ``lanes`` signed
        The accumulators.
    """

    def __init__(self, *, lanes: int, mask_bits: int, stages: int, weight_bits: int, acc_bits: int):
        self._stages = stages
        super().__init__(
            {
                "room": In(1),
                "mask": In(mask_bits),
                "action": In(ACTION),
                "advance": Out(1, init=1),
                "adding": Out(1),
                "ends": Out(1),
                "sums": Out(data.ArrayLayout(signed(acc_bits), lanes)),
            }
            | self._weights(data.ArrayLayout(signed(weight_bits), lanes))
        )

    def _weights(self, weights):
        """Members for the input of weights."""
        return {"weights": In(weights)}

    def elaborate(self, platform):
        m = Module()
        action = Signal(ACTION)
        sums = Signal(self.sums.shape(), reset_less=True)
        with m.If(self.advance):
            m.d.sync += action.eq(self.action)
        m.d.comb += [
            self.adding.eq(action.valid),
            self.ends.eq(action.valid & action.end),
            self.sums.eq(sums),
        ]
        adds, addends = self._move(m, action), self._addends(m)
        for total, weight in zip(sums, addends, strict=True):
            # One LUT per bit selects 0, the sum or the doubled sum in front of the carry chain.
            start = Mux(action.double, total << 1, total)[: len(total)]
            start &= (~action.clear).replicate(len(total))
            with m.If(adds):
                m.d.sync += total.eq(start.as_signed() + weight)
        must(m, platform, ~(action.clear & action.double), "an event both clears and doubles")
        return m

    def _move(self, m, action):
        """Advance unless a sum waits. Returns the accumulators' enable."""
        m.d.sync += self.advance.eq(self.room | (self.advance & ~self.ends))
        return self.advance & action.valid

    def _addends(self, m):
        """The addend of each lane: its weight, or 0."""
        mask = delayed_while(m, self.advance, self.mask, self._stages, name="mask")
        addends = []
        for lane, weight in enumerate(self.weights):
            if len(mask) > 1:
                # Not a multiplexer as below: synthesis would use the synchronous reset for it, with
                # a control set per lane, but eight cells of an iCE40 share one control set.
                masked = weight & mask[lane].replicate(len(weight)).as_signed()
            else:
                masked = Mux(mask, weight, 0)
            addend = Signal.like(weight, name=f"addend_{lane}", reset_less=True)
            with m.If(self.advance):
                m.d.sync += addend.eq(masked)
            addends.append(addend)
        return addends


class SpreadLaneGroup(LaneGroup):
    """As `LaneGroup`, where the accumulators' enable comes straight from a register.

    Members
    -------
    fetch : out
        A copy of ``advance`` for the weight memory, so that the placer can put it beside the block
        RAMs.
    offers : out, two bits
        Two copies of the same bit: the sums are offered in this cycle.
    """

    def _weights(self, weights):
        return super()._weights(weights) | {"fetch": Out(1, init=1), "offers": Out(2)}

    def _move(self, m, action):
        adds, may_advance = Signal(), self.room | (self.advance & ~self.ends)
        follows = Mux(self.advance, self.action.valid, action.valid)
        offers = copies(m, self.room & (~self.advance | self.ends), 2, name="offers")
        m.d.sync += [
            self.advance.eq(may_advance),
            adds.eq(may_advance & follows),
            self.fetch.eq(self.room | (self.fetch & ~self.ends)),
        ]
        m.d.comb += self.offers.eq(Cat(offers))
        return adds


class PairLaneGroup(SpreadLaneGroup):
    """As `SpreadLaneGroup`, where an event may add two weights in each lane.

    Timing. The weights of an event come a cycle before its action.

    Members
    -------
    weights : in, two arrays of ``lanes`` signed
    adds : in, two bits
        Which of the two weights are added; comes with the mask.
    """

    def _weights(self, weights):
        members = super()._weights(weights)
        return members | {"weights": In(data.ArrayLayout(weights, 2)), "adds": In(2)}

    def _addends(self, m):
        given = Cat(self.adds, self.mask)
        given = delayed_while(m, self.advance, given, self._stages, name="mask")
        adds, mask = given[:2], given[2:]
        addends = []
        for lane in range(len(self.sums)):
            chosen, parts = mask[lane % len(mask)], []
            for row, add in zip(self.weights, adds, strict=True):
                parts.append(Signal.like(row[lane], name=f"part_{lane}", reset_less=True))
                masked = row[lane] & (chosen & add).replicate(len(row[lane])).as_signed()
                with m.If(self.advance):
                    m.d.sync += parts[-1].eq(masked)
            pair = parts[0] + parts[1]
            addend = Signal(pair.shape(), name=f"addend_{lane}", reset_less=True)
            with m.If(self.advance):
                m.d.sync += addend.eq(pair)
            addends.append(addend)
        return addends
