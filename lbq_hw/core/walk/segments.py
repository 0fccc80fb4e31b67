"""Turns every step into the runs of its segments: one run per cycle."""

from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from lbq_hw.config import CoreConfig, address_bits
from lbq_hw.core.errors import ErrorCode
from lbq_hw.core.walk.run_fetch import run_fetch
from lbq_hw.core.walk.segment_fetch import SegmentFetch
from lbq_hw.core.walk.tables import RecordTable, Table, slice_stream

__all__ = ["Segments"]


class Segments(wiring.Component):
    """Turns every step into its runs, segment by segment; the step's last run has ``end``.

    Blocks: `SegmentFetch` -> `RunFetch`.

    Timing. One run per cycle while steps are open and ``o`` is ready. The first run of a step is
    offered 5 cycles after ``open``, if nothing is ahead of it. ``o.ready`` enables the whole block.

    Errors. A SEGMENT that `SegmentFetch` refuses or an illegal RUN is dropped together with all
    later ones. Every open step, and every step opened later, still gets its end, as a run with
    ``none``. ``error`` is the first error in program order, once all earlier runs have been
    offered. ``stop`` drops runs in the same way.

    Members
    -------
    i_record : stream of `RecordSlice`, always ready
    paths : `FetchPort`
        Reads the paths of an open step.
    scan_fields : in
        The `SCAN_FIELDS` of the layer's only path, if items do not carry them; stable while steps
        are open.
    segment_first, segment_last, paths_last : in
        The layer's first and last SEGMENT record, and its number of paths minus 1; stable while
        steps are open.
    begin : in
        A layer begins; only while no step is open.
    clear : in
        Clear the error.
    open : in
        Another step begins; `SLOTS` steps can wait.
    stop : in
        Level: drop all runs except the ends of steps.
    o : stream of `PlacedRun`
    failed : out
        A segment or run was dropped in an earlier cycle.
    error, error_at : out
        The error that this block found, and the index of its record.
    """

    def __init__(self, config: CoreConfig, *, segments=(), runs=()):
        self._config = config
        self._segments = RecordTable(config, Table.SEGMENTS, segments)
        self._runs = RecordTable(config, Table.RUNS, runs)
        self._segment_fetch = SegmentFetch(config)
        self._run_fetch = run_fetch(config)(config)
        segment_bits, path_bits = address_bits(config.segments), address_bits(config.layer_paths)
        super().__init__(
            {
                "i_record": In(slice_stream(config)),
                "paths": Out(self._segment_fetch.paths.signature),
                "scan_fields": In(self._run_fetch.scan_fields.shape()),
                "segment_first": In(segment_bits),
                "segment_last": In(segment_bits),
                "paths_last": In(path_bits),
                "begin": In(1),
                "clear": In(1),
                "open": In(1),
                "stop": In(1),
                "o": Out(self._run_fetch.o.signature),
                "failed": Out(1),
                "error": Out(ErrorCode),
                "error_at": Out(max(segment_bits, address_bits(config.runs))),
            }
        )

    @property
    def config(self) -> CoreConfig:
        return self._config

    def elaborate(self, _platform):
        m = Module()
        m.submodules.segments = segments = self._segments
        m.submodules.runs = runs = self._runs
        m.submodules.segment_fetch = segment_fetch = self._segment_fetch
        m.submodules.run_fetch = run_fetch = self._run_fetch
        connect(m, segment_fetch.segments, segments.read)
        connect(m, segment_fetch.paths, flipped(self.paths))
        connect(m, segment_fetch.o, run_fetch.i)
        connect(m, run_fetch.runs, runs.read)
        connect(m, run_fetch.o, flipped(self.o))
        for table in (segments, runs):
            m.d.comb += table.i_record.valid.eq(self.i_record.valid)
            m.d.comb += table.i_record.payload.eq(self.i_record.payload)
        for name in ("begin", "clear", "open", "segment_first", "segment_last", "paths_last"):
            m.d.comb += getattr(segment_fetch, name).eq(getattr(self, name))
        m.d.comb += [
            segment_fetch.failed.eq(segment_fetch.dropping | run_fetch.dropping | self.stop),
            run_fetch.stop.eq(self.stop),
            run_fetch.clear.eq(self.clear),
            run_fetch.scan_fields.eq(self.scan_fields),
        ]
        m.d.sync += self.failed.eq(segment_fetch.failed)

        # A later stage holds an earlier part of the program, so its error has priority. The error
        # is stored a cycle late, because the stages' enable arrives late in its cycle.
        for stage, error in ((segment_fetch, ErrorCode.SEGMENT), (run_fetch, ErrorCode.RUN)):
            bad, bad_at = Signal(), Signal.like(stage.bad_at)
            m.d.sync += [bad.eq(stage.bad), bad_at.eq(stage.bad_at)]
            with m.If(bad):
                m.d.sync += [self.error_at.eq(bad_at), self.error.eq(error)]
        with m.If(self.clear):
            m.d.sync += self.error.eq(ErrorCode.NONE)
        return m
