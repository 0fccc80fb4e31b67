"""Tells when refreshes of an SDRAM are due."""

from amaranth import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from lbq_hw.chips.timing import ReaderTiming
from lbq_hw.core.fabric.contracts import must

__all__ = ["RefreshTimer"]


class RefreshTimer(wiring.Component):
    """Counts the refreshes that are due: one more every ``interval`` cycles.

    Timing. If ``tick`` is 1 in cycle t, ``due`` is 1 from cycle t + 1 until all due refreshes were
    ``made``, and ``phase`` is 1 in cycle ``t + elapsed``.

    Parameters
    ----------
    timing : `ReaderTiming`
        Has ``interval``, ``elapsed``, and the time of a page, during which no refresh can be made.

    Members
    -------
    counts : in
        Ticks are counted; until this is 1, no refresh is due.
    made : in
        A refresh is made; only while ``due``.
    tick : out
        One cycle per ``interval``.
    due : out
        A refresh is due.
    phase : out
        The refresh timer allows a run to start in this cycle.
    """

    counts: In(1)
    made: In(1)
    tick: Out(1)
    due: Out(1)
    phase: Out(1)

    def __init__(self, timing: ReaderTiming):
        self._timing = timing
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        interval, elapsed = self._timing.interval, self._timing.elapsed
        page = self._timing.first + self._timing.page_words + self._timing.rest
        most = 2 + 2 * page // (interval - self._timing.refresh)
        timer = Signal(range(-1, interval), init=interval - 2)  # its sign is the tick
        pending = Signal(range(-1, most), init=-1)  # due refreshes minus 1: negative means none
        counted = Signal()
        m.d.comb += [
            self.tick.eq(timer[-1]),
            self.due.eq(~pending[-1]),
            counted.eq(self.tick & self.counts),
        ]
        m.d.sync += [
            timer.eq(Mux(self.tick, interval - 2, timer - 1)),
            pending.eq(pending + counted - self.made),
            self.phase.eq(timer == interval - elapsed),
        ]
        must(m, platform, self.due | ~self.made, "a refresh is made that is not due")
        return m
