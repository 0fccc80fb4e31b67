"""The external memory as the core sees it."""

from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from lbq_hw.core.external.calibrate import Calibrate
from lbq_hw.core.external.chips import Chip
from lbq_hw.core.external.pins import PinBus
from lbq_hw.core.external.port import Capture, MemoryPort
from lbq_hw.core.external.sdram import Sdram
from lbq_hw.core.external.selftest import SelfTest

__all__ = ["ExternalMemory"]


class ExternalMemory(wiring.Component):
    """An SDRAM with its controller, calibrated after reset and tested on demand.

    Calibration overwrites the last `Calibrate.WORDS` words, a test all that it goes over.

    Timing. As `Sdram` while ``ready`` and not ``test_busy``; at other times no request is taken.

    Errors. Where calibration finds no capture that works, ``failed`` is 1 and no request is ever
    taken.

    Parameters
    ----------
    chip : `Chip`
    clock_hz : int
        Of the domain ``sync``.
    depth : int
        Words that can wait, see `Sdram`.

    Members
    -------
    port : `MemoryPort`, flipped
    flush, idle : in, out
        As in `Sdram`.
    ready, failed : out
        One of them becomes 1 after calibration, and stays.
    capture : `Capture`, out
        The one in use.
    test_start, test_last : in
        As in `SelfTest`. A test must be started only while ``ready`` and ``idle``, and no request
        be offered in that cycle.
    test_busy, differing : out
        As in `SelfTest`.
    bus : `PinBus`
    """

    def __init__(self, *, chip: Chip, clock_hz: int, depth: int = 513):
        self._chip = chip
        self._sdram = Sdram(chip=chip, clock_hz=clock_hz, depth=depth)
        super().__init__(
            {
                "port": In(MemoryPort(chip)),
                "flush": In(1),
                "idle": Out(1),
                "ready": Out(1),
                "failed": Out(1),
                "capture": Out(Capture()),
                "test_start": In(1),
                "test_last": In(chip.address_bits),
                "test_busy": Out(1),
                "differing": Out(chip.address_bits + 2),
                "bus": Out(PinBus(chip)),
            }
        )

    def elaborate(self, _platform):
        m = Module()
        m.submodules.sdram = sdram = self._sdram
        m.submodules.calibrate = calibrate = Calibrate(chip=self._chip)
        m.submodules.selftest = selftest = SelfTest(chip=self._chip)
        wiring.connect(m, sdram.bus, wiring.flipped(self.bus))
        used = Signal()
        m.d.comb += [
            calibrate.idle.eq(sdram.idle),
            sdram.capture.eq(calibrate.capture),
            self.capture.eq(calibrate.capture),
            self.ready.eq(calibrate.done),
            self.failed.eq(calibrate.failed),
            self.idle.eq(sdram.idle),
            selftest.start.eq(self.test_start),
            selftest.last.eq(self.test_last),
            self.test_busy.eq(selftest.busy),
            self.differing.eq(selftest.differing),
            used.eq(calibrate.done & ~selftest.busy),
            sdram.flush.eq(self.flush & used),
        ]
        for port, chosen in (
            (calibrate.port, ~calibrate.done & ~calibrate.failed),
            (selftest.port, selftest.busy),
            (self.port, used),
        ):
            with m.If(chosen):
                for name in ("read", "write"):
                    theirs, ours = getattr(port, name), getattr(sdram.port, name)
                    m.d.comb += [
                        ours.valid.eq(theirs.valid),
                        ours.payload.eq(theirs.payload),
                        theirs.ready.eq(ours.ready),
                    ]
                m.d.comb += [
                    port.words.valid.eq(sdram.port.words.valid),
                    sdram.port.words.ready.eq(port.words.ready),
                ]
            m.d.comb += port.words.payload.eq(sdram.port.words.payload)
        return m
