"""The scanner of a plane memory that fills a good part of the chip."""

from amaranth import Module
from amaranth.lib.wiring import connect, flipped

from lbq_hw.config import Profile
from lbq_hw.core.fabric.contracts import must
from lbq_hw.core.payload import PairEvent
from lbq_hw.core.scan.counted_events import CountedEventMaker, PairEventMaker
from lbq_hw.core.scan.fetch import FlagFetch, Word
from lbq_hw.core.scan.scanner import Scanner
from lbq_hw.core.scan.spread_fetch import SpreadWordFetch
from lbq_hw.core.stream.queue import Queue
from lbq_hw.core.stream.register_slice import RegisterSlice
from lbq_hw.core.timing import TIMINGS

__all__ = ["PairScanner", "SpreadScanner"]

_TIMING = TIMINGS[Profile.SPREAD]


class SpreadScanner(Scanner):
    """As `Scanner`, with registers on the way to flags and words. Its queues use no block RAM.

    Up to two requests wait for their words, whatever `span_queue` is.
    """

    LATENCY = _TIMING.event
    EVENTS = CountedEventMaker

    def _counts(self) -> tuple[str, ...]:
        return ("count",)

    def elaborate(self, platform):
        m = Module()
        # The walker sees a registered ``ready``, which does not depend on the stages behind it.
        m.submodules.requests = requests = RegisterSlice(self._request, far=True)
        m.submodules.flags = flags = FlagFetch(
            request=self._request, port=self._flag_port, registers=1
        )
        m.submodules.spans = spans = RegisterSlice(self._request)
        m.submodules.fetch = fetch = SpreadWordFetch(
            request=self._request,
            entry=self._entry,
            port=self._word_port,
            latency=_TIMING.plane_read,
            room=self._word_queue,
        )
        m.submodules.words = words = Queue(self._entry, depth=self._word_queue, spare=True)
        m.submodules.events = events = self.EVENTS(
            entry=self._entry, event=self._event, granule=self._granule
        )
        connect(m, flipped(self.i_request), requests.i)
        connect(m, requests.o, flags.i)
        m.d.comb += [
            words.i.valid.eq(fetch.o.valid),  # credits keep room for it
            words.i.payload.eq(fetch.o.payload),
            fetch.left.eq(words.o.valid & words.o.ready),
        ]
        must(m, platform, words.i.ready | ~fetch.o.valid, "a word arrives at a full queue")
        self._connect(m, flags, spans, fetch, words, events)
        self._check(m, platform)
        return m


class PairScanner(SpreadScanner):
    """As `SpreadScanner`, with an event for the lowest even and the lowest odd bit of a word."""

    EVENTS = PairEventMaker

    def _counts(self) -> tuple[str, ...]:
        return Word.PAIRS

    def _make_event(self, **sizes) -> PairEvent:
        return PairEvent(**sizes)
