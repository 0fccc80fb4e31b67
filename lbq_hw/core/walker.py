"""Walks the program: layers, pixels, tiles, windows, timesteps; every advance is an addition."""

from amaranth import Cat, Module, Mux, Signal, signed, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from lbq_hw import isa
from lbq_hw.config import CoreConfig, address_bits
from lbq_hw.core import records
from lbq_hw.core.paths import Paths
from lbq_hw.core.payload import StepInfo
from lbq_hw.core.queue import Queue
from lbq_hw.core.requests import Requests
from lbq_hw.core.segments import Segments, offset_bits
from lbq_hw.core.tables import SliceTable, Table, slice_stream
from lbq_hw.core.windows import Advance, Windows, further
from lbq_hw.isa.record import SLICE

__all__ = ["STEPS_AHEAD", "Walker", "step_layout"]

STEPS_AHEAD = 17
"""StepInfos that can wait for their sums."""


def step_layout(config: CoreConfig) -> StepInfo:
    """The StepInfo of a core; its address reaches every plane word and every logit."""
    return StepInfo(
        lanes=config.lanes,
        word=config.word,
        planes=config.planes,
        address_bits=max(config.plane_address_bits, address_bits(config.logits)),
        group_bits=address_bits(config.channels // config.units),
        update_bits=config.timesteps.bit_length(),
        decay_bits=config.decay_bits,
        shift_bits=max(1, config.fraction_bits.bit_length()),
    )


class Walker(wiring.Component):
    """Executes the LAYER records from 0 on: emits the scan requests and the StepInfo of each step.

    Both streams follow the loops of `lbq_hw.isa`, with one END and one StepInfo a step. A StepInfo
    is offered before the END of its step and need not be taken before it: `STEPS_AHEAD` of them
    can wait, and only then the requests wait, too.

    Barrier. When all requests and StepInfos of a layer have been taken, ``layer_done`` rises
    unless it was the last layer, and the walker waits for ``i_resume``, which says that everything
    is written: the next layer may read it. ``o_done`` rises, and ``o_busy`` falls, when all of the
    last layer has been taken.

    Timing. One request a cycle in the steady state, and one cycle for a run that has none. Two
    steps are prepared ahead; each takes ``paths + 2`` cycles, as does a position of a window above
    or left of all that exist, while those below or right cost nothing. So this shows only
    where steps have fewer runs than that. The first request of a layer is offered
    ``L + paths + 10 + max(paths * Q + 5, planes_last + 4)`` cycles after that of ``i_start`` or
    ``i_resume``, where a LAYER has L slices and a PATH Q; of a static layer, `planes_last` counts
    ``time_last`` more.

    Errors. The walk stops at the first error in program order, which ``o_error`` and ``o_error_at``
    tell when ``o_done`` rises: LAYER, PATH, SEGMENT and RUN with the index of the record; PARAM,
    PLANE and LOGIT with the number of the layer. The requests before it are emitted, and every
    StepInfo that is offered gets its END, so that all blocks behind the walker drain; what they
    write of a step that was cut short is meaningless, but in its place. Beyond
    `Record.violations` it refuses: a LAYER with more paths than `layer_paths`, or in the last
    entry of its table and not marked `last`, or of neurons whose frames do not follow each other
    as the planes do; a SEGMENT of a path that the layer has not; a RUN of several rows in a path
    that is not stacked.
    ``i_stop`` ends the walk in the same way, without an error.

    Members
    -------
    i_record : stream of `RecordSlice`, always ready
        Not while busy.
    i_start : in
        Start at layer 0; ignored while busy.
    i_resume : in
        Answer to ``layer_done``, in the same cycle or later.
    i_stop : in
    o_request : stream of `ScanRequest`
    o_step : stream of `StepInfo`
    o_busy, o_done, layer_done : out
        ``o_done`` stays until the next start.
    o_layer : out
        Number of the layer that runs or ran last.
    o_error, o_error_at : out
        An `isa.Error` and where; stay until the next start.
    """

    def __init__(self, config: CoreConfig, *, layers=(), paths=(), segments=(), runs=()):
        self._config = config
        self._table = SliceTable(config, layers=layers, paths=paths)
        self._paths = Paths(config)
        self._windows = Windows(config)
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
                "o_step": Out(stream.Signature(step_layout(config))),
                "o_busy": Out(1),
                "o_done": Out(1),
                "layer_done": Out(1),
                "o_layer": Out(address_bits(config.layers)),
                "o_error": Out(unsigned(4)),
                "o_error_at": Out(at_bits),
            }
        )

    @property
    def config(self) -> CoreConfig:
        return self._config

    def elaborate(self, _platform):
        m = Module()
        c = self._config
        m.submodules.table = table = self._table
        m.submodules.paths = paths = self._paths
        m.submodules.windows = windows = self._windows
        m.submodules.segments = segments = self._segments
        m.submodules.requests = requests = self._requests
        step = self.o_step.payload
        # With one timestep nothing ever moves to the next; nor without max-pools.
        time_moves, window_moves = c.timesteps > 1, c.window > 1
        # The queue carries what changes within a layer; the rest is the record's.
        flags = {"first_t": time_moves, "last_t": time_moves}
        flags |= {"pool_first": window_moves, "pool_last": window_moves}
        info = Signal(
            data.StructLayout(
                {
                    "addr": len(step.write.addr),
                    "place": len(step.write.place),
                    "param": address_bits(c.param_tiles),
                }
                | {name: 1 for name, changes in flags.items() if changes}
            )
        )
        m.submodules.infos = infos = Queue(info.shape(), depth=STEPS_AHEAD)
        offered = infos.o.payload
        read_layer, layer_read = Signal(), Signal()
        layer = self._layer(m, read_layer, layer_read)  # stays until the next one is read

        # Counters of the loops, and what they add up to.
        t, tile = Signal.like(layer.time_last), Signal.like(layer.tiles_last)
        row, column = Signal.like(layer.rows_last), Signal.like(layer.columns_last)
        wy, wx = Signal.like(layer.window_rows_last), Signal.like(layer.window_columns_last)
        y0, y = Signal(signed(c.coordinate_bits)), Signal(signed(c.coordinate_bits))
        x0, x = Signal.like(y0), Signal.like(y)
        out_row, out_frame = Signal(offset_bits(c)), Signal(offset_bits(c))
        out_bit = Signal(len(layer.out_pitch) + len(layer.columns_last))
        logit_tiles = c.logits // c.lanes
        logit_tile = Signal(range(logit_tiles + 1))
        steps = Signal(range(4 * STEPS_AHEAD))  # opened, END not taken yet

        # Facts of the layer; `span`: words from the first plane that a step writes to its last.
        paths_last = Signal.like(windows.path)
        span, count = Signal(offset_bits(c)), Signal(range(max(c.planes, c.timesteps)))
        bad_layer, bad_param = Signal(), Signal()
        stopped, refused, readout = Signal(), Signal(), Signal()

        # Where we are, and which advance comes next.
        # All is settled two cycles after the counters have moved.
        y_in, x_in, here = Signal(), Signal(), Signal()
        y_first, x_first = Signal(), Signal()
        y_last, x_last, t_last = Signal(), Signal(), Signal()
        following = Signal(Advance)
        m.d.sync += [
            t_last.eq((t == layer.time_last) | layer.static if time_moves else 1),
        ]
        if window_moves:
            m.d.sync += [
                y_in.eq((y >= 0) & (y <= layer.conv_rows_last)),
                x_in.eq((x >= 0) & (x <= layer.conv_columns_last)),
                y_last.eq((wy == layer.window_rows_last) | (y >= layer.conv_rows_last)),
                x_last.eq((wx == layer.window_columns_last) | (x >= layer.conv_columns_last)),
                y_first.eq((wy == 0) | (y == 0)),
                x_first.eq((wx == 0) | (x == 0)),
            ]
        else:
            m.d.comb += [bit.eq(1) for bit in (y_in, x_in, y_last, x_last, y_first, x_first)]
        m.d.comb += here.eq(y_in & x_in)
        with m.If(here & ~t_last if time_moves else 0):
            m.d.sync += following.eq(Advance.TIMESTEP)
        with m.Elif(y_in & ~x_last):
            m.d.sync += following.eq(Advance.WINDOW_COLUMN)
        with m.Elif(~y_last):
            m.d.sync += following.eq(Advance.WINDOW_ROW)
        with m.Elif(tile != layer.tiles_last):
            m.d.sync += following.eq(Advance.TILE)
        with m.Elif(column != layer.columns_last):
            m.d.sync += following.eq(Advance.COLUMN)
        with m.Elif(row != layer.rows_last):
            m.d.sync += following.eq(Advance.ROW)
        with m.Else():
            m.d.sync += following.eq(Advance.END)

        # The StepInfo is settled at the same time.
        tile_bit = Signal(len(out_bit) + 1)
        tile_word = tile_bit[c.word_log2 :]
        frame_row = Signal(offset_bits(c) + 1)
        place = Signal(max(len(frame_row), len(tile_word)) + 1)
        address = Signal.like(place)
        outside, no_logit = Signal(), Signal()
        if time_moves:
            m.d.sync += frame_row.eq(out_row + out_frame)
        else:
            m.d.comb += frame_row.eq(out_row)
        granule_log2 = ceil_log2(c.granule)
        m.d.sync += [
            tile_bit.eq(out_bit + (tile << c.lane_log2)),
            address.eq(place),
            outside.eq(~readout & y_last & x_last & (place + span >= c.plane_words)),
            info.place.eq(tile_bit[granule_log2 : c.word_log2]),
            info.param.eq(layer.param + tile),
        ]
        m.d.comb += [
            info.addr.eq(Mux(readout, logit_tile << c.lane_log2, address)),
            place.eq(frame_row + tile_word),
            no_logit.eq(readout & (logit_tile == logit_tiles)),
            infos.i.payload.eq(info),
            infos.o.ready.eq(self.o_step.ready),
            self.o_step.valid.eq(infos.o.valid),
            step.group.eq(offered.param << ceil_log2(c.groups)),
            step.updates.eq(Mux(layer.static, layer.time_last + 1, 1)),
            step.readout.eq(layer.readout),
            step.capacity.eq(layer.capacity),
            step.decay.eq(layer.decay),
            step.shift.eq(layer.fraction),
            step.write.addr.eq(offered.addr),
            step.write.stride.eq(layer.out_plane),
            step.write.planes.eq(layer.planes_last + 1),
            step.write.place.eq(offered.place),
            step.write.granules.eq((1 << layer.out_chunk) >> granule_log2),
            step.write.first.eq(offered.place == 0),
        ]
        if time_moves:
            m.d.sync += [info.first_t.eq(t == 0), info.last_t.eq(t_last)]
        if window_moves:
            m.d.sync += [info.pool_first.eq(y_first & x_first), info.pool_last.eq(y_last & x_last)]
        for name, changes in flags.items():
            m.d.comb += step[name].eq(offered[name] if changes else 1)

        # The windows of all paths move; their new states make the next step.
        path = Signal.like(windows.path)
        stored_tile = Signal.like(tile)
        with m.If(windows.done):
            m.d.sync += stored_tile.eq(tile)
        wiring.connect(m, wiring.flipped(self.o_request), requests.o)
        wiring.connect(m, requests.i, segments.o)
        wiring.connect(m, windows.moves, paths.moves)
        wiring.connect(m, segments.scans, paths.scans)
        wiring.connect(m, paths.table, table.paths)
        for block in (table, segments):
            m.d.comb += [
                block.i_record.valid.eq(self.i_record.valid),
                block.i_record.payload.eq(self.i_record.payload),
            ]
        m.d.comb += [
            paths.first.eq(layer.path_first),
            paths.last.eq(layer.path_last),
            windows.path.eq(path),
            segments.store.eq(windows.done),
            segments.store_at.eq(windows.done_path),
            segments.state.eq(windows.state),
            segments.state.number.eq(tile),
            segments.only.eq(windows.only),
            segments.only.number.eq(stored_tile),
            segments.segment_first.eq(layer.segment_first),
            segments.segment_last.eq(layer.segment_last),
            segments.paths_last.eq(paths_last),
            segments.stop.eq(stopped | requests.outside),
            requests.stop.eq(stopped),
            requests.clear.eq(segments.clear),
        ]
        m.d.sync += steps.eq(steps + segments.open - requests.closed)
        kind = Signal(Advance)
        m.d.comb += windows.kind.eq(kind)

        def advance(to):
            """Go on with one loop: counters of the loops inside it start anew."""
            m.d.sync += [kind.eq(to), path.eq(0), t.eq(0), out_frame.eq(0)]
            with m.Switch(to):
                with m.Case(Advance.TIMESTEP):
                    if time_moves:
                        m.d.sync += t.eq(t + 1)
                        m.d.sync += out_frame.eq(further(out_frame, layer.out_frame))
                with m.Case(Advance.WINDOW_COLUMN):
                    m.d.sync += [wx.eq(wx + 1), x.eq(x + 1)]
                with m.Case(Advance.WINDOW_ROW):
                    m.d.sync += [wx.eq(0), x.eq(x0), wy.eq(wy + 1), y.eq(y + 1)]
                with m.Default():
                    m.d.sync += [wx.eq(0), x.eq(x0), wy.eq(0), y.eq(y0), tile.eq(0)]
                    m.d.sync += logit_tile.eq(logit_tile + readout)
            with m.Switch(to):
                with m.Case(Advance.TILE):
                    m.d.sync += tile.eq(tile + 1)
                with m.Case(Advance.COLUMN):
                    right = x0 + layer.window_column_step
                    m.d.sync += [column.eq(column + 1), x0.eq(right), x.eq(right)]
                    m.d.sync += out_bit.eq(out_bit + layer.out_pitch)
                with m.Case(Advance.ROW):
                    below = y0 + layer.window_row_step
                    m.d.sync += [row.eq(row + 1), y0.eq(below), y.eq(below)]
                    m.d.sync += out_row.eq(further(out_row, layer.out_row))
            with m.Switch(to), m.Case(Advance.START, Advance.ROW):
                m.d.sync += [column.eq(0), out_bit.eq(0)]
                m.d.sync += [x0.eq(layer.window_column_init), x.eq(layer.window_column_init)]

        def fail(error, where):
            m.d.sync += [self.o_error.eq(error), self.o_error_at.eq(where), refused.eq(1)]
            m.next = "DRAIN"

        with m.FSM() as fsm:
            m.d.comb += self.o_busy.eq(~fsm.ongoing("IDLE"))
            with m.State("IDLE"):
                m.d.sync += stopped.eq(0)
                with m.If(self.i_start):
                    m.d.comb += segments.clear.eq(1)
                    m.d.sync += [self.o_done.eq(0), refused.eq(0), logit_tile.eq(0)]
                    m.d.sync += [self.o_layer.eq(0), self.o_error.eq(isa.Error.NONE)]
                    m.next = "READ LAYER"
            with m.State("READ LAYER"):
                m.d.comb += read_layer.eq(1)
                with m.If(layer_read):
                    m.next = "LOOK AT LAYER"
            with m.State("LOOK AT LAYER"):
                m.d.comb += [segments.begin.eq(1), paths.start.eq(1)]
                m.d.sync += [
                    paths_last.eq(layer.path_last - layer.path_first),
                    bad_layer.eq(
                        records.illegal(isa.LAYER, c, layer)
                        | (layer.path_last - layer.path_first >= c.layer_paths)
                        | (~layer.last & (self.o_layer == c.layers - 1))
                    ),
                    bad_param.eq(layer.param + layer.tiles_last >= c.param_tiles),
                    readout.eq(layer.readout),
                    span.eq(0),
                    count.eq(layer.planes_last),
                ]
                m.next = "ADD PLANES"
            with m.State("ADD PLANES"):
                with m.If(bad_layer):
                    fail(isa.Error.LAYER, self.o_layer)
                with m.Elif(bad_param):
                    fail(isa.Error.PARAM, self.o_layer)
                with m.Elif(count != 0):
                    m.d.sync += [span.eq(further(span, layer.out_plane)), count.eq(count - 1)]
                with m.Else():
                    apart = span + layer.out_plane != layer.out_frame
                    m.d.sync += [
                        count.eq(Mux(layer.static, layer.time_last, 0)),
                        bad_layer.eq(~readout & (layer.time_last != 0) & apart),
                    ]
                    m.next = "ADD FRAMES"
            with m.State("ADD FRAMES"):
                with m.If(bad_layer):
                    fail(isa.Error.LAYER, self.o_layer)
                with m.Elif(count != 0):
                    m.d.sync += [span.eq(further(span, layer.out_frame)), count.eq(count - 1)]
                with m.Elif(paths.bad):
                    fail(isa.Error.PATH, paths.bad_at)
                with m.Elif(~paths.loading):
                    advance(Advance.START)
                    m.d.sync += [y0.eq(layer.window_row_init), y.eq(layer.window_row_init)]
                    m.d.sync += [row.eq(0), out_row.eq(layer.out_base)]
                    m.d.sync += logit_tile.eq(logit_tile)
                    m.next = "MOVE"
            with m.State("MOVE"):
                with m.If(segments.failed):
                    m.next = "DRAIN"
                with m.Elif(segments.free & infos.i.ready):
                    m.d.comb += windows.go.eq(1)
                    m.d.sync += path.eq(path + 1)
                    with m.If(path == paths_last):
                        m.next = "SETTLE"
            with m.State("SETTLE"):
                m.next = "OPEN"
            with m.State("OPEN"):
                with m.If(here & (outside | no_logit)):
                    m.next = "REFUSE"
                with m.Else():
                    m.d.comb += [segments.open.eq(here), infos.i.valid.eq(here)]
                    advance(following)
                    m.next = "MOVE"
                    with m.If(following == Advance.END):
                        m.next = "DRAIN"
            with m.State("REFUSE"):
                # Steps opened before come first, and so do their errors.
                with m.If(segments.failed):
                    m.next = "DRAIN"
                with m.Elif(steps == 0):
                    fail(Mux(readout, isa.Error.LOGIT, isa.Error.PLANE), self.o_layer)
            with m.State("DRAIN"), m.If((steps == 0) & ~infos.o.valid):
                with m.If(requests.outside):
                    m.d.sync += self.o_error.eq(isa.Error.PLANE)
                    m.d.sync += self.o_error_at.eq(self.o_layer)
                with m.Elif(segments.failed & ~refused):
                    m.d.sync += self.o_error.eq(segments.error)
                    m.d.sync += self.o_error_at.eq(segments.error_at)
                with m.If(segments.failed | refused | layer.last):
                    m.d.sync += self.o_done.eq(1)
                    m.next = "IDLE"
                with m.Else():
                    m.d.comb += self.layer_done.eq(1)
                    with m.If(self.i_resume):
                        m.d.sync += self.o_layer.eq(self.o_layer + 1)
                        m.next = "READ LAYER"

        with m.If(self.i_stop & self.o_busy):
            m.d.sync += stopped.eq(1)
        return m

    def _layer(self, m, read, done):
        """The LAYER record `o_layer`, read slice by slice while `read`; `done` with the last."""
        c, port = self._config, self._table.layers
        whole, parts = records.layout(isa.LAYER, c), isa.LAYER.slices(c)
        record = Signal(whole.size)
        asked, there, there_part = Signal(range(parts + 1)), Signal(), Signal(range(parts))
        m.d.comb += [
            port.en.eq(read & ~done),
            port.addr.eq(Cat(asked[: Table.LAYERS.part_bits(c)], self.o_layer)),
            done.eq(asked == parts),
        ]
        m.d.sync += [there.eq(port.en), there_part.eq(asked), asked.eq(0)]
        with m.If(port.en):
            m.d.sync += asked.eq(asked + 1)
        with m.If(there):
            for i in range(parts):
                with m.If(there_part == i):
                    m.d.sync += record[SLICE * i : SLICE * (i + 1)].eq(port.data)
        return data.View(whole, record)
