"""A register slice: registers for both directions of a stream, at full throughput."""

from amaranth import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from lbq_hw.core.fabric.registers import copies

__all__ = ["RegisterSlice"]


class RegisterSlice(wiring.Component):
    """Cuts the combinational paths of a stream in both directions, with two registers that take
    items in turn.

    It behaves like `amaranth.lib.fifo.SyncFIFO` of depth 2 in every cycle, without a memory read in
    front of ``o``. ``o.ready`` is known late, so no data register depends on it: a free register
    loads whatever is at ``i``.

    Timing. An item taken in cycle c is offered from cycle c + 1 on, one per cycle. No port depends
    combinationally on another.

    Parameters
    ----------
    shape : shape of an item
    far : bool
        Whether ``i.ready`` comes from its own register, which can be placed near a distant sender.
        It is 0 in the cycle after a reset.

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
        first, last = Signal(), Signal()  # the register to read next, and the one to write next
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
