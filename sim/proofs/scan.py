"""The scanner's stages: from requests and a plane memory to events. Queues are `streams`' own."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from amaranth import Array, Cat, Const, Mux, Signal, Value
from amaranth.lib import memory
from amaranth.lib.wiring import connect

from lbq_hw.core.payload import Event, ScanKind, ScanRequest
from lbq_hw.core.scan.event_maker import EventMaker
from lbq_hw.core.scan.fetch import FlagFetch, Word, WordFetch
from lbq_hw.sim.proofs.contract import Bug, Contract, Proof

_WORD, _SUMMARY, _SPANS, _ROWS, _EXPONENT = 4, 2, 2, 4, 2
_REQUESTS = 2
_LONGEST = 8  # cycles without an event, while the end of a step is on its way


def _scanned(code: ModuleType) -> Contract:
    """Requests of the solver, and a memory of its words: events are those of all set bits.

    `left` has the bits of all requests that are still to come, lowest first, in the order of the
    requests. An event adds the lowest of them; doublings between events lead from its exponent to
    that of the next, and at the end of the step to 0.
    """
    c = Contract()
    plane = c.fixed(_SPANS * _SUMMARY * _WORD, "plane")
    asked, taken = _requests(c)
    port, event = _pipeline(c, code, plane, asked, taken)
    ends: list[Any] = [request.end for request in asked]
    ended, done = Signal(range(_REQUESTS + 1)), Signal(_REQUESTS * _SUMMARY * _WORD)
    fresh, level = Signal(init=1), Signal(_EXPONENT)
    rows, exponents, wanted, of_step = [], [], [], []
    for number, request in enumerate(asked):
        here = sum(ends[:number], Const(0, 2)) == ended
        for place in range(_SUMMARY * _WORD):
            rows.append((request.row + place)[:_ROWS])
            exponents.append(request.exponent)
            wanted.append(_asks(request, plane, place))
            of_step.append(here & (number < taken))
    left: Any = Signal.like(done)
    lowest: Any = Signal.like(done)
    step: Any = Signal.like(done)
    c.m.d.comb += [left.eq(Cat(wanted) & ~done), lowest.eq(left & -left), step.eq(Cat(of_step))]
    happens, adds = port.valid & port.ready, Value.cast(event.mask).any()
    first, now = Signal(_EXPONENT), Signal(_EXPONENT)
    for bit, exponent in zip(lowest, exponents, strict=True):
        with c.m.If(bit & adds):
            c.m.d.comb += first.eq(exponent)
    c.m.d.comb += now.eq(Mux(fresh, first, level - event.double))
    with c.m.If(happens):
        c.m.d.sync += [fresh.eq(event.end), level.eq(now), ended.eq(ended + event.end)]
        with c.m.If(adds):
            c.m.d.sync += done.eq(done | lowest)
    c.must(~happens | (event.clear == fresh))
    c.must(~(happens & event.double) | (~fresh & (level != 0)))
    c.must(~(happens & fresh & ~adds) | event.end)
    right: Any = Const(0, 1)
    for bit, row, exponent, here in zip(lowest, rows, exponents, step, strict=True):
        right |= bit & here & (event.row == row) & (exponent == now)
    c.must(~(happens & adds) | right)
    rest = Mux(adds, left & ~lowest, left) & step
    closes = sum((end & (number < taken) for number, end in enumerate(ends)), Const(0, 2)) > ended
    c.must(~(happens & event.end) | ((now == 0) & (rest == 0) & closes))

    waited = Signal(range(_LONGEST + 1))
    c.m.d.sync += waited.eq(Mux(closes & ~port.valid, waited + 1, 0))
    c.must(waited < _LONGEST)
    return c


def _requests(c: Contract) -> tuple[list[Any], Signal]:
    """The requests that the solver chose, of one step or two; how many of them are taken."""
    layout = ScanRequest(
        word=_WORD, summary=_SUMMARY, span_bits=1, row_bits=_ROWS, exponent_bits=_EXPONENT
    )
    asked: list[Any] = []
    for number in range(_REQUESTS):
        request: Any = layout(c.fixed(layout.size, f"request_{number}"))
        c.assume((request.kind == ScanKind.CONV) | ((request.kind == ScanKind.END) & request.end))
        if asked:
            falls = (request.kind == ScanKind.END) | (request.exponent <= asked[-1].exponent)
            c.assume(asked[-1].end | falls)
        asked.append(request)
    return asked, Signal(range(_REQUESTS + 1))


def _pipeline(
    c: Contract, code: ModuleType, plane: Any, asked: list[Any], taken: Signal
) -> tuple[Any, Any]:
    """The stages one behind the other, with their memories: the stream of events, and an event."""

    def stage(kind: type, **sizes: Any) -> Any:
        return c.add(getattr(code, kind.__name__, kind)(**sizes), kind.__name__)

    request = asked[0].shape()
    entry = Word(word=_WORD, row_bits=_ROWS, exponent_bits=_EXPONENT, identities=False)
    event = Event(lanes=2, row_bits=_ROWS, masks=False)
    flags_port = memory.ReadPort.Signature(addr_width=1, shape=_SUMMARY)
    words_port = memory.ReadPort.Signature(addr_width=2, shape=_WORD)
    flags = stage(FlagFetch, request=request, port=flags_port)
    words = stage(WordFetch, request=request, entry=entry, port=words_port)
    maker = stage(EventMaker, entry=entry, event=event, granule=1)
    connect(c.m, flags.o, words.i)
    connect(c.m, words.o, maker.i)
    c.offered(flags.i)
    c.assume(~flags.i.valid | (taken < _REQUESTS))
    c.assume(Value.cast(flags.i.payload) == Array(Value.cast(one) for one in asked)[taken])
    with c.m.If(flags.i.valid & flags.i.ready):
        c.m.d.sync += taken.eq(taken + 1)
    each = [plane.word_select(word, _WORD) for word in range(_SPANS * _SUMMARY)]
    _memory(c, words.word, plane, _WORD)
    _memory(c, flags.summary, Cat(word.any() for word in each), _SUMMARY)
    return maker.o, maker.o.payload


def _memory(c: Contract, port: Any, content: Any, bits: int) -> None:
    read = Signal(bits)
    with c.m.If(port.en):
        c.m.d.sync += read.eq(content.word_select(port.addr, bits))
    c.m.d.comb += port.data.eq(read)


def _asks(request: Any, plane: Any, place: int) -> Any:
    """Whether a request asks for a bit of its span, and that is set."""
    word, bit = divmod(place, _WORD)
    low = request.lo_en & (request.lo_at == word) & (bit < request.lo)
    high = request.hi_en & (request.hi_at == word) & (bit > request.hi)
    is_set = plane.bit_select(request.span * (_SUMMARY * _WORD) + place, 1)
    return (request.kind == ScanKind.CONV) & request.want[word] & is_set & ~low & ~high


_SAYS = "each set bit once and in order, exponents and ends, 2 requests and up to 5 events"

PROOFS = (
    Proof(
        name="scan-fetch",
        says=f"the scanner's stages, bug in the reading stages: {_SAYS}",
        module="lbq_hw.core.scan.fetch",
        contract=_scanned,
        bug=Bug(old="Mux(self.i.ready, 0, request.want & ~rest)", new="request.want & ~rest"),
        cycles=10,
    ),
    Proof(
        name="scan-events",
        says=f"the scanner's stages, bug in the stage that makes events: {_SAYS}",
        module="lbq_hw.core.scan.event_maker",
        contract=_scanned,
        bug=Bug(old="due.eq(word.exponent), word", new="due.eq(1), word"),
        cycles=10,
    ),
)
