"""Clips runs to the bounds of their plane, and cuts them into scan requests."""

from amaranth import Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from lbq_hw import isa
from lbq_hw.config import CoreConfig, address_bits
from lbq_hw.core.payload import ScanKind, ScanRequest
from lbq_hw.core.walk import records
from lbq_hw.core.walk.places import (
    KIND_FIELDS,
    SCAN_FIELDS,
    PathKind,
    PlacedRun,
    carry,
    item_members,
    path_of,
)

__all__ = ["Requests"]


class Requests(wiring.Component):
    """Turns placed runs into scan requests, one for each summary word that a run touches.

    A run is first clipped to the bounds of its path. A run of which nothing is left makes no
    request. The last request of a step's last run has ``end``; if this run makes no request, an END
    request takes its place.

    Timing. One request per cycle; a run without requests takes one cycle. The first request of a
    run is offered 3 cycles after the run was taken. ``i.ready`` depends on ``o.ready`` of the same
    cycle.

    Errors. If a run reaches beyond the plane memory, ``outside`` rises and stays until ``clear``.
    This run and all later ones are dropped; every step still has its end.

    Members
    -------
    i : stream of `PlacedRun`
    scan_fields : in
        The `SCAN_FIELDS` of the layer's only path, if items do not carry them; stable while the
        layer runs.
    o : stream of `ScanRequest`
    closed : out
        The last request of a step is taken in this cycle.
    outside : out
    clear : in
    stop : in
        Level: drop all runs.
    """

    def __init__(self, config: CoreConfig):
        self._config = config
        request = ScanRequest(
            word=config.word,
            summary=config.summary,
            span_bits=config.summary_address_bits,
            row_bits=config.weight_address_bits,
            exponent_bits=config.exponent_bits,
        )
        super().__init__(
            {
                "i": In(stream.Signature(PlacedRun(config))),
                "scan_fields": In(records.layout(isa.PATH, config, SCAN_FIELDS)),
                "o": Out(stream.Signature(request)),
                "closed": Out(1),
                "outside": Out(1),
                "clear": In(1),
                "stop": In(1),
            }
        )

    @property
    def config(self) -> CoreConfig:
        return self._config

    def elaborate(self, _platform):
        m = Module()
        clipped, ranged, cut = (Signal(layout) for layout in self._stages())
        # The stages advance only when all requests of the last stage's run have been taken.
        move = self.i.ready
        m.d.comb += move.eq(~cut.valid | (self.o.ready & ~cut.goes_on))
        self._clip(m, move, clipped)
        self._range(m, move, clipped, ranged)
        self._cut(m, move, ranged, cut)
        self._offer(m, cut)
        return m

    def _stages(self):
        """Layout of each stage: the clipped run, its range of spans, and the part left to cut."""
        c, placed = self._config, self.i.payload
        row_bits = c.weight_address_bits
        # A run of an identity begins further right by the channels of the tiles before it.
        bit_bits = max(c.column_bits - 1, address_bits(c.channels)) + 1
        token = {"valid": 1, "end": 1, "none": 1, "exponent": c.exponent_bits}
        bits = {"lo": c.word_log2, "hi": c.word_log2}
        spans = {
            "span": c.summary_address_bits,
            "more": c.summary_address_bits,
            "lo_at": c.summary_log2,
            "hi_at": c.summary_log2,
            "row": row_bits,
        }
        clipped = {"low": bit_bits, "high": bit_bits, "row": row_bits}
        clipped |= {"place": len(placed.base) + 1}
        stages = (
            token | clipped,
            token | spans | bits | {"offset": row_bits},
            token | spans | bits | {"fresh": 1, "goes_on": 1},
        )
        return [data.StructLayout(item_members(c, stage, KIND_FIELDS)) for stage in stages]

    def _kind(self, stage):
        """The kind of path of the run in a stage."""
        return PathKind.of(self._config, path_of(stage, self.scan_fields))

    def _follow(self, m, stage, before, *names):
        m.d.sync += [stage[name].eq(before[name]) for name in ("end", "exponent", *names)]
        m.d.sync += carry(stage, path_of(before, self.scan_fields))

    def _clip(self, m, move, clipped):
        """Clip a run to its bounds.

        The sums are wide enough for exact comparisons. A run outside the plane is dropped here; a
        run that is empty after clipping is dropped in the next stage.
        """
        c, placed = self._config, self.i.payload
        path, kind = path_of(placed, self.scan_fields), self._kind(placed)
        right = Signal(signed(len(placed.left) + 1))
        above, below, left_of = Signal(), Signal(), Signal()
        beyond, none = Signal(), Signal()
        outside_plane = above | left_of | (placed.left > path.column_high)
        lane_0 = placed.left + (placed.number << c.lane_log2)
        m.d.comb += [
            right.eq(placed.left + placed.length_last),
            above.eq(placed.top < path.row_low),
            below.eq(placed.top > path.row_high),
            left_of.eq(placed.left < path.column_low),
            beyond.eq(
                placed.top[-1]
                | right[-1]
                | (~above & placed.top[len(path.row_low) :].any())
                | (~left_of & placed.left[len(path.column_low) :].any())
            ),
            none.eq(placed.none | beyond | self.stop | (kind.identity & outside_plane)),
        ]
        with m.If(above | below):
            m.d.comb += none.eq(1)
        with m.If(move):
            self._follow(m, clipped, placed)
            m.d.sync += [
                clipped.place.eq(placed.base + placed.top),
                clipped.valid.eq(self.i.valid & (placed.end | ~none)),
                clipped.none.eq(none),
                clipped.low.eq(Mux(left_of, path.column_low, placed.left)),
                clipped.high.eq(Mux(right > path.column_high, path.column_high, right)),
                clipped.row.eq(placed.weight - Mux(kind.identity, 0, placed.left)),
            ]
            with m.If(kind.identity):
                m.d.sync += [clipped.low.eq(lane_0), clipped.high.eq(lane_0)]

    def _range(self, m, move, clipped, ranged):
        """Find the spans of a run: their number, and the offset of the first from its row."""
        c, kind = self._config, self._kind(clipped)
        address = max(len(self.i.payload.base), len(clipped.low) - c.word_log2) + 2
        empty, outside, none = Signal(), Signal(), Signal()
        first, last = Signal(address), Signal(address)
        low_bit, low_word = clipped.low[: c.word_log2], clipped.low[c.word_log2 :]
        high_bit, high_word = clipped.high[: c.word_log2], clipped.high[c.word_log2 :]
        first_span, last_span = first[c.summary_log2 :], last[c.summary_log2 :]
        m.d.comb += [
            empty.eq(clipped.low > clipped.high),
            first.eq(clipped.place + low_word),
            last.eq(clipped.place + high_word),
            outside.eq(last >= c.plane_words),
            none.eq(clipped.none | empty | outside | self.outside | self.stop),
        ]
        with m.If(move):
            self._follow(m, ranged, clipped, "row")
            m.d.sync += [
                ranged.valid.eq(clipped.valid & (clipped.end | ~none)),
                ranged.none.eq(none),
                ranged.lo.eq(low_bit),
                ranged.hi.eq(Mux(kind.identity, low_bit + kind.lanes - 1, high_bit)),
                ranged.span.eq(first_span),
                ranged.more.eq(last_span - first_span),
                ranged.lo_at.eq(first[: c.summary_log2]),
                ranged.hi_at.eq(last[: c.summary_log2]),
                ranged.offset.eq(low_word - first[: c.summary_log2]),
            ]
            with m.If(clipped.valid & ~clipped.none & ~empty & outside & ~self.stop):
                m.d.sync += self.outside.eq(1)
        with m.If(self.clear):
            m.d.sync += self.outside.eq(0)

    def _cut(self, m, move, ranged, cut):
        """Offer a run span by span.

        `goes_on`: there is a run, and `more` is not 0. It is a register, because this comparison
        would be in the critical path.
        """
        kind = self._kind(ranged)
        ahead = (ranged.offset << self._config.word_log2)[: len(ranged.row)]
        with m.If(move):
            names = ("none", "span", "more", "lo_at", "hi_at", "lo", "hi")
            self._follow(m, cut, ranged, *names)
            m.d.sync += [
                cut.valid.eq(ranged.valid),
                cut.fresh.eq(1),
                cut.goes_on.eq(~ranged.none & (ranged.more != 0)),
                cut.row.eq(ranged.row + Mux(kind.identity, 0, ahead)),
            ]
        with m.Elif(self.o.ready):
            m.d.sync += [
                cut.fresh.eq(0),
                cut.goes_on.eq(cut.more != 1),
                cut.span.eq(cut.span + 1),
                cut.more.eq(cut.more - 1),
                cut.row.eq(cut.row + (self._config.summary << self._config.word_log2)),
            ]

    def _offer(self, m, cut):
        """Make the request of the next span."""
        request, kind = self.o.payload, self._kind(cut)
        every = (1 << self._config.summary) - 1
        from_low = Mux(cut.fresh, every << cut.lo_at, every)
        to_high = Mux(cut.goes_on, every, (2 << cut.hi_at) - 1)
        m.d.comb += [
            self.o.valid.eq(cut.valid),
            request.end.eq(cut.end & ~cut.goes_on),
            self.closed.eq(cut.valid & request.end & self.o.ready),
            request.kind.eq(Mux(kind.identity, ScanKind.IDENTITY, ScanKind.CONV)),
            request.want.eq(from_low & to_high),
            request.lo_en.eq(cut.fresh),
            request.hi_en.eq(~cut.goes_on),
        ]
        for name in ("span", "lo", "hi", "lo_at", "hi_at", "row", "exponent"):
            m.d.comb += request[name].eq(cut[name])
        with m.If(cut.none):
            m.d.comb += request.kind.eq(ScanKind.END)
