"""Reads the tape from external memory, page by page."""

from amaranth import Cat, Const, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from lbq_hw.chips import Chip
from lbq_hw.core.external.port import MemoryPort
from lbq_hw.core.fabric.contracts import must

__all__ = ["TapePages"]


class TapePages(wiring.Component):
    """From ``start`` to ``stop``, requests one page after the other, and passes on their words.

    Timing. The first page is requested in the cycle after ``start``. A page whose request is
    offered when ``stop`` rises is still delivered, but no further page is requested.

    Members
    -------
    start : in
        Strobe, not while ``active``: begin with the first page.
    stop : in
        Level: request no further page.
    words : stream of words, out
        The words of the run; the receiver must take the rest of them after a stop.
    active : out
        From the cycle after ``start`` until all requested words are taken.
    empty : in
        As in `Sdram`.
    port : `MemoryPort`
        Used while ``active``.
    """

    def __init__(self, *, chip: Chip):
        self._chip = chip
        super().__init__(
            {
                "start": In(1),
                "stop": In(1),
                "words": Out(stream.Signature(chip.data_bits)),
                "active": Out(1),
                "empty": In(1),
                "port": Out(MemoryPort(chip)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        chip, access = self._chip, self.port.access
        running = Signal()
        page = Signal(chip.address_bits - chip.column_bits)
        m.d.comb += [
            access.valid.eq(running),
            access.payload.address.eq(Cat(Const(0, chip.column_bits), page)),
            access.payload.more.eq(-1),
        ]
        connect(m, flipped(self.port.words), flipped(self.words))
        with m.If(access.valid & access.ready):
            m.d.sync += page.eq(page + 1)
        with m.If(self.start):
            m.d.sync += [running.eq(1), self.active.eq(1), page.eq(0)]
        with m.Elif(self.stop):
            with m.If(access.ready):
                m.d.sync += running.eq(0)
            with m.If(~running & self.empty):
                m.d.sync += self.active.eq(0)
        must(m, platform, ~(self.start & self.active), "a run starts before the last one's end")
        return m
