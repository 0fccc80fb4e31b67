"""A system with the ports of the real one and almost nothing in it."""

from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out


class Tiny(wiring.Component):
    """Echoes the line after a cycle; busy blinks."""

    rx: In(1)
    tx: Out(1)
    busy: Out(1)

    def elaborate(self, _platform):
        m = Module()
        count = Signal(24)
        m.d.sync += [count.eq(count + 1), self.tx.eq(self.rx)]
        m.d.comb += self.busy.eq(count[-1])
        return m
