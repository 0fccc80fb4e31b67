"""A queue of two places, whose first one is a register."""

from amaranth import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["TwoPlaces"]


class TwoPlaces(wiring.Component):
    """First in, first out; a register offers the first.

    It is `amaranth.lib.fifo.SyncFIFO` of depth 2 cycle by cycle, without the memory in front of
    what that offers.

    Timing. An item taken in cycle c is offered from cycle c + 1 on, one per cycle. No port depends
    on another of the same cycle.

    Parameters
    ----------
    shape : shape of an item

    Members
    -------
    i, o : streams
    """

    def __init__(self, shape):
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})

    def elaborate(self, _platform):
        m = Module()
        first, second = (
            Signal.like(self.i.payload, name=name, reset_less=True) for name in ("first", "second")
        )
        level = Signal(range(3))
        put, get = Signal(), Signal()
        m.d.comb += [
            self.i.ready.eq(level != 2),
            self.o.valid.eq(level != 0),
            self.o.payload.eq(first),
            put.eq(self.i.valid & self.i.ready),
            get.eq(self.o.valid & self.o.ready),
        ]
        m.d.sync += level.eq(level + put - get)
        with m.If(self.i.ready):
            m.d.sync += second.eq(self.i.payload)
        with m.If(get | ~self.o.valid):
            m.d.sync += first.eq(Mux(level == 2, second, self.i.payload))
        return m
