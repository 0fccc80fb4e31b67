"""Fetches the segments of every step, each with its path and the place of its field of view."""

from amaranth import Module, Signal
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from lbq_hw import isa
from lbq_hw.config import CoreConfig, address_bits
from lbq_hw.core.walk import records
from lbq_hw.core.walk.path_store import SLOTS, FetchPort
from lbq_hw.core.walk.places import FetchedSegment, carry

__all__ = ["SegmentFetch"]


class SegmentFetch(wiring.Component):
    """Reads the SEGMENT records of the layer once for every open step.

    Timing. One segment per cycle. The first segment of a step is offered 3 cycles after ``open``,
    if nothing is ahead of it. ``o.ready`` enables the whole block.

    Errors. A SEGMENT is refused if it is illegal, if its path does not exist in the layer, or if
    its exponent is larger than the previous segment's in the layer. It is dropped together with all
    later segments; every step still has its end. ``dropping`` is 1 from the cycle after ``bad``
    until ``clear``.

    Members
    -------
    begin, clear, open, segment_first, segment_last, paths_last : as in `Segments`
    segments : read port of a SEGMENT record, flipped
    paths : `FetchPort`
    failed : in
        An error was found here or in a later stage: steps have no more segments, only ends.
    o : stream of `FetchedSegment`
    dropping : out
    bad, bad_at : out
        Strobe: record `bad_at` is the first that is illegal.
    """

    def __init__(self, config: CoreConfig):
        self._config = config
        segment_bits, path_bits = address_bits(config.segments), address_bits(config.layer_paths)
        segment = records.layout(isa.SEGMENT, config)
        super().__init__(
            {
                "begin": In(1),
                "clear": In(1),
                "open": In(1),
                "segment_first": In(segment_bits),
                "segment_last": In(segment_bits),
                "paths_last": In(path_bits),
                "segments": In(memory.ReadPort.Signature(addr_width=segment_bits, shape=segment)),
                "paths": Out(FetchPort(config)),
                "failed": In(1),
                "o": Out(stream.Signature(FetchedSegment(config))),
                "dropping": Out(1),
                "bad": Out(1),
                "bad_at": Out(segment_bits),
            }
        )

    def elaborate(self, _platform):
        m = Module()
        c, out, segment = self._config, self.o.payload, self.segments.data
        # A segment is requested, then read and checked, then offered with its path and state.
        fetched = Signal(
            data.StructLayout(
                {"valid": 1, "end": 1, "none": 1, "slot": 1, "index": address_bits(c.segments)}
            )
        )
        offered = Signal(
            data.StructLayout(
                {
                    "valid": 1,
                    "end": 1,
                    "none": 1,
                    "base": c.plane_address_bits,
                    "weight": c.weight_address_bits,
                    "exponent": c.exponent_bits,
                }
            )
        )
        feed, illegal, rising, none = self.o.ready, Signal(), Signal(), Signal()
        m.d.comb += [
            self.paths.en.eq(feed),
            self.paths.slot.eq(fetched.slot),
            self.paths.path.eq(segment.path),
            self.paths.release.eq(feed & offered.valid & offered.end),
            # `offered` is the previous segment, of the same step unless it has ``end``.
            rising.eq(offered.valid & ~offered.end & (segment.exponent > offered.exponent)),
            illegal.eq(
                records.illegal(isa.SEGMENT, c, segment) | (segment.path > self.paths_last) | rising
            ),
            none.eq(fetched.none | illegal | self.dropping),
            self.bad.eq(feed & fetched.valid & ~fetched.none & illegal & ~self.failed),
            self.bad_at.eq(fetched.index),
            self.o.valid.eq(offered.valid),
            out.state.eq(self.paths.state),
        ]
        m.d.comb += carry(out, self.paths.fields)
        names = ("base", "weight", "exponent")
        m.d.comb += [out[name].eq(offered[name]) for name in ("end", "none", *names)]
        self._ask(m, fetched)
        with m.If(feed):
            m.d.sync += offered.valid.eq(fetched.valid & (fetched.end | ~none))
            m.d.sync += [offered.end.eq(fetched.end), offered.none.eq(none)]
            m.d.sync += [offered[name].eq(segment[name]) for name in names]
        with m.If(self.bad):
            m.d.sync += self.dropping.eq(1)
        with m.If(self.clear):
            m.d.sync += self.dropping.eq(0)
        return m

    def _ask(self, m, fetched):
        """Request the layer's segments in turn, or only the step's end."""
        feed = self.o.ready
        at = Signal.like(self.segment_first)
        closing, issue, slot = Signal(), Signal(), Signal()
        waiting = Signal(range(SLOTS + 1))  # steps whose end has not been issued yet
        m.d.comb += [
            issue.eq(waiting != 0),
            closing.eq((at == self.segment_last) | self.failed),
            self.segments.en.eq(feed),
            self.segments.addr.eq(at),
        ]
        m.d.sync += waiting.eq(waiting + self.open - (feed & issue & closing))
        with m.If(feed):
            m.d.sync += [
                fetched.valid.eq(issue),
                fetched.end.eq(closing),
                fetched.none.eq(self.failed),
            ]
            m.d.sync += [fetched.slot.eq(slot), fetched.index.eq(at)]
            with m.If(issue & closing):
                m.d.sync += [at.eq(self.segment_first), slot.eq(~slot)]
            with m.Elif(issue):
                m.d.sync += at.eq(at + 1)
        with m.If(self.begin):
            m.d.sync += at.eq(self.segment_first)
