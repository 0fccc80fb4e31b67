"""Reads the tape: checks items, holds each until its pass is done, and outputs its slices."""

from collections.abc import Iterator
from contextlib import contextmanager

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.crc.catalog import CRC32_ISO_HDLC
from amaranth.lib.wiring import In, Out

from lbq_hw.config import CoreConfig
from lbq_hw.core.errors import ErrorCode
from lbq_hw.core.external.tape_place import MixedPlace, TapePlace
from lbq_hw.core.fabric.contracts import must
from lbq_hw.isa import tape
from lbq_hw.isa.record import SLICE
from lbq_hw.isa.regions import Region

__all__ = ["PASS_BITS", "TapeReader"]

PASS_BITS = tape.MOST_PASSES.bit_length()
"""Bits that count passes."""
_HEAD_PAYLOAD = 3
_HEAD_SLICES = _HEAD_PAYLOAD + tape.ITEM_SLICES


class TapeReader(wiring.Component):
    """Takes the words of a tape, in the format of `lbq_hw.isa.tape`, and outputs slices to be
    written.

    Timing. Words are taken from the cycle after ``start`` on, one per cycle, with these gaps. After
    the last word of an item's head in cycle c, the next word is taken in cycle c + 2 or later, and
    only when ``after`` passes were done in an earlier cycle. After the last word of an item in
    cycle d, the next word is taken in cycle d + 2 or later. ``allow`` is 1 in cycle d + 1 of a
    PASS, ``ended`` from cycle d + 2 of END on. A slice of payload is output in the cycle after its
    last word was taken.

    Errors. TAPE and CRC as in docs/external-memory.md. When an error is found, slices of the faulty
    item may already have been output, even for addresses that do not exist. After an error, END or
    ``stop``, all words are taken as they arrive, and dropped.

    Parameters
    ----------
    config : `CoreConfig`
        With external memory.

    Members
    -------
    i : stream of words of `external` bits
    start, stop : in
        ``start``: begin with the first item, not while ``busy``. ``stop``: end at once.
    begun : in
        Number of passes that have begun.
    resting : in
        All passes that have begun are done, in this cycle or before.
    busy : out
        Words are read.
    waiting : out
        An item waits for a pass.
    allow : out
        Strobe: one more pass may begin.
    ended : out
        Everything up to END was right; stays until the next start.
    error : out
        An `ErrorCode`; stays until the next start.
    written, addr, data : out
        A slice to be written, as `HostWrites` takes it.
    """

    def __init__(self, config: CoreConfig):
        self._config = config
        super().__init__(
            {
                "i": In(stream.Signature(config.external)),
                "start": In(1),
                "stop": In(1),
                "begun": In(PASS_BITS),
                "resting": In(1),
                "busy": Out(1),
                "waiting": Out(1),
                "allow": Out(1),
                "ended": Out(1),
                "error": Out(ErrorCode),
                "written": Out(len(Region)),
                "addr": Out(SLICE),
                "data": Out(SLICE),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.crc = crc = CRC32_ISO_HDLC(len(self.i.payload)).create()
        kind = MixedPlace if self._config.narrow else TapePlace
        m.submodules.place = place = kind(self._config)
        item = Signal(data.StructLayout({"slices": 16, "after": PASS_BITS}))
        first, payload = Signal(), Signal()  # the first item; `data` has a slice of payload
        chains = Signal()  # `data` is the CRC of an item, which seeds the CRC of the next item
        # One register per cause of failure: each arrives late in its cycle, and their OR would be
        # even later.
        illegal, corrupt, unfinished, slice_error = Signal(), Signal(), Signal(), Signal()
        reads = Signal()  # the next word is read, not dropped
        item_slice, complete = self._assemble(m, reads)
        spent, wrong = self._watch(m, place, first, payload, complete)
        with m.If(wrong):
            m.d.sync += slice_error.eq(1)
        with m.If(corrupt):
            m.d.comb += self.error.eq(ErrorCode.CRC)
        with m.Elif(illegal | unfinished | slice_error):
            m.d.comb += self.error.eq(ErrorCode.TAPE)
        ends = place.address == tape.END
        m.d.comb += [
            crc.data.eq(Mux(chains, self.data, self.i.payload)),
            crc.valid.eq(chains | (self.i.valid & reads)),
            crc.start.eq(~self.busy),
            place.item_slice.eq(item_slice),
            place.step.eq(payload),
            self.i.ready.eq(reads | ~self.busy),
            self.addr.eq(place.address),
            self.written.eq(place.in_region & payload.replicate(len(Region))),
        ]
        m.d.sync += payload.eq(0)
        with m.If(complete):
            m.d.sync += self.data.eq(item_slice)

        @contextmanager
        def state(name: str) -> Iterator[None]:
            with m.State(name):
                yield
                with m.If(self.stop | wrong):
                    m.next = "IDLE"

        def fail(why):
            m.d.sync += why.eq(1)
            m.next = "IDLE"

        with m.FSM() as fsm:
            m.d.comb += self.busy.eq(~fsm.ongoing("IDLE"))
            with m.State("IDLE"), m.If(self.start):
                m.d.sync += [first.eq(1), self.ended.eq(0)]
                m.d.sync += Cat(illegal, corrupt, unfinished, slice_error).eq(0)
                m.next = "ADDRESS"
            with state("ADDRESS"):
                m.d.comb += [reads.eq(1), place.load.eq(complete)]
                with m.If(complete):
                    m.next = "COUNT"
            with state("COUNT"):
                m.d.comb += reads.eq(1)
                with m.If(complete):
                    m.d.sync += item.eq(item_slice)
                    m.next = "GATE"
            with state("GATE"):
                done = (item.after < self.begun) | ((item.after == self.begun) & self.resting)
                with m.If(~self._legal(place, first, item.as_value())):
                    fail(illegal)
                with m.Elif(~done):
                    m.d.comb += self.waiting.eq(1)
                with m.Elif(item.slices == 0):
                    m.next = "CRC"
                with m.Else():
                    m.next = "PAYLOAD"
            with state("PAYLOAD"):
                m.d.comb += reads.eq(1)
                with m.If(complete):
                    m.d.sync += [payload.eq(1), item.slices.eq(item.slices - 1)]
                    with m.If(item.slices == 1):
                        m.next = "CRC"
            with state("CRC"):
                m.d.comb += reads.eq(1)
                with m.If(complete):
                    m.next = "CHECK"
            with state("CHECK"):
                m.d.comb += [crc.start.eq(1), chains.eq(1)]
                m.d.sync += first.eq(0)
                m.next = "ADDRESS"
                with m.If(~crc.match_detected):
                    fail(corrupt)
                with m.Elif(place.partway | (ends & ~spent)):
                    fail(unfinished)
                with m.Elif(ends):
                    m.d.sync += self.ended.eq(1)
                    m.next = "IDLE"
                with m.Else():
                    m.d.comb += self.allow.eq(place.address == tape.PASS)
        must(m, platform, ~(self.start & self.busy), "a tape starts while one is read")
        return m

    def _assemble(self, m, reads):
        """The slice that ends with this word, and whether this word is taken and ends a slice."""
        word, taken = self.i.payload, self.i.valid & reads
        if len(word) == SLICE:
            return word, taken
        low, upper = Signal.like(word), Signal()
        with m.If(self.start):
            m.d.sync += upper.eq(0)
        with m.Elif(taken):
            m.d.sync += [low.eq(word), upper.eq(~upper)]
        return Cat(low, word), taken & upper

    def _watch(self, m, place, first, payload, complete):
        """Whether all slices that HEAD announces are taken, and whether one is wrong (TAPE)."""
        left = Signal(SLICE)  # slices left, plus the slices of HEAD, which are already taken
        spent, bad, wrong = Signal(), Signal(), Signal()
        with m.If(payload & first):
            # The last slice of payload wins: it is the number of slices.
            m.d.sync += [left.eq(self.data), spent.eq(self.data == _HEAD_SLICES)]
        with m.Elif(complete & ~first):
            m.d.sync += [left.eq(left - 1), spent.eq(left == _HEAD_SLICES + 1)]
        with m.Switch(Cat(place.address[:2], first)):
            for index, expected in enumerate(tape.head(self._config, 0).payload[:-1]):
                with m.Case(1 << 2 | index):
                    m.d.comb += bad.eq(self.data != expected)
            with m.Case("0--"):
                m.d.comb += bad.eq(~place.exists)
        m.d.comb += wrong.eq((payload & bad) | (complete & spent & ~first))
        return spent, wrong

    def _legal(self, place, first, item):
        """Whether the head of an item is legal."""
        marks = (place.address == tape.PASS) | (place.address == tape.END)
        writes = place.exists & ~place.partway
        head = (place.address == tape.HEAD) & (item == _HEAD_PAYLOAD)
        return Mux(first, head, (marks & (item == 0)) | writes)
