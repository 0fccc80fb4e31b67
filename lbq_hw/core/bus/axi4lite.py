"""AXI4-Lite."""

from amaranth import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from lbq_hw.core.bus.request import RequestSignature, WholeWords
from lbq_hw.isa.bus import BYTE_BITS
from lbq_hw.isa.record import SLICE

__all__ = ["Axi4LiteSlave", "axi4lite_members"]

_LANES = SLICE // 8
_RESP_BITS = 2


def axi4lite_members(address_bits: int):
    """The bus members of a slave; an address has two bits for the byte below the 32-bit word."""
    bits, prot = address_bits + BYTE_BITS, 3
    return {
        "awaddr": In(bits),
        "awprot": In(prot),
        "awvalid": In(1),
        "awready": Out(1, init=1),
        "wdata": In(SLICE),
        "wstrb": In(_LANES),
        "wvalid": In(1),
        "wready": Out(1, init=1),
        "bresp": Out(_RESP_BITS),
        "bvalid": Out(1),
        "bready": In(1),
        "araddr": In(bits),
        "arprot": In(prot),
        "arvalid": In(1),
        "arready": Out(1, init=1),
        "rdata": Out(SLICE),
        "rresp": Out(_RESP_BITS),
        "rvalid": Out(1),
        "rready": In(1),
    }


class Axi4LiteSlave(wiring.Component):
    """A slave of AXI4-Lite, 32 bits: one transfer at a time, reads and writes in turn.

    The address and the data of a write are taken independently, each into a register. A write of
    fewer than 32 bits, or a request that `Entrance` refuses, is answered with SLVERR.

    Timing. All outputs are registers. A read, or a write, takes three cycles more than its request.

    Parameters
    ----------
    address_bits : int
        Bits of a word address; the bus has two more bits for the byte, which are ignored.

    Members
    -------
    awaddr, awprot, awvalid, wdata, wstrb, wvalid, bready, araddr, arprot, arvalid, rready : in
    awready, wready, bresp, bvalid, arready, rdata, rresp, rvalid : out
        As in the specification; ``awprot`` and ``arprot`` are ignored.
    request : `RequestSignature`
    """

    def __init__(self, *, address_bits: int):
        self._address_bits = address_bits
        super().__init__(
            axi4lite_members(address_bits) | {"request": Out(RequestSignature(address_bits))}
        )

    def elaborate(self, _platform):
        m = Module()
        m.submodules.whole = whole = WholeWords(address_bits=self._address_bits)
        connect(m, whole.o, flipped(self.request))
        written_at, read_at = Signal(self._address_bits), Signal(self._address_bits)
        word, strobes = Signal(SLICE), Signal(_LANES)
        writes, reads, writing, wrote = Signal(), Signal(), Signal(), Signal()
        resp = Cat(Const(0, 1), whole.i.refused)  # OKAY or SLVERR
        m.d.comb += [
            # A transfer that was taken waits in these registers; no other is taken meanwhile.
            writes.eq(~self.awready & ~self.wready & ~self.bvalid),
            reads.eq(~self.arready & ~self.rvalid),
            whole.i.write.eq(writing),
            whole.i.addr.eq(Mux(writing, written_at, read_at)),
            whole.i.w_data.eq(word),
            whole.partial.eq(~strobes.all()),
        ]
        with m.If(self.awvalid & self.awready):
            m.d.sync += [written_at.eq(self.awaddr[BYTE_BITS:]), self.awready.eq(0)]
        with m.If(self.wvalid & self.wready):
            m.d.sync += [word.eq(self.wdata), strobes.eq(self.wstrb), self.wready.eq(0)]
        with m.If(self.arvalid & self.arready):
            m.d.sync += [read_at.eq(self.araddr[BYTE_BITS:]), self.arready.eq(0)]
        with m.If(self.bvalid & self.bready):
            m.d.sync += [self.bvalid.eq(0), self.awready.eq(1), self.wready.eq(1)]
        with m.If(self.rvalid & self.rready):
            m.d.sync += [self.rvalid.eq(0), self.arready.eq(1)]
        with m.FSM():
            with m.State("IDLE"):
                m.d.sync += writing.eq(writes & ~(reads & wrote))
                with m.If(writes | reads):
                    m.next = "REQUEST"
            with m.State("REQUEST"):
                m.d.comb += whole.i.valid.eq(1)
                with m.If(whole.i.ack):
                    m.d.sync += wrote.eq(writing)
                    with m.If(writing):
                        m.d.sync += [self.bvalid.eq(1), self.bresp.eq(resp)]
                    with m.Else():
                        m.d.sync += [
                            self.rvalid.eq(1),
                            self.rdata.eq(whole.i.r_data),
                            self.rresp.eq(resp),
                        ]
                    m.next = "IDLE"
        return m
