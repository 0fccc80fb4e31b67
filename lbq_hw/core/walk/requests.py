"""Clips runs to what counts of their plane, and cuts them into scan requests."""

from amaranth import Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from lbq_hw.config import CoreConfig, address_bits
from lbq_hw.core.payload import EXPONENT_BITS, INCREMENT_BITS, ScanKind, ScanRequest
from lbq_hw.core.walk.places import PlacedRun

__all__ = ["Requests"]


class Requests(wiring.Component):
    """Turns placed runs into scan requests, one for each summary word that a run touches.

    A run of which nothing counts has none; the end of a step becomes an END.

    Timing. One request a cycle; a run that has none takes a cycle. The first request of a run is
    offered 3 cycles after the run was taken. ``i.ready`` depends on ``o.ready`` of the same cycle.

    Errors. Where a run reaches beyond the plane memory, ``outside`` rises and stays until
    ``clear``; this run and all that follow are dropped, but ENDs are not.

    Members
    -------
    i : stream of `PlacedRun`
    o : stream of `ScanRequest`
    closed : out
        An END is taken.
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
            chunk_bits=config.summary_address_bits,
            row_bits=config.weight_address_bits,
        )
        super().__init__(
            {
                "i": In(stream.Signature(PlacedRun(config))),
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
        c = self._config
        placed = self.i.payload
        base_bits, word_bits = len(placed.base), c.plane_address_bits
        row_bits, summary_log2 = c.weight_address_bits, c.summary_log2
        # An identity may look beyond the bounds of its path by the tiles before it.
        bit_bits = max(c.column_bits - 1, address_bits(c.channels)) + 1
        address = max(base_bits, bit_bits - c.word_log2) + 2
        token = {"valid": 1, "end": 1}
        kind = {
            "identity": 1,
            "stacked": 1,
            "increment": INCREMENT_BITS,
            "exponent": EXPONENT_BITS,
        }
        bits = {"lo": c.word_log2, "hi": c.word_log2}
        chunks = {
            "chunk": c.summary_address_bits,
            "more": c.summary_address_bits,
            "lo_at": summary_log2,
            "hi_at": summary_log2,
            "row": row_bits,
        }
        clipped = Signal(
            data.StructLayout(
                token
                | {"base": base_bits, "first": word_bits, "last": word_bits}
                | {"low": bit_bits, "high": bit_bits, "lanes": len(placed.lanes)}
                | {"top": row_bits, "row": row_bits}
                | kind
            )
        )
        ranged = Signal(data.StructLayout(token | chunks | {"offset": row_bits} | bits | kind))
        cut = Signal(data.StructLayout(token | chunks | {"fresh": 1} | bits | kind))

        def follow(stage, before, *names):
            m.d.sync += [stage[name].eq(before[name]) for name in ("end", *names)]

        # All of the last stage's run must be taken before anything moves.
        move = self.i.ready
        more = Signal()
        m.d.comb += [
            more.eq(cut.more != 0),
            move.eq(~cut.valid | (self.o.ready & ~more)),
        ]

        # Clip. These sums are never cut off, so that they compare as the true places. What lies
        # beyond every bound is dropped here, what is left over from clipping in the next stage.
        bottom = Signal(signed(len(placed.top) + 1))
        right = Signal(signed(len(placed.left) + 1))
        above, beside, beyond = Signal(), Signal(), Signal()
        lane_0 = placed.left + (placed.number << c.lane_log2)
        m.d.comb += [
            bottom.eq(placed.top + placed.rows_last),
            right.eq(placed.left + placed.length_last),
            above.eq(placed.top < placed.row_low),
            beside.eq(placed.left < placed.column_low),
            beyond.eq(
                bottom[-1]
                | right[-1]
                | (~above & placed.top[len(placed.row_low) :].any())
                | (~beside & placed.left[len(placed.column_low) :].any())
            ),
        ]
        with m.If(move):
            follow(clipped, placed, "base", "lanes", *kind)
            m.d.sync += [
                clipped.valid.eq(self.i.valid & (placed.end | ~(beyond | self.stop))),
                clipped.first.eq(Mux(above, placed.row_low, placed.top)),
                clipped.last.eq(Mux(bottom > placed.row_high, placed.row_high, bottom)),
                clipped.low.eq(Mux(beside, placed.column_low, placed.left)),
                clipped.high.eq(Mux(right > placed.column_high, placed.column_high, right)),
                clipped.top.eq(placed.base + placed.top),
                clipped.row.eq(placed.weight - Mux(placed.identity, 0, placed.left)),
            ]
            with m.If(placed.identity):
                m.d.sync += [clipped.low.eq(lane_0), clipped.high.eq(lane_0)]
                with m.If((above | beside | (placed.left > placed.column_high)) & ~placed.end):
                    m.d.sync += clipped.valid.eq(0)

        # Chunks: their number, and how far the first begins from the run's first row.
        empty, outside = Signal(), Signal()
        first, last = Signal(address), Signal(address)
        low_bit, low_word = clipped.low[: c.word_log2], clipped.low[c.word_log2 :]
        high_bit, high_word = clipped.high[: c.word_log2], clipped.high[c.word_log2 :]
        first_chunk, last_chunk = first[summary_log2:], last[summary_log2:]
        m.d.comb += [
            empty.eq((clipped.first > clipped.last) | (clipped.low > clipped.high)),
            first.eq(clipped.base + clipped.first + low_word),
            last.eq(clipped.base + clipped.last + high_word),
            outside.eq(last >= c.plane_words),
        ]
        with m.If(move):
            follow(ranged, clipped, "row", *kind)
            m.d.sync += [
                ranged.valid.eq(
                    clipped.valid & (clipped.end | ~(empty | outside | self.outside | self.stop))
                ),
                ranged.lo.eq(low_bit),
                ranged.hi.eq(Mux(clipped.identity, low_bit + clipped.lanes - 1, high_bit)),
                ranged.chunk.eq(first_chunk),
                ranged.more.eq(last_chunk - first_chunk),
                ranged.lo_at.eq(first[:summary_log2]),
                ranged.hi_at.eq(last[:summary_log2]),
                ranged.offset.eq((first_chunk << summary_log2) - clipped.top),
            ]
            with m.If(clipped.end):
                m.d.sync += ranged.more.eq(0)
            with m.If(clipped.valid & ~clipped.end & ~empty & outside & ~self.stop):
                m.d.sync += self.outside.eq(1)
        with m.If(self.clear):
            m.d.sync += self.outside.eq(0)

        # Cut.
        ahead = (ranged.offset << ranged.increment)[:row_bits]
        with m.If(move):
            follow(cut, ranged, "chunk", "more", "lo_at", "hi_at", "lo", "hi", *kind)
            m.d.sync += [
                cut.valid.eq(ranged.valid),
                cut.fresh.eq(1),
                cut.row.eq(ranged.row + Mux(ranged.identity, 0, ahead)),
            ]
        with m.Elif(self.o.ready):
            m.d.sync += [
                cut.fresh.eq(0),
                cut.chunk.eq(cut.chunk + 1),
                cut.more.eq(cut.more - 1),
                cut.row.eq(cut.row + (c.summary << cut.increment)),
            ]

        request = self.o.payload
        every = (1 << c.summary) - 1
        from_low = Mux(cut.fresh, every << cut.lo_at, every)
        to_high = Mux(more, every, (2 << cut.hi_at) - 1)
        m.d.comb += [
            self.o.valid.eq(cut.valid),
            self.closed.eq(cut.valid & cut.end & self.o.ready),
            request.kind.eq(Mux(cut.identity, ScanKind.IDENTITY, ScanKind.CONV)),
            request.want.eq(from_low & to_high),
            request.lo_en.eq(cut.fresh),
            request.hi_en.eq(~more),
            request.inc.eq(cut.increment),
        ]
        for name in ("chunk", "lo", "hi", "lo_at", "hi_at", "stacked", "row", "exponent"):
            m.d.comb += request[name].eq(cut[name])
        with m.If(cut.end):
            m.d.comb += request.kind.eq(ScanKind.END)
        return m
