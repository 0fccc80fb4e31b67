"""A register slice: it cuts both ways of a stream, and loses no cycle."""

from amaranth import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from lbq_hw.core.fabric.registers import copies

__all__ = ["RegisterSlice"]


class RegisterSlice(wiring.Component):
    """Cuts both ways of a stream: items go to two registers in turn, and stay there.

    It is `amaranth.lib.fifo.SyncFIFO` of depth 2 cycle by cycle, without the memory in front of
    what that offers. Whether an item is taken from it or not is known late, and no place looks at
    that: one that is free takes whatever comes.

    Timing. An item taken in cycle c is offered from cycle c + 1 on, one per cycle. No port depends
    on another of the same cycle.

    Parameters
    ----------
    shape : shape of an item
    far : bool
        Whether ``i.ready`` is a register of its own, which can be placed near a sender far away. It
        is 0 in the cycle after a reset.

    Members
    -------
    i, o : streams
    """

    def __init__(self, shape, *, far: bool = False):
        self._far = far
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})

    def elaborate(self, _platform):
        m = Module()
        places = [Signal.like(self.i.payload, name=f"place_{i}", reset_less=True) for i in range(2)]
        free, free_next = Signal(2, init=0b11), Signal(2)
        first, last = Signal(), Signal()  # where the next item leaves, and where the next one goes
        put, get = Signal(), Signal()
        m.d.comb += [
            self.i.ready.eq(free.any()),
            self.o.valid.eq(~free.all()),
            self.o.payload.eq(Mux(first, *reversed(places))),
            put.eq(self.i.valid & self.i.ready),
            get.eq(self.o.valid & self.o.ready),
        ]
        m.d.sync += [first.eq(first ^ get), last.eq(last ^ put), free.eq(free_next)]
        for i, place in enumerate(places):
            leaves, comes = get & (first == i), put & (last == i)
            m.d.comb += free_next[i].eq((free[i] | leaves) & ~comes)
            with m.If(free[i]):
                m.d.sync += place.eq(self.i.payload)
        if self._far:
            m.d.comb += self.i.ready.eq(copies(m, free_next.any(), 1, name="ready")[0])
        return m
