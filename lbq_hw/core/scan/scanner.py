"""The scanner: from ranges of plane words to events, at the pace of the set bits."""

from amaranth import Module
from amaranth.lib import fifo, memory, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from lbq_hw.config import address_bits
from lbq_hw.core.memory.queue import Queue
from lbq_hw.core.memory.spread import SpreadMemory
from lbq_hw.core.payload import Event, ScanRequest
from lbq_hw.core.scan.event_maker import EventMaker
from lbq_hw.core.scan.fetch import FlagFetch, Word, WordFetch
from lbq_hw.core.scan.two_places import TwoPlaces
from lbq_hw.core.sizes import check_power, check_size

__all__ = ["FAR", "LATENCY", "Scanner"]

LATENCY = 8  # cycles from a request to the first event that it makes
FAR = SpreadMemory.LATENCY + 4  # cycles more, where the plane memory is far


class Scanner(wiring.Component):
    """Turns requests into the events of a step, without a cycle for what is zero.

    Set bits leave lowest first, words by ascending address, requests in order. Going down d
    exponents, d - 1 null events (no lane) and the next event itself double; the first event of a
    step clears; its last event has ``end``. That is the last one of the request with ``end``, if it
    has exponent 0. If its exponent is higher, or the last word of the request has no set bit in
    range, or no word of it a flag, null events double down to exponent 0, one of them at least, and
    the last has ``end``. Other requests whose words are all zero, or have no set bit in range, make
    no event.

    Timing. One request, one plane word and one event per cycle. A queue behind each stage lets it
    run ahead of the next: a word or request without events takes a cycle of the stage that drops
    it, but delays no event as long as the queues are not empty. An event is offered `LATENCY`
    cycles after its request was taken, if nothing is ahead of it, `FAR` later if the memory is
    ``far``. Of the outputs only the summary port depends on ``i_request`` of the same cycle, and
    none on ``o_event.ready``.

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
    identities, stacks : bool
        Whether there are IDENTITY requests, and stacked ones.
    far : bool
        The plane memory fills a good part of the chip, see `WordFetch`; no other takes a block RAM.
    pairs : bool
        If ``far``: an event is for the lowest even and the lowest odd bit of a word.
    span_queue, word_queue : int
        Requests and words that wait for their turn, at least 2 and 3.

    Members
    -------
    i_request : stream of `ScanRequest`
    o_event : stream of `Event`
    word, summary : the read ports of `PlaneMemory`, seen from the other side
    word_read, span_empty : bit
        A plane word is read; a request is dropped since no word of its span has a flag. For
        counters.
    """

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
        stacks: bool = True,
        far: bool = False,
        pairs: bool = False,
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
        if pairs and not far:
            raise ValueError("pairs must be of words that are far")
        if words % summary:
            raise ValueError(f"words must be a multiple of summary ({summary}), not {words!r}")
        span_bits = address_bits(words // summary)
        row_bits = address_bits(rows)
        self._granule = granule
        self._far = far
        self._span_queue = span_queue
        self._word_queue = word_queue
        self._entry = Word(
            word=word,
            row_bits=row_bits,
            exponent_bits=exponent_bits,
            identities=identities,
            counted=far,
            pairs=pairs,
        )
        self._request = ScanRequest(
            word=word,
            summary=summary,
            span_bits=span_bits,
            row_bits=row_bits,
            exponent_bits=exponent_bits,
            stacks=stacks,
        )
        self._event = Event(lanes=lanes, row_bits=row_bits, masks=identities, pairs=pairs)
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

    def elaborate(self, _platform):
        m = Module()
        m.submodules.flags = flags = FlagFetch(
            request=self._request, port=self._flag_port, late=self._far
        )
        m.submodules.fetch = fetch = WordFetch(
            request=self._request,
            entry=self._entry,
            port=self._word_port,
            far=SpreadMemory.LATENCY if self._far else 0,
            room=self._word_queue,
        )
        m.submodules.words = words = Queue(self._entry, depth=self._word_queue, spare=self._far)
        m.submodules.events = events = EventMaker(
            entry=self._entry, event=self._event, granule=self._granule
        )

        if self._far:
            # The walker looks at a register, instead of all that may wait here.
            connect(m, self._queued(m, "requests", self.i_request, depth=2), flags.i)
        else:
            connect(m, flipped(self.i_request), flags.i)
        connect(m, self._queued(m, "spans", flags.o, depth=self._span_queue), fetch.i)
        connect(m, flipped(self.summary), flags.summary)
        connect(m, flipped(self.word), fetch.word)
        connect(m, events.o, flipped(self.o_event))
        m.d.comb += [words.i.valid.eq(fetch.o.valid), words.i.payload.eq(fetch.o.payload)]
        if not self._far:
            m.d.comb += fetch.o.ready.eq(words.i.ready)
        connect(m, words.o, events.i)
        if self._far:
            m.d.comb += fetch.left.eq(words.o.valid & words.o.ready)
        m.d.comb += [self.word_read.eq(fetch.word.en), self.span_empty.eq(flags.empty)]
        return m

    def _queued(self, m, name, source, *, depth):
        """What leaves a queue of requests that `source` fills."""
        if self._far and depth == 2:
            m.submodules[name] = places = TwoPlaces(self._request)
            m.d.comb += [
                places.i.payload.eq(source.payload),
                places.i.valid.eq(source.valid),
                source.ready.eq(places.i.ready),
            ]
            return places.o
        m.submodules[name] = queue = fifo.SyncFIFO(width=self._request.size, depth=depth)
        m.d.comb += [
            queue.w_data.eq(source.payload),
            queue.w_en.eq(source.valid),
            source.ready.eq(queue.w_rdy),
        ]
        left = stream.Signature(self._request).create(path=(name,))
        m.d.comb += [
            left.payload.eq(queue.r_data),
            left.valid.eq(queue.r_rdy),
            queue.r_en.eq(left.ready),
        ]
        return left
