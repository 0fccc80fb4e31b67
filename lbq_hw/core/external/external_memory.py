"""The external memory, with the ports that the core uses."""

from amaranth import Cat, Const, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from lbq_hw.chips import Chip
from lbq_hw.core.external.calibrate import Calibrate
from lbq_hw.core.external.host_memory_port import HostMemoryPort
from lbq_hw.core.external.pins import PinBus
from lbq_hw.core.external.port import Capture
from lbq_hw.core.external.sdram import Sdram
from lbq_hw.core.external.selftest import SelfTest
from lbq_hw.core.external.slices import Slices
from lbq_hw.core.external.tape_pages import TapePages
from lbq_hw.core.external.tape_port import TapePort
from lbq_hw.isa.record import SLICE

__all__ = ["ExternalMemory"]


class ExternalMemory(wiring.Component):
    """An SDRAM with its controller, calibrated after reset. It streams the tape, and reads and
    writes slices for the host.

    The host may request another calibration. It begins when the last words of a run have been
    drained, and ``calibrated`` is 0 until its end. A calibration overwrites the last
    `Calibrate.WORDS` words; a self-test overwrites all words that it tests.

    Blocks: `Calibrate`, `SelfTest`, `TapePages` and `Slices`; one of them at a time uses `Sdram`.

    Timing. For a run that starts in cycle 0, `WordStream` with `reader_timing` of chip and clock
    has the cycle in which each word is first offered. ``aligned`` is 1 in one cycle per refresh
    interval, if no access is in progress or was in the previous cycle.

    Errors. If calibration finds no capture that works, ``failed`` is 1, ``calibrated`` stays 0, and
    no request is taken until a later calibration finds one.

    Parameters
    ----------
    chip : `Chip`
    clock_hz : int
        Clock of the domain ``sync``.

    Members
    -------
    tape : `TapePort`, flipped
    host : `HostMemoryPort`, flipped
    capture : `Capture`, out
        The capture in use.
    bus : `PinBus`
    """

    def __init__(self, *, chip: Chip, clock_hz: int):
        chip.cycles(clock_hz)  # refuses a clock that the chip cannot have
        self._chip = chip
        self._clock_hz = clock_hz
        super().__init__(
            {
                "tape": In(TapePort(chip.data_bits)),
                "host": In(HostMemoryPort()),
                "capture": Out(Capture()),
                "bus": Out(PinBus(chip)),
            }
        )

    def elaborate(self, _platform):
        m = Module()
        chip, tape, host = self._chip, self.tape, self.host
        m.submodules.sdram = sdram = Sdram(chip=chip, clock_hz=self._clock_hz)
        m.submodules.calibrate = calibrate = Calibrate(chip=chip, clock_hz=self._clock_hz)
        m.submodules.selftest = selftest = SelfTest(chip=chip)
        m.submodules.pages = pages = TapePages(chip=chip)
        m.submodules.slices = slices = Slices(chip=chip)
        connect(m, sdram.bus, flipped(self.bus))
        connect(m, pages.words, flipped(tape.words))
        connect(m, flipped(host.request), slices.request)
        connect(m, slices.answer, flipped(host.answer))
        halves = SLICE // chip.data_bits
        upper = Const(halves - 1, halves - 1)  # the last word of a slice
        unused = Signal()
        m.d.comb += [
            calibrate.empty.eq(sdram.empty),
            sdram.capture.eq(calibrate.capture),
            self.capture.eq(calibrate.capture),
            pages.start.eq(tape.start),
            pages.stop.eq(tape.stop),
            pages.empty.eq(sdram.empty),
            tape.calibrated.eq(calibrate.done),
            tape.aligned.eq(sdram.phase & sdram.idle & unused),
            host.failed.eq(calibrate.failed),
            host.captures.passed.eq(calibrate.passed),
            host.captures.used.eq(calibrate.capture),
            calibrate.again.eq(host.calibrate),
            selftest.start.eq(host.test_start),
            selftest.last.eq(Cat(upper, host.test_last)),
            host.test_busy.eq(selftest.busy),
            host.test_differing.eq(selftest.differing),
        ]
        # A register, because the start of a run comes from far away. Its delay is safe: the host,
        # which also starts runs, begins nothing else in the cycle before, and an access clears
        # `idle` at once.
        m.d.sync += unused.eq(calibrate.done & sdram.empty & ~pages.active & ~selftest.busy)
        users = (
            (pages.port, pages.active),  # until the words of a run are drained
            (calibrate.port, ~calibrate.done),
            (selftest.port, selftest.busy),
            (slices.port, 1),
        )
        ours = sdram.port
        m.d.comb += [port.words.payload.eq(ours.words.payload) for port, _ in users]
        for number, (port, wants) in enumerate(users):
            with m.Elif(wants) if number else m.If(wants):
                m.d.comb += [
                    ours.access.valid.eq(port.access.valid),
                    ours.access.payload.eq(port.access.payload),
                    port.access.ready.eq(ours.access.ready),
                    port.words.valid.eq(ours.words.valid),
                    ours.words.ready.eq(port.words.ready),
                ]
        return m
