"""Runs the core on pixels that the host sends over the serial line, and returns the results."""

from amaranth import Cat, Module, Mux, ResetInserter, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from lbq_hw.core.fabric.contracts import must
from lbq_hw.core.host.port import PortSignature
from lbq_hw.core.host.switch import PortSwitch
from lbq_hw.core.pixels.input_runner import InputRunner
from lbq_hw.core.pixels.pixel_input import PixelInput
from lbq_hw.core.stream.queue import Queue
from lbq_hw.core.stream.register_slice import RegisterSlice
from lbq_hw.isa import regions
from lbq_hw.isa.door import CYCLES, DOOR, NUMBER, NUMBER_BITS, Opening
from lbq_hw.isa.record import SLICE
from lbq_hw.isa.regions import REGISTERS, Region

__all__ = ["Door"]

_CLEAR = 1  # bit of the register `control`
_INPUT_BITS = 3  # counts inputs: one in each stage of the pixel input, and the running one


class Door(wiring.Component):
    """Passes the host's requests on to the core, and handles the requests of `lbq_hw.isa.door`
    itself: it turns words of pixels into plane words, runs the core on them, and answers reads of a
    result when the run has ended.

    A result is kept until its last slice was read, and no further run begins until then. If a word
    of pixels arrives and there is no room for it, the result is dropped; the host sees this in the
    number of the next result. So a request never waits for another request, only for a run, or for
    pixels that are being processed.

    Timing. A request to the core takes one cycle more than at the core's own port, and another
    cycle if the `InputRunner` has its turn. A word of pixels is taken when the queue has room, or
    without a queue when the `PixelInput` takes it. A read of a result's cycles or number waits
    until the run has ended.

    Parameters
    ----------
    opening : `Opening`

    Members
    -------
    link : `PortSignature`, flipped
    port : `PortSignature`
    busy : in
        A run is in progress.
    active : out
        A run is in progress, or will begin without a further request.
    """

    def __init__(self, opening: Opening):
        self._opening = opening
        super().__init__(
            {
                "link": In(PortSignature()),
                "port": Out(PortSignature()),
                "busy": In(1),
                "active": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.switch = switch = PortSwitch()
        m.submodules.pixels = pixels = PixelInput(self._opening.pixels, word_bits=SLICE)
        m.submodules.runner = runner = InputRunner()
        connect(m, runner.port, switch.second)
        connect(m, switch.port, flipped(self.port))
        w = _Work(self.link)
        words, waiting = self._words(m, pixels, w.clear)
        self._take_pixels(m, w, words)
        self._pass_on(m, w, switch.first)
        self._answer(m, w, switch.first, waiting, failed=runner.failed)
        m.d.comb += [
            w.clear.eq(w.asked_to_clear & ~runner.writing),
            pixels.by_words.eq(1),
            pixels.clear.eq(w.clear),
            runner.busy.eq(self.busy),
            runner.i.payload.eq(pixels.o.payload),
            runner.i.valid.eq(pixels.o.valid & ~w.result),
            pixels.o.ready.eq(runner.i.ready & ~w.result),
        ]
        self._count(m, w, pixels.last, runner)
        must(m, platform, ~(w.result & runner.active), "a run begins while a result waits")
        return m

    def _words(self, m, pixels, clear):
        """Returns the stream that takes words of pixels, and whether any are left behind it."""
        if not self._opening.queue:
            return pixels.words, pixels.working
        m.submodules.queue = queue = ResetInserter(clear)(Queue(SLICE, depth=self._opening.queue))
        # Cuts the path from the queue's memory, perhaps far away, to the runner's state machine.
        m.submodules.first = first = ResetInserter(clear)(RegisterSlice(SLICE))
        connect(m, queue.o, first.i)
        connect(m, first.o, pixels.words)
        return queue.i, queue.o.valid | first.o.valid | pixels.working

    def _take_pixels(self, m, w, words):
        """Take words of pixels. If there is no room for one, drop the result that waits."""
        pixel_write = self.link.valid & w.pixel_write & ~w.asked_to_clear
        m.d.comb += [
            words.valid.eq(pixel_write),
            words.payload.eq(self.link.w_data),
            w.pixel_taken.eq(words.ready & ~w.asked_to_clear),
        ]
        with m.If(pixel_write & ~words.ready):
            m.d.sync += w.result.eq(0)

    def _pass_on(self, m, w, core):
        """Pass requests on to the core; a result is read from its logits and its cycle counter."""
        link, asks = self.link, Signal()
        low, region = link.addr[: regions.SHIFT], link.addr[regions.SHIFT :]
        control = ~w.own & link.write & (link.addr == REGISTERS["control"].address)
        m.d.comb += [
            core.valid.eq(asks),
            core.w_data.eq(link.w_data),
            w.passed.eq(asks & core.ready),
        ]
        # Registers separate the link's state machine from the core.
        passes = ~w.pixel_write & ~w.number & (w.read_ready | ~w.cycles)
        m.d.sync += [
            asks.eq(link.valid & passes & ~link.ready),
            core.write.eq(link.write),
            core.addr.eq(Cat(low, Mux(w.own, Region.LOGITS, region))),
        ]
        with m.If(w.passed & control & link.w_data[_CLEAR]):
            m.d.sync += w.asked_to_clear.eq(1)
        with m.Elif(w.clear):
            m.d.sync += w.asked_to_clear.eq(0)
        with m.If(w.cycles):
            m.d.sync += core.addr.eq(REGISTERS["cycles"].address)
        with m.If(w.passed & w.own & (low == self._opening.results - 1)):
            m.d.sync += w.result.eq(0)

    def _answer(self, m, w, core, waiting, *, failed):
        """Let a read wait until a run has ended, and answer requests."""
        link, waits, told = self.link, Signal(), Signal()
        m.d.comb += [
            # All of this ends without a further request.
            self.active.eq((w.inputs != 0) | w.dropped | self.busy),
            waits.eq(~w.result & (self.active | waiting)),
            link.ready.eq(Mux(w.pixel_write, w.pixel_taken, Mux(w.number, w.read_ready, w.passed))),
            link.r_valid.eq(told | core.r_valid),
            link.r_data.eq(Mux(told, Cat(w.runs, failed), core.r_data)),
        ]
        # New work arrives only through the link: once `waits` is 0, it stays 0 while the read is
        # pending.
        m.d.sync += [
            w.read_ready.eq(link.valid & (w.cycles | w.number) & ~waits & ~link.ready),
            told.eq(w.number & w.read_ready),
        ]

    def _count(self, m, w, last, runner):
        """Count unfinished inputs, and runs. The run of a dropped input does not count."""
        ends = runner.done & ~w.dropped
        m.d.sync += w.inputs.eq(w.inputs + last - ends)
        with m.If(runner.done):
            m.d.sync += w.dropped.eq(0)
        with m.If(ends):
            m.d.sync += [w.result.eq(1), w.runs.eq(w.runs + 1)]
        with m.If(w.clear):
            m.d.sync += [
                w.result.eq(0),
                w.inputs.eq(0),
                w.runs.eq(0),
                w.dropped.eq(runner.active & ~runner.done),
            ]


class _Work:
    """Signals that the parts of a `Door` share: the current request, and work in progress."""

    def __init__(self, link):
        low, region = link.addr[:NUMBER_BITS], link.addr[regions.SHIFT :]
        self.own = region == DOOR >> regions.SHIFT
        self.pixel_write = self.own & link.write
        self.cycles = self.own & ~link.write & (low == CYCLES)
        self.number = self.own & ~link.write & (low == NUMBER)
        # A word of pixels is taken; a request is passed on; a read no longer waits.
        self.pixel_taken = Signal()
        self.passed = Signal()
        self.read_ready = Signal()
        # A clear is requested; it happens in this cycle; the input of the run in progress was
        # dropped.
        self.asked_to_clear = Signal()
        self.clear = Signal()
        self.dropped = Signal()
        # A result can be read; complete inputs whose run has not ended; runs that have ended.
        self.result = Signal()
        self.inputs = Signal(_INPUT_BITS)
        self.runs = Signal(NUMBER_BITS)
