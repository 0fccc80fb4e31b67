"""Tests a memory word by word."""

from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from lbq_hw.chips import Chip
from lbq_hw.core.external.pattern import pattern
from lbq_hw.core.external.port import MemoryPort

__all__ = ["SelfTest"]


class SelfTest(wiring.Component):
    """Writes words that depend on their addresses, reads them back and counts the differences.

    It goes over the memory twice, with the words of `pattern` and with their inverses. So each bit
    is 0 once and 1 once, and a word at a wrong address is detected. Words are written one by one
    and read in whole pages, like a tape.

    Parameters
    ----------
    chip : `Chip`

    Members
    -------
    start : in
        Begins a test if none is in progress.
    last : in
        Words 0 to this address are tested. Stable while ``busy``.
    busy : out
        From the cycle after ``start`` to the end of the test.
    differing : out
        Number of words that differed, in both passes; 0 after ``start``, stable after the end.
    port : `MemoryPort`
        Used while ``busy``.
    """

    def __init__(self, *, chip: Chip):
        self._chip = chip
        super().__init__(
            {
                "start": In(1),
                "last": In(chip.address_bits),
                "busy": Out(1),
                "differing": Out(chip.address_bits + 2),
                "port": Out(MemoryPort(chip)),
            }
        )

    def elaborate(self, _platform):
        m = Module()
        port, bits = self.port, self._chip.data_bits
        address = Signal(self._chip.address_bits)
        inverted, differs = Signal(), Signal()
        over = Signal()  # the words after the last one of the test, to the end of its page
        expected, word, word_valid = Signal(bits), Signal(bits), Signal()
        m.d.comb += [
            expected.eq(pattern(address, bits) ^ inverted.replicate(bits)),
            port.access.payload.address.eq(address),
            port.access.payload.data.eq(expected),
            port.access.payload.more.eq(-1),
        ]
        m.d.sync += [
            word.eq(port.words.payload),
            word_valid.eq(port.words.valid & port.words.ready),
            differs.eq(word_valid & ~over & (word != expected)),
            self.differing.eq(self.differing + differs),
        ]
        at_last, page_ends = address == self.last, address[: self._chip.column_bits].all()

        with m.FSM():
            with m.State("IDLE"), m.If(self.start):
                m.d.sync += [self.differing.eq(0), self.busy.eq(1)]
                m.next = "WRITE"
            with m.State("WRITE"):
                m.d.comb += [port.access.valid.eq(1), port.access.payload.write.eq(1)]
                with m.If(port.access.ready):
                    m.d.sync += address.eq(address + 1)
                    with m.If(at_last):
                        m.d.sync += address.eq(0)
                        m.next = "READ"
            with m.State("READ"):
                m.d.comb += port.access.valid.eq(1)
                with m.If(port.access.ready):
                    m.next = "COMPARE"
            with m.State("COMPARE"):
                m.d.comb += port.words.ready.eq(1)
                with m.If(word_valid):
                    m.d.sync += [address.eq(address + 1), over.eq(over | at_last)]
                    with m.If(page_ends):
                        m.next = "READ"
                        with m.If(over | at_last):
                            m.d.sync += [address.eq(0), over.eq(0), inverted.eq(~inverted)]
                            m.next = "WRITE"
                            with m.If(inverted):
                                m.next = "LAST"
            with m.State("LAST"):  # the last word is counted
                m.d.sync += self.busy.eq(0)
                m.next = "IDLE"
        return m
