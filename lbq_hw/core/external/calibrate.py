"""Finds the timing at which the words of an SDRAM are sampled correctly at the pins."""

from amaranth import Cat, Const, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from lbq_hw.chips import CALIBRATION_WORDS, Chip
from lbq_hw.chips.eye import Sampling
from lbq_hw.core.external.pattern import pattern
from lbq_hw.core.external.port import Capture, MemoryPort

__all__ = ["Calibrate"]


class Calibrate(wiring.Component):
    """Tries every capture, and chooses the one nearest to the middle of a word.

    After reset, and after each ``again``, it writes a pattern to the last `WORDS` words of the
    memory and reads it back `TRIES` times with every capture in turn. A capture passes if all words
    of all tries are right. At most two neighbouring captures pass, one per edge of the clock. If
    the capture at the edge that `lbq_hw.chips.eye` prefers for the chip and the clock has passed,
    it is chosen, otherwise the first capture that passed.

    Errors. If no capture passes, ``failed`` is 1 from the end of the calibration on.

    Parameters
    ----------
    chip : `Chip`
    clock_hz : int
        Clock of the domain ``sync``.

    Members
    -------
    port : `MemoryPort`
        Used until ``done`` or ``failed``.
    empty : in
        As in `Sdram`.
    again : in
        Calibrate once more; ignored while a calibration is in progress. In the next cycle ``done``
        and ``failed`` are 0.
    capture : `Capture`, out
        Changes only while ``empty``; the chosen capture once ``done``.
    passed : out, a bit for each capture
        Which captures passed in the last calibration, once it has ended.
    done, failed : out
        The result: one of the two is 1 from the end of the calibration until ``again``.
    """

    WORDS = CALIBRATION_WORDS
    TRIES = 4  # a power of two, as the number of words is

    def __init__(self, *, chip: Chip, clock_hz: int):
        self._chip = chip
        self._falling = int(Sampling(chip=chip, clock_hz=clock_hz).falling)
        super().__init__(
            {
                "port": Out(MemoryPort(chip)),
                "empty": In(1),
                "again": In(1),
                "capture": Out(Capture()),
                "passed": Out(Capture.SETTINGS),
                "done": Out(1),
                "failed": Out(1),
            }
        )

    def elaborate(self, _platform):
        m = Module()
        port = self.port
        number = Signal(range(self.WORDS))  # index among the last `WORDS` words
        address = Cat(number, Const(-1, self._chip.address_bits - len(number)))
        expected = pattern(address, self._chip.data_bits)
        setting, chosen = Signal(Capture()), Signal(Capture())
        tries, right, found = Signal(range(self.TRIES)), Signal(), Signal()
        word, word_valid = Signal(self._chip.data_bits), Signal()
        nearer = (setting.falling == self._falling) & (chosen.falling != self._falling)

        m.d.sync += [
            word.eq(port.words.payload),
            word_valid.eq(port.words.valid & port.words.ready),
        ]
        m.d.comb += [
            port.access.payload.address.eq(address),
            port.access.payload.data.eq(expected),
            port.access.payload.more.eq(self.WORDS - 1),
            self.capture.eq(setting),
        ]

        with m.FSM():
            with m.State("WRITE"):
                m.d.comb += [port.access.valid.eq(1), port.access.payload.write.eq(1)]
                m.d.sync += [found.eq(0), right.eq(1)]
                with m.If(port.access.ready):
                    m.d.sync += number.eq(number + 1)
                    with m.If(number.all()):
                        m.d.sync += setting.eq(0)
                        m.next = "REQUEST"
            with m.State("REQUEST"):
                m.d.comb += port.access.valid.eq(1)
                with m.If(port.access.ready):
                    m.next = "COMPARE"
            with m.State("COMPARE"):
                m.d.comb += port.words.ready.eq(1)
                with m.If(word_valid):
                    m.d.sync += number.eq(number + 1)
                    with m.If(word != expected):
                        m.d.sync += right.eq(0)
                    with m.If(number.all()):
                        m.d.sync += tries.eq(tries + 1)
                        m.next = "REQUEST"
                        with m.If(tries.all()):
                            m.next = "JUDGE"
            with m.State("JUDGE"), m.If(self.empty):
                m.d.sync += [right.eq(1), self.passed.eq(Cat(self.passed[1:], right))]
                with m.If(right & (~found | nearer)):
                    m.d.sync += [found.eq(1), chosen.eq(setting)]
                m.d.sync += setting.eq(setting.as_value() + 1)
                m.next = "REQUEST"
                with m.If(setting.as_value() == Capture.SETTINGS - 1):
                    m.next = "CHOOSE"
            with m.State("CHOOSE"):
                m.d.sync += [setting.eq(chosen), self.done.eq(found), self.failed.eq(~found)]
                m.next = "OVER"
            with m.State("OVER"), m.If(self.again):
                m.d.sync += [self.done.eq(0), self.failed.eq(0)]
                m.next = "WRITE"
        return m
