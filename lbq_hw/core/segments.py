"""Fetches the segments of every step, and of each segment the runs: one run a cycle."""

from amaranth import Cat, Module, Mux, Signal, signed, unsigned
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from lbq_hw import isa
from lbq_hw.config import CoreConfig, address_bits
from lbq_hw.core import records
from lbq_hw.core.paths import SCAN_FIELDS
from lbq_hw.core.payload import EXPONENT_BITS, INCREMENT_BITS
from lbq_hw.core.tables import APART, RecordTable, Table, slice_stream

__all__ = ["PathState", "PlacedRun", "Segments", "offset_bits"]

_SLOTS = 2


def offset_bits(config: CoreConfig) -> int:
    """Bits of an offset in words that can tell that it has left the plane memory."""
    return config.plane_address_bits + 2


class PathState(data.StructLayout):
    """Where the window of one path is in one step, in the words of `lbq_hw.isa`.

    Members
    -------
    row, col : signed
    frame, tile : unsigned
    number : unsigned
        Number of the tile.
    """

    def __init__(self, config: CoreConfig):
        super().__init__(
            {
                "row": signed(config.row_offset_bits),
                "col": signed(config.column_bits),
                "frame": offset_bits(config),
                "tile": config.weight_address_bits,
                "number": address_bits(config.param_tiles),
            }
        )


class PlacedRun(data.StructLayout):
    """A run at its place in a plane, not yet clipped; or, with ``end``, the end of a step.

    Members
    -------
    end : bit
        Nothing else has a meaning.
    base : unsigned
        First word of the plane, of this timestep.
    top, left, rows_last, length_last
        The run in its plane, as in `lbq_hw.isa`.
    row_low, row_high, column_low, column_high, identity, stacked, increment, lanes
        Of its path.
    number : unsigned
        Number of the tile.
    weight : unsigned
        Weight row of the run's first bit; of an identity: its weight row.
    exponent : unsigned
    """

    def __init__(self, config: CoreConfig):
        run = isa.RUN.slots(config)
        super().__init__(
            {
                "end": 1,
                "base": offset_bits(config) + 1,
                "top": signed(config.row_offset_bits + 1),
                "left": signed(config.column_bits + 1),
                "rows_last": run["rows_last"].width,
                "length_last": run["length_last"].width,
                "row_low": config.plane_address_bits,
                "row_high": config.plane_address_bits,
                "column_low": config.column_bits - 1,
                "column_high": config.column_bits - 1,
                "identity": 1,
                "stacked": 1,
                "increment": INCREMENT_BITS,
                "lanes": config.lanes.bit_length(),
                "number": address_bits(config.param_tiles),
                "weight": config.weight_address_bits,
                "exponent": EXPONENT_BITS,
            }
        )


