"""The scanner: from ranges of plane words to events, one event per set bit."""

from amaranth import Module, Mux, Signal
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from lbq_hw.config import Profile, address_bits
from lbq_hw.core.fabric.contracts import checked, must
from lbq_hw.core.payload import Event, ScanKind, ScanRequest
from lbq_hw.core.scan.event_maker import EventMaker
from lbq_hw.core.scan.fetch import FlagFetch, Word, WordFetch
from lbq_hw.core.sizes import check_power, check_size
from lbq_hw.core.stream.queue import Queue, ShortQueue
from lbq_hw.core.timing import TIMINGS

__all__ = ["Scanner"]


class Scanner(wiring.Component):
    """Turns requests into the events of a step, and spends no cycle on zeros.

    Set bits leave lowest first, words by ascending address, requests in order. The first event of a
    step clears, and its last event has ``end``. When the exponent falls by d, d - 1 null events (no
    lane adds) double, and the next event doubles as well.

    If the request with ``end`` has exponent 0 and its last word has a set bit in range, the event
    of its last bit has ``end``. Otherwise null events double down to exponent 0, at least one of
    them is made, and the last one has ``end``. A request without ``end`` makes no event if its
    words have no set bit in range.

    Timing. One request, one plane word and one event per cycle. A queue behind each stage lets it
    run ahead of the next stage: a word or request without events takes one cycle of the stage that
    drops it, but delays no event as long as the queues are not empty. An event is offered `LATENCY`
    cycles after its request was taken, if nothing is ahead of it. Only the summary port depends on
    ``i_request`` of the same cycle, and no output depends on ``o_event.ready``.

    A core whose plane memory fills a good part of the chip has a `SpreadScanner`; `scanner`
    chooses.

    Parameters
    ----------
    lanes : int
        Lanes P, a power of two, at most ``word``.
    word, summary, words : int
        As in `PlaneMemory`.
    rows : int
        Weight rows.
    granule : int
        Power of two that divides ``lo`` of every IDENTITY request; 1 allows any. A larger one makes
        a smaller shifter.
    exponent_bits : int
        Bits of an exponent.
    identities : bool
        Whether there are IDENTITY requests.
    span_queue, word_queue : int
        Depths of the queues of requests and of words, at least 2 and 3.

    Members
    -------
    i_request : stream of `ScanRequest`
    o_event : stream of `Event`
    word, summary : the read ports of `PlaneMemory`, flipped
    word_read, span_empty : bit
        Ticks for counters: a plane word is read; a request is dropped because no word of its span
        has a flag.
    """

    LATENCY = TIMINGS[Profile.STANDARD].event
    """Cycles from a request to its first event."""

    def __init__(
        self,
        *,
        lanes: int,
        word: int,
        summary: int,
        words: int,
        rows: int,
        granule: int = 1,
        exponent_bits: int = 5,
        identities: bool = True,
        span_queue: int = 2,
        word_queue: int = 17,
    ):
        check_power("lanes", lanes)
        check_power("word", word, least=8)
        check_power("summary", summary)
        check_power("granule", granule)
        check_size("words", words)
        check_size("rows", rows)
        check_size("exponent_bits", exponent_bits)
        check_size("span_queue", span_queue, least=2)
        check_size("word_queue", word_queue, least=3)
        if lanes > word:
            raise ValueError(f"lanes must be at most the {word} bits of a word, not {lanes!r}")
        if granule > word:
            raise ValueError(f"granule must be at most the {word} bits of a word, not {granule!r}")
        if words % summary:
            raise ValueError(f"words must be a multiple of summary ({summary}), not {words!r}")
        span_bits = address_bits(words // summary)
        row_bits = address_bits(rows)
        self._granule = granule
        self._span_queue = span_queue
        self._word_queue = word_queue
        self._entry = Word(
            word=word,
            row_bits=row_bits,
            exponent_bits=exponent_bits,
            identities=identities,
            counts=self._counts(),
        )
        self._request = ScanRequest(
            word=word,
            summary=summary,
            span_bits=span_bits,
            row_bits=row_bits,
            exponent_bits=exponent_bits,
        )
        self._event = self._make_event(lanes=lanes, row_bits=row_bits, masks=identities)
        self._word_port = memory.ReadPort.Signature(addr_width=address_bits(words), shape=word)
        self._flag_port = memory.ReadPort.Signature(addr_width=span_bits, shape=summary)
        super().__init__(
            {
                "i_request": In(stream.Signature(self._request)),
                "o_event": Out(stream.Signature(self._event)),
                "word": In(self._word_port),
                "summary": In(self._flag_port),
                "word_read": Out(1),
                "span_empty": Out(1),
            }
        )

    def _counts(self) -> tuple[str, ...]:
        """Members of a `Word` that count its bits."""
        return ()

    def _make_event(self, **sizes) -> Event:
        return Event(**sizes)

    def elaborate(self, platform):
        m = Module()
        m.submodules.flags = flags = FlagFetch(request=self._request, port=self._flag_port)
        m.submodules.spans = spans = ShortQueue(self._request, depth=self._span_queue)
        m.submodules.fetch = fetch = WordFetch(
            request=self._request, entry=self._entry, port=self._word_port
        )
        m.submodules.words = words = Queue(self._entry, depth=self._word_queue)
        m.submodules.events = events = EventMaker(
            entry=self._entry, event=self._event, granule=self._granule
        )
        connect(m, flipped(self.i_request), flags.i)
        connect(m, fetch.o, words.i)
        self._connect(m, flags, spans, fetch, words, events)
        self._check(m, platform)
        return m

    def _check(self, m, platform):
        """Check the rules that `ScanRequest` states for the requests of a step."""
        if not checked(platform):
            return
        request = self.i_request.payload
        most = Signal.like(request.exponent, init=-1)
        falls = (request.kind == ScanKind.END) | (request.exponent <= most)
        must(m, platform, ~self.i_request.valid | falls, "an exponent rises within a step")
        with m.If(self.i_request.valid & self.i_request.ready):
            m.d.sync += most.eq(Mux(request.end, -1, request.exponent))

    def _connect(self, m, flags, spans, fetch, words, events):
        """Connections that all scanners share."""
        connect(m, flags.o, spans.i)
        connect(m, spans.o, fetch.i)
        connect(m, words.o, events.i)
        connect(m, events.o, flipped(self.o_event))
        connect(m, flipped(self.summary), flags.summary)
        connect(m, flipped(self.word), fetch.word)
        m.d.comb += [self.word_read.eq(fetch.word.en), self.span_empty.eq(flags.empty)]
