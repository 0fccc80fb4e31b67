"""A request and its answer: the common form of all buses."""

from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from lbq_hw.isa.record import SLICE

__all__ = ["RequestSignature", "WholeWords"]


class RequestSignature(wiring.Signature):
    """One request at a time, each ended by one cycle with ``ack``.

    ``valid`` and the request are stable until the cycle with ``ack``. The next request may come in
    the cycle after it.

    Parameters
    ----------
    address_bits : int

    Members
    -------
    valid, write, addr, w_data : out
        ``addr`` counts words of 32 bits.
    ack : in
    r_data : in
        Data of a read, valid with ``ack``.
    refused : in
        With ``ack``: the request had no effect.
    """

    def __init__(self, address_bits: int):
        super().__init__(
            {
                "valid": Out(1),
                "write": Out(1),
                "addr": Out(address_bits),
                "w_data": Out(SLICE),
                "ack": In(1),
                "r_data": In(SLICE),
                "refused": In(1),
            }
        )


class WholeWords(wiring.Component):
    """Refuses writes of only some bytes of a word, which the core does not support.

    Timing. Adds no cycle. A refused write is answered in the next cycle.

    Members
    -------
    i : `RequestSignature`, flipped
    partial : in
        Not all bytes of the word are written; read with ``i.valid``.
    o : `RequestSignature`
    """

    def __init__(self, *, address_bits: int):
        super().__init__(
            {
                "i": In(RequestSignature(address_bits)),
                "partial": In(1),
                "o": Out(RequestSignature(address_bits)),
            }
        )

    def elaborate(self, _platform):
        m = Module()
        wrong, refuses = Signal(), Signal()
        m.d.comb += [
            wrong.eq(self.i.write & self.partial),
            self.o.valid.eq(self.i.valid & ~wrong),
            self.o.write.eq(self.i.write),
            self.o.addr.eq(self.i.addr),
            self.o.w_data.eq(self.i.w_data),
            self.i.ack.eq(self.o.ack | refuses),
            self.i.r_data.eq(self.o.r_data),
            self.i.refused.eq(self.o.refused | refuses),
        ]
        m.d.sync += refuses.eq(self.i.valid & wrong & ~refuses)
        return m
