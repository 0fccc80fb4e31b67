"""Walks the program: layers, pixels, tiles, pool positions, timesteps, with additions only."""

from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import ceil_log2

from lbq_hw import isa
from lbq_hw.config import CoreConfig, address_bits
from lbq_hw.core.errors import ErrorCode
from lbq_hw.core.walk.fields_of_view import FieldsOfView
from lbq_hw.core.walk.layer_loader import layer_loader
from lbq_hw.core.walk.loops import Advance, Loops
from lbq_hw.core.walk.path_loader import PathLoader
from lbq_hw.core.walk.path_store import path_store
from lbq_hw.core.walk.requests import Requests
from lbq_hw.core.walk.segments import Segments
from lbq_hw.core.walk.step_infos import STEPS_AHEAD, step_infos
from lbq_hw.core.walk.tables import SliceTable, slice_stream

__all__ = ["Walker"]


class Walker(wiring.Component):
    """Executes the LAYER records from 0 on: emits the scan requests and the StepInfo of each step.

    Blocks: `LayerLoader` and `PathLoader` (records) -> `Loops` (which step is next) -> `StepInfos`,
    and `FieldsOfView` (where each path looks) -> `Segments` (runs) -> `Requests`. `OnePath` or
    `ManyPaths` hold the paths of the layer.

    Both streams follow the loops of `lbq_hw.isa`, with one END and one StepInfo per step. A
    StepInfo is offered before the END of its step, and may be taken later: up to `STEPS_AHEAD`
    StepInfos can wait before the requests have to wait, too.

    Barrier. When all requests and StepInfos of a layer have been taken, ``layer_done`` rises, and
    the walker waits for ``i_resume``, which says that all levels are written and the next layer may
    read them. After the last layer, ``o_done`` rises and ``o_busy`` falls instead.

    Timing. One request per cycle in the steady state. A run without requests takes one cycle, and
    there is at most one idle cycle between two steps. Two steps are prepared ahead, each in
    ``paths + 2`` cycles; this limits the rate only if steps have fewer runs than that. A position
    of a pool window above the first row or left of the first column takes ``paths + 2`` cycles as
    well; a position below the last row or right of the last column takes none. The first request of
    a layer is offered ``L + paths + 10 + max(paths * Q + 4, planes_last + 4)`` cycles after
    ``i_start`` or ``i_resume``, where a LAYER has L slices and a PATH has Q; in a static layer, add
    ``time_last`` to ``planes_last``.

    Errors. The walk stops at the first error in program order. ``o_error`` and ``o_error_at``
    report it when ``o_done`` rises: LAYER, PATH, SEGMENT and RUN with the index of the record;
    PARAM, PLANE and LOGIT with the number of the layer. All requests before the error are issued,
    and every StepInfo that is offered gets its END, so that the blocks behind the walker drain. For
    a step that was cut short they write undefined levels, but only to its own addresses. A program
    is refused for all that `Record.violations`, `LayerLoader` and `SegmentFetch` name.

    ``i_stop`` ends the walk in the same way, without an error, even while it waits for
    ``i_resume``.

    With external memory, LAYER records are passes, and entry 0 follows the last entry of the table.
    Both loaders take a cycle more, so that requests begin up to two cycles later. A step that waits
    for the slot of an earlier step is prepared a cycle later, too. `PassSteps` says which steps of
    passes are refused.

    Members
    -------
    i_record : stream of `RecordSlice`, always ready
        Not while busy.
    i_start : in
        Start at layer 0; ignored while busy.
    i_resume : in
        Answers ``layer_done``, in the same cycle or later.
    i_stop : in
    o_request : stream of `ScanRequest`
    o_step : stream of `StepInfo`
    o_layer_info : out, `LayerInfo`
        Constants of the current or last layer. Stable from the layer's first StepInfo to the cycle
        of ``i_resume``, and for the last layer to the next ``i_start``, so until all its levels are
        written.
    o_busy, o_done, layer_done : out
        ``o_done`` stays until the next start.
    o_layer : out
        Number of the current or last layer.
    o_error, o_error_at : out
        An `ErrorCode` and its place; stable until the next start.
    """

    def __init__(self, config: CoreConfig, *, layers=(), paths=(), segments=(), runs=()):
        self._config = config
        self._table = SliceTable(config, layers=layers, paths=paths)
        self._layers = layer_loader(config)(config)
        self._paths = PathLoader(config)
        self._store = path_store(config)(config)
        self._loops = Loops(config)
        self._infos = step_infos(config)(config)
        self._fields = FieldsOfView(config, holds=self._store.holds)
        self._segments = Segments(config, segments=segments, runs=runs)
        self._requests = Requests(config)
        at_bits = max(address_bits(getattr(config, name)) for name in isa.TABLES)
        super().__init__(
            {
                "i_record": In(slice_stream(config)),
                "i_start": In(1),
                "i_resume": In(1),
                "i_stop": In(1),
                "o_request": Out(self._requests.o.signature),
                "o_step": Out(self._infos.o.signature),
                "o_layer_info": Out(self._layers.info.shape()),
                "o_busy": Out(1),
                "o_done": Out(1),
                "layer_done": Out(1),
                "o_layer": Out(address_bits(config.layers)),
                "o_error": Out(ErrorCode),
                "o_error_at": Out(at_bits),
            }
        )

    @property
    def config(self) -> CoreConfig:
        return self._config

    def elaborate(self, _platform):
        m = Module()
        layers, paths, loops = self._layers, self._paths, self._loops
        infos, segments, requests = self._infos, self._segments, self._requests
        path = Signal.like(self._fields.path)
        steps = Signal(range(4 * STEPS_AHEAD))  # open steps: their END is not taken yet
        stopped, refused = Signal(), Signal()
        self._connect(m)
        m.d.comb += [
            self._fields.path.eq(path),
            segments.stop.eq(stopped | requests.outside),
            requests.stop.eq(stopped),
        ]
        m.d.sync += steps.eq(steps + segments.open - requests.closed)

        def fail(error, where):
            m.d.sync += [self.o_error.eq(error), self.o_error_at.eq(where), refused.eq(1)]
            m.next = "DRAIN"

        with m.FSM() as fsm:
            m.d.comb += self.o_busy.eq(~fsm.ongoing("IDLE"))
            with m.State("IDLE"):
                m.d.sync += stopped.eq(0)
                with m.If(self.i_start):
                    m.d.comb += [segments.clear.eq(1), infos.clear.eq(1)]
                    m.d.sync += [self.o_done.eq(0), refused.eq(0)]
                    m.d.sync += [self.o_layer.eq(0), self.o_error.eq(ErrorCode.NONE)]
                    m.next = "LOAD"
            with m.State("LOAD"):
                # Starting is harmless even if a record is refused later.
                m.d.comb += layers.load.eq(1)
                m.d.comb += loops.start.eq(layers.ready & ~paths.loading)
                with m.If(layers.bad):
                    fail(layers.error, self.o_layer)
                with m.Elif(layers.ready & paths.bad):
                    fail(ErrorCode.PATH, paths.bad_at)
                with m.Elif(layers.ready & ~paths.loading):
                    m.d.sync += path.eq(0)
                    m.next = "MOVE"
            self._make_steps(m, path, fail)
            with m.State("REFUSE"):
                # Wait for the open steps: their errors have priority.
                with m.If(segments.failed):
                    m.next = "DRAIN"
                with m.Elif(steps == 0):
                    fail(infos.error, self.o_layer)
            with m.State("DRAIN"), m.If((steps == 0) & ~infos.o.valid):
                self._end(m, refused)

        with m.If(self.i_stop & self.o_busy):
            m.d.sync += stopped.eq(1)
        return m

    def _make_steps(self, m, path, fail):
        """Move the fields of view of all paths, one per cycle; then the next step is ready."""
        layers, loops, infos = self._layers, self._loops, self._infos
        segments, store = self._segments, self._store
        with m.State("MOVE"):
            with m.If(self._paths.bad):  # the last path: it was checked while the loops started
                fail(ErrorCode.PATH, self._paths.bad_at)
            with m.Elif(segments.failed):
                m.next = "DRAIN"
            with m.Elif(store.free & infos.room):
                m.d.comb += self._fields.go.eq(1)
                m.d.sync += path.eq(path + 1)
                with m.If(path == layers.paths_last):
                    m.next = "SETTLE"
        with m.State("SETTLE"):
            m.next = "OPEN"
        with m.State("OPEN"):
            with m.If(loops.step_exists & infos.beyond):
                m.next = "REFUSE"
            with m.Else():
                m.d.comb += [segments.open.eq(loops.step_exists), infos.push.eq(loops.step_exists)]
                m.d.comb += loops.go.eq(1)
                m.d.sync += path.eq(0)
                m.next = "MOVE"
                with m.If(loops.following == Advance.END):
                    m.next = "DRAIN"

    def _end(self, m, refused):
        """The layer has drained: report its error, end the program, or go on to the next layer."""
        segments = self._segments
        with m.If(self._requests.outside):
            m.d.sync += self.o_error.eq(ErrorCode.PLANE)
            m.d.sync += self.o_error_at.eq(self.o_layer)
        with m.Elif(segments.failed & ~refused):
            m.d.sync += self.o_error.eq(segments.error)
            m.d.sync += self.o_error_at.eq(segments.error_at)
        with m.If(segments.failed | refused | self._layers.layer.last):
            m.d.sync += self.o_done.eq(1)
            m.next = "IDLE"
        with m.Else():
            m.d.comb += self.layer_done.eq(1)
            with m.If(self.i_resume):
                entries = 1 << ceil_log2(self._config.layers)
                m.d.sync += self.o_layer.eq((self.o_layer + 1) & (entries - 1))
                m.next = "LOAD"

    def _connect(self, m):
        """Make the connections that do not depend on the state."""
        m.submodules.table = table = self._table
        m.submodules.layers = layers = self._layers
        m.submodules.paths = paths = self._paths
        m.submodules.loops = loops = self._loops
        m.submodules.infos = infos = self._infos
        m.submodules.store = store = self._store
        m.submodules.fields = fields = self._fields
        m.submodules.segments = segments = self._segments
        m.submodules.requests = requests = self._requests
        connect(m, layers.table, table.layers)
        connect(m, paths.table, table.paths)
        connect(m, paths.o, store.load)
        connect(m, fields.paths, store.move)
        connect(m, segments.paths, store.fetch)
        connect(m, segments.o, requests.i)
        connect(m, requests.o, flipped(self.o_request))
        connect(m, infos.o, flipped(self.o_step))
        for block in (table, segments):
            m.d.comb += block.i_record.valid.eq(self.i_record.valid)
            m.d.comb += block.i_record.payload.eq(self.i_record.payload)

        layer = layers.layer
        m.d.comb += [
            layers.number.eq(self.o_layer),
            self.o_layer_info.eq(layers.info),
            paths.start.eq(layers.layer_valid),
            paths.first.eq(layer.path_first),
            paths.last.eq(layer.path_last),
            loops.layer.eq(layer),
            infos.layer.eq(layer),
            infos.readout.eq(layers.readout),
            infos.reach.eq(layers.reach),
            infos.start.eq(loops.start),
            infos.go.eq(loops.go),
            infos.following.eq(loops.following),
            infos.state.eq(loops.state),
            fields.kind.eq(loops.kind),
            segments.begin.eq(layers.layer_valid),
            segments.segment_first.eq(layer.segment_first),
            segments.segment_last.eq(layer.segment_last),
            segments.paths_last.eq(layers.paths_last),
            store.tile.eq(loops.state.tile),
            store.open.eq(segments.open),
            segments.scan_fields.eq(store.scan_fields),
            requests.scan_fields.eq(store.scan_fields),
            requests.clear.eq(segments.clear),
        ]
