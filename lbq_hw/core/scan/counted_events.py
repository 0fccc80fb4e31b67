"""Turns words into events, with a count of the set bits that are left."""

from amaranth import Cat, Mux, Signal

from lbq_hw.core.scan.bits import encode, take_lowest
from lbq_hw.core.scan.event_maker import EventMaker

__all__ = ["CountedEventMaker", "PairEventMaker"]


class CountedEventMaker(EventMaker):
    """As `EventMaker`, for a fast clock: a counter holds the number of bits left in the word.

    Testing a counter is faster than testing all bits of the word.
    """

    def _take(self, m, word, given, word_free):
        super()._take(m, word, given, word_free)
        m.d.sync += word.count.eq(Mux(word_free, given.count, word.count - 1))

    def _more_than(self, _m, events, word):
        return word.count > events

    def _make(self, m, word, made, made_free, identity):
        lowest, _ = take_lowest(word.bits)
        m.d.comb += self.o.payload.row.eq(
            made.row + encode(self._single(m, lowest, made_free, identity))
        )

    def _single(self, m, lowest, made_free, identity):
        """Store the bit of an event; none for an identity, so that its row needs no multiplexer."""
        single = Signal.like(lowest, reset_less=True)
        with m.If(made_free):
            m.d.sync += single.eq(lowest & ~identity.replicate(len(lowest)))
        return single


class PairEventMaker(CountedEventMaker):
    """As `CountedEventMaker`, with an event for the lowest even and the lowest odd bit of a word.

    A word with e even and o odd set bits makes ``max(e, o)`` events. If bit 0 has an even weight
    row, even bits have even rows and odd bits odd rows; if not, the reverse.
    """

    def _take(self, m, word, given, word_free):
        halves = [take_lowest(word.bits[i::2])[1] for i in range(2)]
        m.d.sync += word.bits.eq(Mux(word_free, given.bits, _interleaved(halves)))
        for name in word.shape().counts:
            left = word[name] - word[name].any()
            m.d.sync += word[name].eq(Mux(word_free, given[name], left))

    def _more_than(self, _m, events, word):
        return (word.even > events) | (word.odd > events)

    def _make(self, m, word, made, made_free, identity):
        event = self.o.payload
        lowest = _interleaved([take_lowest(word.bits[i::2])[0] for i in range(2)])
        single = self._single(m, lowest, made_free, identity)
        above = Signal.like(event.rows[0], reset_less=True)  # half of the first row, rounded up
        adds, swaps = Signal(2, reset_less=True), made.row[0]
        there = Cat(word.bits[i::2].any() for i in range(2))
        with m.If(made_free):
            m.d.sync += [above.eq((word.row + 1) >> 1), adds.eq(Mux(identity, 0b01, there))]
        even, odd = encode(single[::2]), encode(single[1::2])
        m.d.comb += [
            event.rows[0].eq(above + Mux(swaps, odd, even)),
            event.rows[1].eq((made.row >> 1) + Mux(swaps, even, odd)),
            event.adds.eq(Mux(swaps, adds[::-1], adds)),
        ]


def _interleaved(halves):
    """Puts even and odd bits back into their places."""
    return Cat(*zip(*halves, strict=True))
