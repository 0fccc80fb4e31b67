"""Makes an event for every set bit of a level word."""

from amaranth import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from lbq_hw.core.streaming.finder import lowest
from lbq_hw.core.streaming.layouts import StreamEvent, WordItem
from lbq_hw.streaming.config import StreamConfig

__all__ = ["WordScanner"]


class WordScanner(wiring.Component):
    """Makes an event for each set bit, the lowest first; for an identity, one for the whole word.

    The event of a tile's last bit ends the tile. If the tile's last word is 0, an event without
    lanes ends it.

    Timing. A word is taken into a register, and stays there for one cycle per event, at least one;
    events are offered from the register.

    Members
    -------
    i : stream of `WordItem`
    o : stream of `StreamEvent`
    """

    def __init__(self, config: StreamConfig):
        self._config = config
        super().__init__(
            {
                "i": In(stream.Signature(WordItem(config))),
                "o": Out(stream.Signature(StreamEvent(config))),
            }
        )

    def elaborate(self, _platform):
        m = Module()
        c, event = self._config, self.o.payload
        held, held_valid = Signal(WordItem(c)), Signal()
        one, real, last, item_done = lowest(held.word), held.word.any(), Signal(), Signal()
        lane = Signal(range(c.lanes))
        for i in range(c.lanes):
            with m.If(one[i]):
                m.d.comb += lane.eq(i)
        m.d.comb += [
            last.eq((held.word == one) | held.identity),
            self.o.valid.eq(held_valid & (real | held.end)),
            item_done.eq(Mux(real | held.end, self.o.ready & last, 1)),
            self.i.ready.eq(~held_valid | item_done),
            event.row.eq(held.row + Mux(held.identity, 0, lane)),
            event.shift.eq(held.shift),
            event.mask.eq(real.replicate(len(event.mask))),
            event.end.eq(held.end & last),
        ]
        if c.identities:
            with m.If(held.identity):
                m.d.comb += event.mask.eq(held.word)
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += held.word.eq(held.word ^ one)
        with m.If(self.i.ready):
            m.d.sync += [held_valid.eq(self.i.valid), held.eq(self.i.payload)]
        return m
