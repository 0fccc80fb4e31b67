"""Finds out when words are to be taken from the pins of an SDRAM."""

from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from lbq_hw.core.external.pattern import pattern
from lbq_hw.core.external.port import Capture, MemoryPort
from lbq_hw.external.chips import Chip

__all__ = ["Calibrate"]


class Calibrate(wiring.Component):
    """Chooses the capture in the middle of those that work.

    Once after reset it writes a pattern to the last `WORDS` words of the memory and reads it back
    with every capture in turn. Of the first captures side by side with which all words are right it
    chooses the middle one, of two middle ones the earlier.

    Errors. Where no capture works, ``failed`` is 1 from the end on.

    Parameters
    ----------
    chip : `Chip`

    Members
    -------
    port : `MemoryPort`
        Used until ``done`` or ``failed``.
    empty : in
        Of the memory.
    capture : `Capture`, out
        Changes while ``empty`` only; the chosen one once ``done``.
    done, failed : out
        At the end one of them becomes 1, and stays.
    """

    WORDS = 64

    def __init__(self, *, chip: Chip):
        self._chip = chip
        super().__init__(
            {
                "port": Out(MemoryPort(chip)),
                "empty": In(1),
                "capture": Out(Capture()),
                "done": Out(1),
                "failed": Out(1),
            }
        )

    def elaborate(self, _platform):
        m = Module()
        port = self.port
        begin = self._chip.words - self.WORDS
        address = Signal(self._chip.address_bits, init=begin)
        expected = pattern(address, self._chip.data_bits)
        setting = Signal(range(Capture.SETTINGS))
        first, last = Signal.like(setting), Signal.like(setting)
        found, over, right = Signal(), Signal(), Signal()
        chosen = Signal.like(setting)
        word, came = Signal(self._chip.data_bits), Signal()

        m.d.sync += [word.eq(port.words.payload), came.eq(port.words.valid & port.words.ready)]
        m.d.comb += [
            port.access.payload.address.eq(address),
            port.access.payload.data.eq(expected),
            port.access.payload.more.eq(self.WORDS - 1),
            chosen.eq((first + last) >> 1),
            self.capture.eq(setting),
        ]

        def count():
            m.d.sync += address.eq(address + 1)
            with m.If(address.all()):
                m.d.sync += address.eq(begin)

        with m.FSM():
            with m.State("WRITE"):
                m.d.comb += [port.access.valid.eq(1), port.access.payload.write.eq(1)]
                with m.If(port.access.ready):
                    count()
                    with m.If(address.all()):
                        m.next = "REQUEST"
            with m.State("REQUEST"):
                m.d.comb += port.access.valid.eq(1)
                m.d.sync += right.eq(1)
                with m.If(port.access.ready):
                    m.next = "COMPARE"
            with m.State("COMPARE"):
                m.d.comb += port.words.ready.eq(1)
                with m.If(came):
                    count()
                    with m.If(word != expected):
                        m.d.sync += right.eq(0)
                    with m.If(address.all()):
                        m.next = "JUDGE"
            with m.State("JUDGE"), m.If(self.empty):
                with m.If(right & ~over):
                    m.d.sync += [found.eq(1), last.eq(setting)]
                    with m.If(~found):
                        m.d.sync += first.eq(setting)
                with m.If(~right & found):
                    m.d.sync += over.eq(1)
                m.d.sync += setting.eq(setting + 1)
                m.next = "REQUEST"
                with m.If(setting == Capture.SETTINGS - 1):
                    m.next = "CHOOSE"
            with m.State("CHOOSE"):
                m.d.sync += [setting.eq(chosen), self.done.eq(found), self.failed.eq(~found)]
                m.next = "OVER"
            with m.State("OVER"):
                pass
        return m
