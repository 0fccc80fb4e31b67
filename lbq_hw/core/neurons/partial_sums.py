"""Memory of the sums that one pass of a tape stores for the next."""

from itertools import pairwise

from amaranth import Cat, Module, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from lbq_hw.core.fabric.contracts import checked, must
from lbq_hw.core.fabric.registers import copies
from lbq_hw.core.fabric.sharing import SPREAD_UNITS
from lbq_hw.core.memory.spread import SpreadMemory

__all__ = ["LATENCY", "PartialSums"]

LATENCY = SpreadMemory.LATENCY + 1
"""Cycles from a group to its sums: the memory read, and one cycle for the addition."""


class PartialSums(wiring.Component):
    """Adds the partial sums of the previous pass to the sums of each group, and stores the result.

    Word ``step * groups + group`` holds the sums of a group, with steps numbered from 0 in each
    pass. Only the lowest `bits` of a sum are stored.

    Timing. Sums given in cycle c are in ``o`` in cycle ``c + LATENCY``. They are stored in that
    cycle, and seen by groups given from the next cycle on. A group that is stored must not be given
    again in the same pass.

    Parameters
    ----------
    units, groups : int
        Channels of a group, and groups of a tile: a power of two.
    acc_bits : int
        Signed width of a sum.
    words, bits : int
        Words of the memory, a multiple of `groups`, and signed width of a stored sum.

    Members
    -------
    begin : in
        A pass begins: the next step is step 0.
    step : in
        A step is taken: groups from the next cycle on belong to it. At most ``words / groups``
        steps in a pass that adds or stores.
    valid, group, sums : in
        A group is given: its number in the tile, its sums.
    add, leave : in
        Add the partial sums of the previous pass; store the sums for the next pass. Both are stable
        from the cycle before the first group of a pass until its last group is in ``o``.
    o : out, ``units`` signed sums
    """

    def __init__(self, *, units: int, groups: int, acc_bits: int, words: int, bits: int):
        self._groups, self._words, self._bits = groups, words, bits
        sums = data.ArrayLayout(signed(acc_bits), units)
        super().__init__(
            {
                "begin": In(1),
                "step": In(1),
                "valid": In(1),
                "group": In(ceil_log2(groups)),
                "sums": In(sums),
                "add": In(1),
                "leave": In(1),
                "o": Out(sums),
            }
        )

    def elaborate(self, platform):
        m = Module()
        kept = data.ArrayLayout(signed(self._bits), len(self.sums))
        m.submodules.memory = store = SpreadMemory(width=kept.size, depth=self._words)
        read, write = store.read, store.write
        number = Signal(ceil_log2(self._words // self._groups), init=-1)  # of the step
        layout = data.StructLayout({"sums": self.sums.shape(), "leave": 1, "at": len(read.addr)})
        in_flight = [Signal(layout, name=f"in_flight_{i}", reset_less=True) for i in range(LATENCY)]
        leaving = Signal()
        m.d.sync += leaving.eq(self.leave)
        m.d.comb += [
            read.addr.eq(Cat(self.group, number)),
            read.en.eq(self.valid & self.add),
            in_flight[0].sums.eq(self.sums),
            in_flight[0].leave.eq(self.valid & leaving),
            in_flight[0].at.eq(read.addr),
        ]
        m.d.sync += [later.eq(sooner) for sooner, later in pairwise(in_flight)]
        m.d.sync += [write.en.eq(in_flight[-1].leave), write.addr.eq(in_flight[-1].at)]
        adds = copies(m, self.add, -(-len(self.o) // SPREAD_UNITS), name="add")
        before = data.View(kept, read.data)
        left = data.View(kept, write.data)
        totals = Signal.like(self.o, reset_less=True)
        m.d.comb += self.o.eq(totals)
        for i, total in enumerate(totals):
            part = before[i] & adds[i // SPREAD_UNITS].replicate(self._bits).as_signed()
            m.d.sync += total.eq(in_flight[-1].sums[i] + part)
            m.d.comb += left[i].eq(total)
        with m.If(self.begin):
            m.d.sync += number.eq(-1)
        with m.Elif(self.step):
            m.d.sync += number.eq(number + 1)
        if checked(platform):
            self._check(m, platform, self.valid & leaving)
        return m

    def _check(self, m, platform, leaving):
        """Check that a pass stores each word at most once."""
        most = self._words // self._groups
        steps, done = Signal(range(most + 1)), Signal(self._groups)
        used = self.add | self.leave
        beyond = self.step & ~self.begin & used & (steps == most)
        must(m, platform, ~beyond, "a pass has more steps than the memory holds")
        with m.If(self.begin):
            m.d.sync += steps.eq(0)
        with m.Elif(self.step & used):
            m.d.sync += steps.eq(steps + 1)
        again = done.bit_select(self.group, 1) & leaving
        must(m, platform, ~again, "a group of a step is stored twice")
        with m.If(self.begin | self.step):
            m.d.sync += done.eq(0)
        with m.Elif(leaving):
            m.d.sync += done.bit_select(self.group, 1).eq(1)
