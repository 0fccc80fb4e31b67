"""The controller of an SDRAM."""

from amaranth import Array, Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from lbq_hw.chips import CAS_LATENCY, Chip
from lbq_hw.chips.timing import DELAYS, reader_timing
from lbq_hw.core.external.page_queue import PageQueue
from lbq_hw.core.external.pins import PinBus
from lbq_hw.core.external.port import Capture, MemoryPort
from lbq_hw.core.external.sequencer import Sequencer
from lbq_hw.core.fabric.contracts import checked, must

__all__ = ["Sdram"]

_PAGES = 2  # pages that the queue holds


class Sdram(wiring.Component):
    """Reads up to a page in one uninterrupted burst, writes single words, and refreshes in time.

    A read is taken when the queue has room for a page, and reserves this room until its last word
    is taken. So the consumer may stall for any time.

    Timing. The first word of a read taken in cycle c is offered in cycle ``c + first - 1``,
    whatever ``capture`` is, and the other words follow, one per cycle.
    `lbq_hw.cycles.words.WordStream` has the cycles of consecutive pages; its decision in cycle c is
    made here in cycle c + 1. `Sequencer` has the times of the chip. After reset, accesses wait
    until the chip is initialised.

    Parameters
    ----------
    chip : `Chip`
    clock_hz : int
        Clock of the domain ``sync``.

    Members
    -------
    port : `MemoryPort`, flipped
    capture : `Capture`, in
        When words are sampled at the pins. It must not change unless ``empty`` is 1.
    empty : out
        All words of all reads have been taken.
    idle, phase : out
        As in `Sequencer`.
    bus : `PinBus`
    """

    def __init__(self, *, chip: Chip, clock_hz: int):
        self._chip = chip
        self._clock_hz = clock_hz
        self._timing = reader_timing(chip, clock_hz)
        super().__init__(
            {
                "port": In(MemoryPort(chip)),
                "capture": In(Capture()),
                "empty": Out(1),
                "idle": Out(1),
                "phase": Out(1),
                "bus": Out(PinBus(chip)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.sequencer = sequencer = Sequencer(chip=self._chip, clock_hz=self._clock_hz)
        m.submodules.queue = queue = PageQueue(
            bits=self._chip.data_bits, words=self._chip.page_words
        )
        access, bus = self.port.access, self.bus
        wiring.connect(m, queue.o, wiring.flipped(self.port.words))
        wiring.connect(m, wiring.flipped(access), sequencer.access)
        quiet = self._collect(m, sequencer.read, queue)
        held, room = Signal(range(_PAGES + 1)), Signal(init=1)
        taken = access.valid & access.ready & ~access.payload.write
        m.d.sync += [held.eq(held + taken - queue.freed), room.eq(held != _PAGES)]
        m.d.comb += [
            sequencer.allowed.eq(Mux(access.payload.write, quiet, room)),
            self.empty.eq(held == 0),
            self.idle.eq(sequencer.idle),
            self.phase.eq(sequencer.phase),
            bus.cs.eq(1),
            Cat(bus.ras, bus.cas, bus.we).eq(sequencer.command),
            *(
                getattr(bus, name).eq(getattr(sequencer, name))
                for name in ("clk_en", "ba", "a", "dqm", "dq_o", "dq_oe")
            ),
        ]
        if checked(platform):
            before = Signal.like(self.capture)
            m.d.sync += before.eq(self.capture)
            steady = self.capture.as_value() == before.as_value()
            must(m, platform, steady | self.empty, "the capture changes while words are read")
        return m

    def _collect(self, m, read, queue):
        """Sample words at the pins: a token, delayed by the capture, marks every requested word.

        Returns whether no word is in flight. Tokens of two reads have a gap between them, which
        marks the last word of a read.
        """
        cycles = self._chip.cycles(self._clock_hz)
        least = CAS_LATENCY + 2  # cycles from the bus to the chip and back, at pins of latency 1
        show = self._timing.first - cycles.rcd - 5
        tokens = Signal(show + 1)
        quiet = Signal(init=1)
        delay = self.capture.delay
        m.d.comb += queue.show.eq(tokens[show])
        m.d.sync += [
            tokens.eq(Cat(read, tokens)),
            quiet.eq(~tokens.any() & ~read),
            queue.store.valid.eq(Array(tokens[least : least + DELAYS])[delay]),
            queue.store.last.eq(~Array(tokens[least - 1 : least - 1 + DELAYS])[delay]),
            queue.store.word.eq(Mux(self.capture.falling, self.bus.dq_i[1], self.bus.dq_i[0])),
        ]
        return quiet
