"""Reads and writes slices of external memory for the host, one at a time."""

from amaranth import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from lbq_hw.chips import Chip
from lbq_hw.core.external.host_memory_port import HostMemoryPort
from lbq_hw.core.external.port import MemoryPort
from lbq_hw.isa.record import SLICE

__all__ = ["Slices"]


class Slices(wiring.Component):
    """Reads and writes slices; a slice is one word of 32 bits or two words of 16.

    Timing. A write is taken when the memory takes its last word, a read when the memory takes it. A
    read is answered in the cycle after its last word was taken.

    Members
    -------
    request, answer : as in `HostMemoryPort`
    port : `MemoryPort`
    """

    def __init__(self, *, chip: Chip):
        self._chip = chip
        host = HostMemoryPort().members
        super().__init__(
            {
                "request": host["request"].flip(),
                "answer": host["answer"].flip(),
                "port": Out(MemoryPort(chip)),
            }
        )

    def elaborate(self, _platform):
        m = Module()
        wanted, access, words = self.request.payload, self.port.access, self.port.words
        halves = SLICE // self._chip.data_bits
        upper = Signal(halves - 1)  # the next word is a slice's upper half
        last = upper == halves - 1
        m.d.comb += [
            access.payload.write.eq(wanted.write),
            access.payload.address.eq(Cat(upper, wanted.address)),
            access.payload.more.eq(halves - 1),
            access.payload.data.eq(wanted.data.word_select(upper, self._chip.data_bits)),
        ]
        m.d.sync += self.answer.valid.eq(0)
        with m.FSM():
            with m.State("REQUEST"):
                m.d.comb += access.valid.eq(self.request.valid)
                with m.If(access.ready & wanted.write):
                    m.d.comb += self.request.ready.eq(last)
                    with m.If(access.valid):
                        m.d.sync += upper.eq(upper + 1)
                with m.Elif(access.ready):
                    m.d.comb += self.request.ready.eq(1)
                    with m.If(access.valid):
                        m.next = "WORDS"
            with m.State("WORDS"):
                m.d.comb += words.ready.eq(1)
                with m.If(words.valid):
                    m.d.sync += upper.eq(upper + 1)
                    m.d.sync += self.answer.payload.eq(
                        Cat(self.answer.payload, words.payload)[-SLICE:]
                    )
                    with m.If(last):
                        m.d.sync += self.answer.valid.eq(1)
                        m.next = "REQUEST"
        return m
