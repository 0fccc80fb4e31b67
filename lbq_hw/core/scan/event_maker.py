"""The last stage of the scanner: words become events."""

from functools import reduce
from operator import or_

from amaranth import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from lbq_hw.core.payload import Event
from lbq_hw.core.scan.bits import at_least, encode, take_lowest
from lbq_hw.core.scan.fetch import Word

__all__ = ["EventMaker"]

_LEFT = ("bits", "count", "even", "odd")  # of a word: what changes with each of its events


class EventMaker(wiring.Component):
    """Turns words into events, one per cycle, with the doublings that lead to each exponent.

    The last event of a step has ``end``. It is that of the last bit, if that has exponent 0; else
    the last doubling, or an event for the end alone.

    Where words are ``counted``, the bits that are left of one are counted down, which is faster
    than to look at all of them. With ``pairs``, an event is for the lowest even and the lowest odd
    bit: a word has as many events as it has of the bits that are more.

    Timing. The first event of a word is offered two cycles after the word was taken. The next word
    is taken as many cycles later as the word has events.
    """

    def __init__(self, *, entry: Word, event: Event, granule: int):
        self._granule = granule
        super().__init__({"i": In(stream.Signature(entry)), "o": Out(stream.Signature(event))})

    def elaborate(self, _platform):
        m = Module()
        layout = self.i.payload.shape()
        # A reset leaves an end here, so that the first word opens a step.
        word = Signal(layout, init={"end": 1})
        word_valid = Signal()
        word_free = Signal()
        first = Signal()
        due = Signal.like(word.exponent)
        made = Signal(layout)
        single = Signal.like(made.bits, reset_less=True) if layout.counts else made.bits
        made_valid = Signal()
        made_free = Signal()
        clear = Signal()
        double = Signal()
        null = Signal()
        alone, next_alone = Signal(), Signal()  # an end without bits
        next_exponent = Signal.like(word.exponent)

        doubling = due > 1
        lowest, rest = self._take(word.bits)
        last = ~doubling & ~word.many
        several = self._more_than(m, 1, word)
        identity = Const(0)
        if layout.identities:
            identity = word.identity
        # The doublings that end a step are due once no bit is left but the one of this event.
        tail = word.end & word.exponent.any()
        falls = tail & (identity | ~several)
        given = self.i.payload
        m.d.comb += [
            next_alone.eq(given.end & ~given.many & given.exponent[0]),
            next_exponent.eq(Mux(next_alone, 0, given.exponent)),
            made_free.eq(~made_valid | self.o.ready),
            word_free.eq(~word_valid | (made_free & last)),
            self.i.ready.eq(word_free),
            self.o.valid.eq(made_valid),
            *self._rows(m, word, made, made_free, single, identity),
            self.o.payload.mask.eq(~null.replicate(len(self.o.payload.mask))),
            self.o.payload.clear.eq(clear),
            self.o.payload.double.eq(double),
            self.o.payload.end.eq(made.end),
        ]
        if layout.identities:
            self._mask(m, made, null)

        with m.If(word_free):
            m.d.sync += word_valid.eq(self.i.valid)
            with m.If(self.i.valid):
                m.d.sync += [
                    *(word[name].eq(given[name]) for name, _ in layout if name not in _LEFT),
                    word.exponent.eq(next_exponent),
                    first.eq(word.end),
                    alone.eq(next_alone),
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
                    m.d.sync += [alone.eq(1), due.eq(word.exponent), word.exponent.eq(0)]
        # Whether there is a next word is known late: its bits are taken anyhow.
        with m.If(~word_valid | (made_free & ~doubling)):
            m.d.sync += word.bits.eq(Mux(word_free, given.bits, rest))
            for name in layout.counts:
                left = word[name] - (word[name].any() if layout.pairs else 1)
                m.d.sync += word[name].eq(Mux(word_free, given[name], left))
        with m.If(made_free):
            m.d.sync += [
                made_valid.eq(word_valid),
                made.eq(word),
                clear.eq(first),
                double.eq(due.any()),
                null.eq(doubling | alone),
                made.end.eq(word.end & last),
            ]
            if layout.counts:  # an identity has no bit there, and its row needs no choice
                m.d.sync += single.eq(lowest & ~identity.replicate(len(lowest)))
            else:
                with m.If(~identity):
                    m.d.sync += made.bits.eq(lowest)
        return m

    def _take(self, bits):
        """The bits of the next event, and the others."""
        if not self.i.payload.shape().pairs:
            return take_lowest(bits)
        parts = [take_lowest(bits[i::2]) for i in range(2)]
        lowest, rest = zip(*parts, strict=True)
        return tuple(Cat(*zip(*part, strict=True)) for part in (lowest, rest))

    def _more_than(self, m, events, word):
        """Whether a word has more events than given."""
        counts = word.shape().counts
        if not counts:
            return at_least(m, events + 1, word.bits)
        return reduce(or_, (word[name] > events for name in counts))

    def _rows(self, m, word, made, made_free, single, identity):
        """The row of an event; or its two rows. An odd bit has an odd one where that of bit 0 is
        even.
        """
        event = self.o.payload
        if not word.shape().pairs:
            return [event.row.eq(made.row + encode(single))]
        above = Signal.like(event.rows[0], reset_less=True)  # half of the first row, rounded up
        adds, swaps = Signal(2, reset_less=True), made.row[0]
        there = Cat(word.bits[i::2].any() for i in range(2))
        with m.If(made_free):
            m.d.sync += [above.eq((word.row + 1) >> 1), adds.eq(Mux(identity, 0b01, there))]
        even, odd = encode(single[::2]), encode(single[1::2])
        return [
            event.rows[0].eq(above + Mux(swaps, odd, even)),
            event.rows[1].eq((made.row >> 1) + Mux(swaps, even, odd)),
            event.adds.eq(Mux(swaps, adds[::-1], adds)),
        ]

    def _mask(self, m, made, null):
        """The bits of an identity are its lanes."""
        event, unit = self.o.payload, ceil_log2(self._granule)
        place = Cat(made.lo[unit:])
        lanes = Signal.like(event.mask)
        m.d.comb += lanes.eq(made.bits >> (place << unit))
        with m.If(made.identity):
            if not made.shape().counts:
                m.d.comb += event.row.eq(made.row)
            m.d.comb += event.mask.eq(lanes & ~null.replicate(len(lanes)))
