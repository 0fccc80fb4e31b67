"""Wishbone."""

from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from lbq_hw.core.bus.request import RequestSignature, WholeWords
from lbq_hw.isa.record import SLICE

__all__ = ["WishboneSlave", "wishbone_members"]

_LANES = SLICE // 8


def wishbone_members(address_bits: int):
    """The bus members of a slave, with addresses of 32-bit words."""
    return {
        "cyc": In(1),
        "stb": In(1),
        "we": In(1),
        "adr": In(address_bits),
        "sel": In(_LANES),
        "datwr": In(SLICE),
        "datrd": Out(SLICE),
        "ack": Out(1),
        "err": Out(1),
    }


class WishboneSlave(wiring.Component):
    """A slave of Wishbone B4, classic cycles, 32 bits; writes of fewer than 32 bits are refused.

    Timing. ``ack`` or ``err`` comes when the request is answered, at the earliest one cycle after
    the strobe.

    Parameters
    ----------
    address_bits : int
        Bits of an address of 32-bit words.

    Members
    -------
    cyc, stb, we, adr, sel, datwr : in
    datrd, ack, err : out
    request : `RequestSignature`
    """

    def __init__(self, *, address_bits: int):
        super().__init__(
            wishbone_members(address_bits) | {"request": Out(RequestSignature(address_bits))}
        )

    def elaborate(self, _platform):
        m = Module()
        m.submodules.whole = whole = WholeWords(address_bits=len(self.adr))
        connect(m, whole.o, flipped(self.request))
        m.d.comb += [
            whole.i.valid.eq(self.cyc & self.stb),
            whole.i.write.eq(self.we),
            whole.i.addr.eq(self.adr),
            whole.i.w_data.eq(self.datwr),
            whole.partial.eq(~self.sel.all()),
            self.datrd.eq(whole.i.r_data),
            self.ack.eq(whole.i.ack & ~whole.i.refused),
            self.err.eq(whole.i.ack & whole.i.refused),
        ]
        return m
