"""The last stage of the scanner: turns words into events."""

from amaranth import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from lbq_hw.core.payload import Event
from lbq_hw.core.scan.bits import at_least, encode, take_lowest
from lbq_hw.core.scan.fetch import Word

__all__ = ["EventMaker"]


class EventMaker(wiring.Component):
    """Turns words into events, one per cycle, with the doublings that lead to each exponent.

    The last event of a step has ``end``: the event of its last bit if this has exponent 0,
    otherwise the last doubling, or a null event of its own.

    Timing. The first event of a word is offered two cycles after the word was taken. A word that
    makes n events is followed by the next word n cycles later.

    Parameters
    ----------
    entry : `Word`
    event : `Event`
    granule : int
        Power of two that divides ``lo`` of every identity.

    Members
    -------
    i : stream of `Word`
    o : stream of `Event`
    """

    def __init__(self, *, entry: Word, event: Event, granule: int):
        self._granule = granule
        super().__init__({"i": In(stream.Signature(entry)), "o": Out(stream.Signature(event))})

    def elaborate(self, _platform):
        m = Module()
        layout, given = self.i.payload.shape(), self.i.payload
        # After a reset this is the end of a step, so that the first word begins one.
        word = Signal(layout, init={"end": 1})
        word_valid, word_free, first = Signal(), Signal(), Signal()
        due = Signal.like(word.exponent)
        made = Signal(layout)
        made_valid, made_free = Signal(), Signal()
        clear, double, null = Signal(), Signal(), Signal()
        end_only, next_end_only = Signal(), Signal()  # the word has no bits: it only ends the step
        next_exponent = Signal.like(word.exponent)

        doubling = due > 1
        last = ~doubling & ~word.many
        several = self._more_than(m, 1, word)
        identity = word.identity if layout.identities else Const(0)
        # The doublings down to exponent 0 follow the event of the step's last bit.
        tail = word.end & word.exponent.any()
        falls = tail & (identity | ~several)
        m.d.comb += [
            next_end_only.eq(given.end & ~given.many & given.exponent[0]),
            next_exponent.eq(Mux(next_end_only, 0, given.exponent)),
            made_free.eq(~made_valid | self.o.ready),
            word_free.eq(~word_valid | (made_free & last)),
            self.i.ready.eq(word_free),
            self.o.valid.eq(made_valid),
            self.o.payload.mask.eq(~null.replicate(len(self.o.payload.mask))),
            self.o.payload.clear.eq(clear),
            self.o.payload.double.eq(double),
            self.o.payload.end.eq(made.end),
        ]
        with m.If(word_free):
            m.d.sync += word_valid.eq(self.i.valid)
            with m.If(self.i.valid):
                kept = (name for name, _ in layout if name not in ("bits", *layout.counts))
                m.d.sync += [
                    *(word[name].eq(given[name]) for name in kept),
                    word.exponent.eq(next_exponent),
                    first.eq(word.end),
                    end_only.eq(next_end_only),
                ]
                with m.If(word.end):
                    m.d.sync += due.eq(0)
                with m.Else():
                    m.d.sync += due.eq(word.exponent - next_exponent)
        with m.Elif(made_free):
            with m.If(doubling):
                m.d.sync += due.eq(due - 1)
            with m.Else():
                m.d.sync += [due.eq(0), first.eq(0)]
                # At least three bits set now means at least two remain.
                three = self._more_than(m, 2, word)
                m.d.sync += word.many.eq(Mux(tail, several & ~identity, three))
                with m.If(falls):
                    m.d.sync += [end_only.eq(1), due.eq(word.exponent), word.exponent.eq(0)]
        # ``i.valid`` arrives late, so the bits are loaded whether or not there is a next word.
        with m.If(~word_valid | (made_free & ~doubling)):
            self._take(m, word, given, word_free)
        with m.If(made_free):
            m.d.sync += [
                made_valid.eq(word_valid),
                made.eq(word),
                clear.eq(first),
                double.eq(due.any()),
                null.eq(doubling | end_only),
                made.end.eq(word.end & last),
            ]
        self._make(m, word, made, made_free, identity)
        if layout.identities:
            self._mask(m, made, null)
        return m

    def _take(self, m, word, given, word_free):
        """Load the bits of the next word, or keep the bits that are left of this word."""
        _, rest = take_lowest(word.bits)
        m.d.sync += word.bits.eq(Mux(word_free, given.bits, rest))

    def _more_than(self, m, events, word):
        """Whether a word makes more than this many events."""
        return at_least(m, events + 1, word.bits)

    def _make(self, m, word, made, made_free, identity):
        """Compute the weight row of an event."""
        lowest, _ = take_lowest(word.bits)
        with m.If(made_free & ~identity):
            m.d.sync += made.bits.eq(lowest)
        m.d.comb += self.o.payload.row.eq(made.row + encode(made.bits))
        if made.shape().identities:
            with m.If(made.identity):
                m.d.comb += self.o.payload.row.eq(made.row)

    def _mask(self, m, made, null):
        """Make the lane mask of an identity out of its bits."""
        event, unit = self.o.payload, ceil_log2(self._granule)
        place = Cat(made.lo[unit:])
        lanes = Signal.like(event.mask)
        m.d.comb += lanes.eq(made.bits >> (place << unit))
        with m.If(made.identity):
            m.d.comb += event.mask.eq(lanes & ~null.replicate(len(lanes)))