class Segments(wiring.Component):
    """Turns every step into its runs: those of each segment in turn, then an end.

    Steps come as slots of path states: while ``free``, the states of all paths of the next step
    are stored, then ``open`` is pulsed.

    Timing. One run a cycle, and one cycle for an end, while steps are open and ``o`` is ready. The
    first run of a step is offered 5 cycles after that of ``open`` if nothing is ahead of it.
    ``o.ready`` enables all of the block.

    Errors. A SEGMENT or RUN that is illegal is dropped together with all that follows, except the
    end of every step that was or will be opened; ``error`` tells the first in program order, once
    all that is before it has been offered. A run of several rows in a path that is not stacked is
    illegal, too. ``stop`` drops in the same way.

    Members
    -------
    i_record : stream of `RecordSlice`, always ready
    scans : read port of a path's `SCAN_FIELDS`, seen from the other side
    segment_first, segment_last, paths_last : in
        Of the layer, `paths_last` the number of its paths minus 1; stable while steps are open.
    begin : in
        A layer begins: no step is open.
    clear : in
        Forget errors.
    store, store_at, state : in
        Store the state of one path.
    only : in
        Instead of these three, the state of the only path if `layer_paths` is 1: from the cycle
        after ``open`` on, as long as not ``free`` and for two cycles more.
    free : out
        There is a slot to store to.
    open : in
        The slot is complete.
    stop : in
        Level: drop everything but ends.
    o : stream of `PlacedRun`
    failed, error, error_at : out
        Something is dropped; the error if it was one of this block, and the record's index.
    """

    def __init__(self, config: CoreConfig, *, segments=(), runs=()):
        self._config = config
        self._segments = RecordTable(config, Table.SEGMENTS, segments)
        self._runs = RecordTable(config, Table.RUNS, runs)
        segment_bits, path_bits = address_bits(config.segments), address_bits(config.layer_paths)
        scans = records.layout(isa.PATH, config, SCAN_FIELDS)
        super().__init__(
            {
                "i_record": In(slice_stream(config)),
                "scans": In(memory.ReadPort.Signature(addr_width=path_bits, shape=scans)),
                "segment_first": In(segment_bits),
                "segment_last": In(segment_bits),
                "paths_last": In(path_bits),
                "begin": In(1),
                "clear": In(1),
                "store": In(1),
                "store_at": In(path_bits),
                "state": In(PathState(config)),
                "only": In(PathState(config)),
                "free": Out(1),
                "open": In(1),
                "stop": In(1),
                "o": Out(stream.Signature(PlacedRun(config))),
                "failed": Out(1),
                "error": Out(unsigned(4)),
                "error_at": Out(max(segment_bits, address_bits(config.runs))),
            }
        )

    @property
    def config(self) -> CoreConfig:
        return self._config

    def elaborate(self, _platform):
        m = Module()
        c = self._config
        m.submodules.segments = segments = self._segments
        m.submodules.runs = runs = self._runs
        for table in (segments, runs):
            m.d.comb += [
                table.i_record.valid.eq(self.i_record.valid),
                table.i_record.payload.eq(self.i_record.payload),
            ]
        path_read, segment_read, run_read = self.scans, segments.read, runs.read
        segment, path, run = (port.data for port in (segment_read, path_read, run_read))
        state = Signal(PathState(c))

        # A segment is read in a and looked at in b; its path and state are there in d; in e its
        # runs are read one by one; in f they are offered.
        token = {"valid": 1, "end": 1}
        scan = {
            "base": c.plane_address_bits,
            "weight": c.weight_address_bits,
            "exponent": EXPONENT_BITS,
        }
        tag = {"slot": 1, "index": address_bits(c.segments)}
        run_index = address_bits(c.runs)
        placed = dict(PlacedRun(c).members)
        whole = {name: placed[name] for name in placed if name not in run.shape().members}
        for name in ("end", "top", "left"):
            del whole[name]
        # Of the only path of a layer nothing changes on the way.
        several = c.layer_paths > 1
        of_path = [name for name in whole if name in SCAN_FIELDS]
        carried = {name: whole[name] for name in whole if several or name not in of_path}
        at_b = Signal(data.StructLayout(token | tag))
        at_d = Signal(data.StructLayout(token | scan))
        at_e = Signal(
            data.StructLayout(
                token
                | {"row": signed(c.row_offset_bits), "col": signed(c.column_bits)}
                | {"weight": c.weight_address_bits, "run": run_index, "run_last": run_index}
                | carried
            )
        )
        at_f = Signal(data.StructLayout({"valid": 1, "bad": 1, "index": run_index}))
        offer = Signal(
            data.StructLayout(
                {name: placed[name] for name in placed if several or name not in of_path}
            )
        )
        path_e, path_f = (at_e, offer) if several else (path, path)

        move = self.o.ready
        feed, e_done = Signal(), Signal()
        next_segment = Signal.like(self.segment_first)
        next_run = Signal(run_index)
        at_end, closing, issue = Signal(), Signal(), Signal()
        slot, release = Signal(), Signal()
        waiting = Signal(range(_SLOTS + 1))  # slots whose end was not issued yet
        bad_segment, bad_run = Signal(), Signal()
        drop_segments, drop_runs = Signal(), Signal()

        m.d.comb += [
            release.eq(feed & at_b.valid & at_b.end),
            issue.eq(waiting != 0),
            closing.eq(at_end | self.failed),
            segment_read.en.eq(feed),
            segment_read.addr.eq(next_segment),
            path_read.en.eq(feed),
            path_read.addr.eq(segment.path),
            bad_segment.eq(
                records.illegal(isa.SEGMENT, c, segment) | (segment.path > self.paths_last)
            ),
            bad_run.eq(at_f.bad | (~path_f.stacked & (offer.rows_last != 0))),
            e_done.eq(~at_e.valid | at_e.end | (at_e.run == at_e.run_last)),
            feed.eq(move & e_done),
            next_run.eq(Mux(e_done, path.run_first, at_e.run + 1)),
            run_read.en.eq(move),
            run_read.addr.eq(next_run),
            self.o.valid.eq(at_f.valid & (offer.end | ~(bad_run | drop_runs))),
            self.failed.eq(drop_segments | drop_runs | self.stop),
        ]
        for name in placed:
            m.d.comb += self.o.payload[name].eq((path_f if name in of_path else offer)[name])
        m.d.sync += waiting.eq(waiting + self.open - (feed & issue & closing))
        if several:
            self._keep_states(m, state, feed, Cat(at_b.slot, segment.path), release)
        else:
            self._keep_state(m, state, release)
        with m.If(feed):
            m.d.sync += [at_b.valid.eq(issue), at_b.end.eq(closing)]
            m.d.sync += [at_b.slot.eq(slot), at_b.index.eq(next_segment)]
            with m.If(issue & closing):
                m.d.sync += [next_segment.eq(self.segment_first), at_end.eq(0), slot.eq(~slot)]
            with m.Elif(issue):
                m.d.sync += next_segment.eq(next_segment + 1)
                m.d.sync += at_end.eq(next_segment == self.segment_last)
            m.d.sync += [
                at_d.valid.eq(at_b.valid & (at_b.end | ~(bad_segment | drop_segments))),
                at_e.valid.eq(at_d.valid),
                at_e.run_last.eq(path.run_last),
                at_e.row.eq(state.row),
                at_e.col.eq(state.col),
                at_e.number.eq(state.number),
                at_e.base.eq(at_d.base + state.frame),
                at_e.weight.eq(at_d.weight + state.tile),
                at_e.exponent.eq(at_d.exponent),
            ]
            m.d.sync += [at_d[name].eq(segment[name]) for name in scan]
            m.d.sync += at_d.end.eq(at_b.end)
            m.d.sync += [at_e[name].eq(path[name]) for name in carried if name in of_path]
            m.d.sync += at_e.end.eq(at_d.end)
        with m.If(self.begin):
            m.d.sync += next_segment.eq(self.segment_first)
        with m.If(move):
            m.d.sync += [
                at_e.run.eq(next_run),
                at_f.valid.eq(at_e.valid),
                at_f.bad.eq(records.illegal(isa.RUN, c, run)),
                at_f.index.eq(at_e.run),
                offer.end.eq(at_e.end),
                offer.top.eq(at_e.row + run.row),
                offer.left.eq(at_e.col + run.column),
                offer.rows_last.eq(run.rows_last),
                offer.length_last.eq(run.length_last),
            ]
            m.d.sync += [offer[name].eq(at_e[name]) for name in carried]
            m.d.sync += offer.weight.eq(at_e.weight + Mux(path_e.identity, 0, run.weight))

        # A later stage holds what comes earlier in the program: its error is the one to keep.
        with m.If(feed & at_b.valid & ~at_b.end & bad_segment & ~self.failed):
            m.d.sync += [drop_segments.eq(1), self.error_at.eq(at_b.index)]
            m.d.sync += self.error.eq(isa.Error.SEGMENT)
        with m.If(move & at_f.valid & ~offer.end & bad_run & ~(drop_runs | self.stop)):
            m.d.sync += [drop_runs.eq(1), self.error_at.eq(at_f.index)]
            m.d.sync += self.error.eq(isa.Error.RUN)
        with m.If(self.clear):
            m.d.sync += [drop_segments.eq(0), drop_runs.eq(0), self.error.eq(isa.Error.NONE)]
        return m

    def _keep_states(self, m, state, read, at, release):
        """Slots for the states of two steps; the one `at` is read with `read`."""
        m.submodules.states = states = memory.Memory(
            shape=state.shape(), depth=_SLOTS * self._config.layer_paths, init=[], attrs=APART
        )
        write_port, read_port = states.write_port(), states.read_port()
        slot = Signal()
        kept = Signal(range(_SLOTS + 1))  # slots whose states are still to be read
        m.d.comb += [
            self.free.eq(kept < _SLOTS),
            write_port.en.eq(self.store),
            write_port.addr.eq(Cat(slot, self.store_at)),
            write_port.data.eq(self.state),
            read_port.en.eq(read),
            read_port.addr.eq(at),
            state.eq(read_port.data),
        ]
        m.d.sync += [kept.eq(kept + self.open - release), slot.eq(slot ^ self.open)]

    def _keep_state(self, m, state, release):
        """The only path's state of the step that is read; that of the next one is in `only`."""
        full, pending = Signal(), Signal()
        load = pending & (~full | release)
        m.d.comb += self.free.eq(~(full & pending))
        m.d.sync += [full.eq(load | (full & ~release)), pending.eq(self.open | (pending & ~load))]
        with m.If(load):
            m.d.sync += state.eq(self.only)
