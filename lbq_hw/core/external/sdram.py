"""The controller of an SDRAM."""

from amaranth import Array, Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from lbq_hw.core.external.chips import Chip
from lbq_hw.core.external.pins import PinBus
from lbq_hw.core.external.port import DELAYS, Capture, MemoryPort
from lbq_hw.core.external.sequencer import Sequencer
from lbq_hw.core.memory.queue import Queue
from lbq_hw.core.sizes import check_size

__all__ = ["Sdram"]


class Sdram(wiring.Component):
    """Reads runs of words at about a word per cycle, writes single words, refreshes in time.

    A place in the queue is kept for every word before it is asked for, so that words wait for their
    consumer as long as it likes, and a burst ends when no place is left.

    Requests are carried out one at a time: while both are offered, writes come before reads. A read
    gives the words that the writes taken before it have left.

    Timing. With its row open, no refresh due and the queue empty, the first word of a read taken in
    cycle c is offered in cycle ``c + 7 + cas + delay``, and the others follow one per cycle but for
    changes of row and refreshes, see `Sequencer`. Writes to an open row are taken every 3 cycles.
    After reset, requests wait until the chip has come up.

    Parameters
    ----------
    chip : `Chip`
    clock_hz : int
        Of the domain ``sync``.
    depth : int
        Words that can wait, at least 32. Cheapest is one more than a power of two.

    Members
    -------
    port : `MemoryPort`, flipped
    capture : `Capture`, in
        When words are taken from the pins. It must not change unless ``idle`` is 1.
    flush : in
        Ends the read in progress and drops its words; no other is taken while it is 1. It must stay
        1 until ``idle`` is 1.
    idle : out
        No word is still to be given.
    bus : `PinBus`
    """

    def __init__(self, *, chip: Chip, clock_hz: int, depth: int = 513):
        check_size("depth", depth, least=32)
        self._chip = chip
        self._clock_hz = clock_hz
        self._cycles = chip.cycles(clock_hz)
        self._depth = depth
        super().__init__(
            {
                "port": In(MemoryPort(chip)),
                "capture": In(Capture()),
                "flush": In(1),
                "idle": Out(1),
                "bus": Out(PinBus(chip)),
            }
        )

    @property
    def cycles(self):
        """The chip's timings, as `Cycles`."""
        return self._cycles

    def elaborate(self, _platform):
        m = Module()
        m.submodules.queue = queue = Queue(self._chip.data_bits, depth=self._depth)
        m.submodules.sequencer = sequencer = Sequencer(chip=self._chip, clock_hz=self._clock_hz)
        self._take(m, sequencer)
        self._collect(m, sequencer, queue)
        bus = self.bus
        m.d.comb += [
            bus.cs.eq(1),
            Cat(bus.ras, bus.cas, bus.we).eq(sequencer.command),
            *(
                getattr(bus, name).eq(getattr(sequencer, name))
                for name in ("clk_en", "ba", "a", "dqm", "dq_o", "dq_oe")
            ),
        ]
        return m

    def _take(self, m, sequencer):
        """Requests, one at a time: a write, or a read of the words that are left."""
        read, write = self.port.read, self.port.write
        address = Signal(self._chip.address_bits)
        left = Signal(self._chip.address_bits + 1, init=-1)  # less one, so that its sign ends
        writing, busy = Signal(), Signal()
        data = Signal(self._chip.data_bits)
        m.d.comb += [
            busy.eq(writing | ~left[-1]),
            write.ready.eq(~busy),
            read.ready.eq(~busy & ~write.valid & ~self.flush),
            sequencer.reading.eq(~left[-1]),
            sequencer.writing.eq(writing),
            sequencer.address.eq(address),
            sequencer.data.eq(data),
        ]
        with m.If(sequencer.read):
            m.d.sync += [address.eq(address + 1), left.eq(left - 1)]
        with m.If(sequencer.written):
            m.d.sync += writing.eq(0)
        with m.If(write.valid & write.ready):
            m.d.sync += [address.eq(write.payload.address), data.eq(write.payload.data)]
            m.d.sync += writing.eq(1)
        with m.Elif(read.valid & read.ready):
            m.d.sync += [address.eq(read.payload.address), left.eq(read.payload.more)]
        with m.If(self.flush):
            m.d.sync += left.eq(-1)

    def _collect(self, m, sequencer, queue):
        """Words from the pins: a token travels with every word that was asked for."""
        least = self._cycles.cas + 2  # cycles from the bus to the chip and back, at pins of one
        tokens = Signal(least + DELAYS)
        # Places in the queue that no word was promised, less one, so that the sign says none.
        places = Signal(range(-1, self._depth), init=self._depth - 1)
        words = self.port.words
        m.d.comb += [
            sequencer.free.eq(~places[-1]),
            sequencer.quiet.eq(~tokens.any()),
            words.valid.eq(queue.o.valid & ~self.flush),
            words.payload.eq(queue.o.payload),
            queue.o.ready.eq(words.ready | self.flush),
            self.idle.eq(~sequencer.reading & (places == self._depth - 1)),
        ]
        m.d.sync += [
            tokens.eq(Cat(sequencer.read, tokens)),
            places.eq(places + (queue.o.valid & queue.o.ready) - sequencer.read),
            queue.i.valid.eq(Array(tokens[least:])[self.capture.delay]),
            queue.i.payload.eq(Mux(self.capture.falling, self.bus.dq_i[1], self.bus.dq_i[0])),
        ]
