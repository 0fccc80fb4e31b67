"""The CRC-32 of consecutive slices in external memory."""

from amaranth import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.crc.catalog import CRC32_ISO_HDLC
from amaranth.lib.wiring import In, Out

from lbq_hw.core.external.host_memory_port import SLICE_ADDRESS_BITS
from lbq_hw.core.fabric.contracts import must
from lbq_hw.isa.record import SLICE

__all__ = ["COUNT_BITS", "Digest"]

COUNT_BITS = SLICE_ADDRESS_BITS + 1
"""Bits of a number of slices, up to all slices of the memory."""
_BYTE = 8


class Digest(wiring.Component):
    """Reads slices one by one and computes the CRC-32 of their bytes, lowest first, as zlib does.

    Addresses wrap around: slice 0 follows the last slice.

    Timing. ``busy`` rises in the cycle after ``start``, and the first slice is requested in that
    cycle. If a slice arrives in cycle c, its bytes are processed in cycles c + 1 to c + 4. In cycle
    c + 5 the next slice is requested, or ``busy`` is 0. A digest of 0 slices is never busy, and its
    CRC is 0.

    Members
    -------
    start : in
        Begin, not while ``busy``.
    first, slices : in
        Address of the first slice, and number of slices; read with ``start``.
    busy : out
    crc : out
        Valid from the fall of ``busy`` until the next start.
    request : stream of addresses of slices, out
    answer : stream of slices, in
        One slice per request, after it was taken; no other slice arrives while ``busy``.
    """

    start: In(1)
    first: In(SLICE_ADDRESS_BITS)
    slices: In(COUNT_BITS)
    busy: Out(1)
    crc: Out(SLICE)
    request: Out(stream.Signature(SLICE_ADDRESS_BITS))
    answer: In(stream.Signature(SLICE, always_ready=True))

    def elaborate(self, platform):
        m = Module()
        m.submodules.crc = crc = CRC32_ISO_HDLC(_BYTE).create()
        word, left = Signal(SLICE), Signal(COUNT_BITS)
        place = Signal(range(SLICE // _BYTE))
        m.d.comb += [
            crc.start.eq(self.start),
            crc.data.eq(word[:_BYTE]),
            self.crc.eq(crc.crc),
        ]
        with m.FSM() as fsm:
            m.d.comb += self.busy.eq(~fsm.ongoing("IDLE"))
            with m.State("IDLE"):
                m.d.sync += [self.request.payload.eq(self.first), left.eq(self.slices)]
                with m.If(self.start & (self.slices != 0)):
                    m.next = "REQUEST"
            with m.State("REQUEST"):
                m.d.comb += self.request.valid.eq(1)
                with m.If(self.request.ready):
                    m.next = "SLICE"
            with m.State("SLICE"):
                m.d.sync += word.eq(self.answer.payload)
                with m.If(self.answer.valid):
                    m.d.sync += [
                        self.request.payload.eq(self.request.payload + 1),
                        left.eq(left - 1),
                    ]
                    m.next = "BYTES"
            with m.State("BYTES"):
                m.d.comb += crc.valid.eq(1)
                m.d.sync += [word.eq(word >> _BYTE), place.eq(place + 1)]
                with m.If(place == SLICE // _BYTE - 1):
                    m.next = "REQUEST"
                    with m.If(left == 0):
                        m.next = "IDLE"
            answered = ~self.answer.valid | fsm.ongoing("SLICE") | fsm.ongoing("IDLE")
        must(m, platform, ~(self.start & self.busy), "a digest starts while another is in progress")
        must(m, platform, answered, "a slice arrives that was not requested")
        return m
