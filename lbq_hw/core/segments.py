"""Fetches the segments of every step, and of each segment the runs: one run a cycle."""

from amaranth import Module, Mux, Signal, signed, unsigned
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from lbq_hw import isa
from lbq_hw.config import CoreConfig, address_bits
from lbq_hw.core import records
from lbq_hw.core.payload import EXPONENT_BITS, INCREMENT_BITS
from lbq_hw.core.records import Table

__all__ = ["SCAN_FIELDS", "PathState", "PlacedRun", "Segments", "offset_bits"]

SCAN_FIELDS = (
    "identity",
    "stacked",
    "row_low",
    "row_high",
    "column_low",
    "column_high",
    "increment",
    "lanes",
    "run_first",
    "run_last",
)
"""The fields of a PATH record that say what a run means; the others say how its window moves."""

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
    i_record : stream of `RecordWrite`, always ready
    segment_first, segment_last, path_first, paths_last : in
        Of the layer, `paths_last` the number of its paths minus 1; stable while steps are open.
    begin : in
        A layer begins: no step is open.
    clear : in
        Forget errors.
    check, check_at : in
        Read a PATH record, while no step is open; ``bad`` tells two cycles later whether
        one of `SCAN_FIELDS` is illegal.
    store, store_at, state : in
        Store the state of one path.
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

    def __init__(self, config: CoreConfig):
        self._config = config
        segment_bits, path_bits = address_bits(config.segments), address_bits(config.paths)
        super().__init__(
            {
                "i_record": In(records.record_stream(config)),
                "segment_first": In(segment_bits),
                "segment_last": In(segment_bits),
                "path_first": In(path_bits),
                "paths_last": In(path_bits),
                "begin": In(1),
                "clear": In(1),
                "check": In(1),
                "check_at": In(path_bits),
                "bad": Out(1),
                "store": In(1),
                "store_at": In(address_bits(config.layer_paths)),
                "state": In(PathState(config)),
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
        fields = {
            Table.PATHS: SCAN_FIELDS,
            Table.SEGMENTS: isa.SEGMENT.slots(c),
            Table.RUNS: isa.RUN.slots(c),
        }
        reads = {}
        for table, names in fields.items():
            store = records.attach(m, self.i_record, table, c, names)
            m.submodules[table.name.lower()] = store
            reads[table] = store.read_port()
        path_bits = len(self.store_at)
        m.submodules.states = states = memory.Memory(
            shape=PathState(c), depth=_SLOTS << path_bits, init=[], attrs=records.APART
        )
        state_write, state_read = states.write_port(), states.read_port()
        path_read, segment_read, run_read = reads.values()
        segment, path, state, run = (
            port.data for port in (segment_read, path_read, state_read, run_read)
        )

        # A segment is read in b, looked at in c; its path and state are read in d; in e its runs
        # are read one by one; in f they are offered.
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
        at_b = Signal(data.StructLayout(token | tag))
        at_c = Signal(
            data.StructLayout(
                token | tag | {"at": len(self.path_first), "segment": segment.shape()}
            )
        )
        at_d = Signal(data.StructLayout(token | scan))
        at_e = Signal(
            data.StructLayout(
                token
                | {"row": signed(c.row_offset_bits), "col": signed(c.column_bits)}
                | {"weight": c.weight_address_bits, "run": run_index, "run_last": run_index}
                | whole
            )
        )
        at_f = Signal(data.StructLayout({"valid": 1, "bad": 1, "index": run_index}))
        offer = Signal(PlacedRun(c))

        move = self.o.ready
        feed, e_done = Signal(), Signal()
        next_segment = Signal.like(self.segment_first)
        next_run = Signal(run_index)
        at_end, closing, issue = Signal(), Signal(), Signal()
        slot, store_slot = Signal(), Signal()
        kept = Signal(range(_SLOTS + 1))  # slots whose states are still to be read
        waiting = Signal(range(_SLOTS + 1))  # slots whose end was not issued yet
        bad_segment, bad_run = Signal(), Signal()
        looked_at = Signal(path.shape())
        drop_segments, drop_runs = Signal(), Signal()

        m.d.comb += [
            self.free.eq(kept < _SLOTS),
            state_write.en.eq(self.store),
            state_write.addr.eq(self.store_at | (store_slot << path_bits)),
            state_write.data.eq(self.state),
            issue.eq(waiting != 0),
            closing.eq(at_end | self.failed),
            segment_read.en.eq(feed),
            segment_read.addr.eq(next_segment),
            path_read.en.eq(feed | self.check),
            path_read.addr.eq(Mux(self.check, self.check_at, at_c.at)),
            state_read.en.eq(feed),
            state_read.addr.eq(at_c.segment.path | (at_c.slot << path_bits)),
            bad_segment.eq(
                records.illegal(isa.SEGMENT, c, at_c.segment)
                | (at_c.segment.path > self.paths_last)
            ),
            # While no step is open, e takes whatever path is read.
            looked_at.run_first.eq(at_e.run),
            self.bad.eq(records.illegal(isa.PATH, c, looked_at)),
            bad_run.eq(at_f.bad | (~offer.stacked & (offer.rows_last != 0))),
            e_done.eq(~at_e.valid | at_e.end | (at_e.run == at_e.run_last)),
            feed.eq(move & e_done),
            next_run.eq(Mux(e_done, path.run_first, at_e.run + 1)),
            run_read.en.eq(move),
            run_read.addr.eq(next_run),
            self.o.valid.eq(at_f.valid & (offer.end | ~(bad_run | drop_runs))),
            self.o.payload.eq(offer),
            self.failed.eq(drop_segments | drop_runs | self.stop),
        ]
        m.d.comb += [looked_at[n].eq(at_e[n]) for n in SCAN_FIELDS if n != "run_first"]
        m.d.sync += [
            kept.eq(kept + self.open - (feed & at_c.valid & at_c.end)),
            waiting.eq(waiting + self.open - (feed & issue & closing)),
            store_slot.eq(store_slot ^ self.open),
        ]
        with m.If(feed):
            m.d.sync += [at_b.valid.eq(issue), at_b.end.eq(closing)]
            m.d.sync += [at_b.slot.eq(slot), at_b.index.eq(next_segment)]
            with m.If(issue & closing):
                m.d.sync += [next_segment.eq(self.segment_first), at_end.eq(0), slot.eq(~slot)]
            with m.Elif(issue):
                m.d.sync += next_segment.eq(next_segment + 1)
                m.d.sync += at_end.eq(next_segment == self.segment_last)
            m.d.sync += [
                at_c.valid.eq(at_b.valid),
                at_c.at.eq(self.path_first + segment.path),
                at_d.valid.eq(at_c.valid & (at_c.end | ~(bad_segment | drop_segments))),
                at_e.valid.eq(at_d.valid),
                at_e.run_last.eq(path.run_last),
                at_e.row.eq(state.row),
                at_e.col.eq(state.col),
                at_e.number.eq(state.number),
                at_e.base.eq(at_d.base + state.frame),
                at_e.weight.eq(at_d.weight + state.tile),
                at_e.exponent.eq(at_d.exponent),
            ]
            m.d.sync += [at_c[name].eq(at_b[name]) for name in ("end", "slot", "index")]
            m.d.sync += [at_c.segment[name].eq(segment[name]) for name in ("path", *scan)]
            m.d.sync += [at_d[name].eq(at_c.segment[name]) for name in scan]
            m.d.sync += at_d.end.eq(at_c.end)
            m.d.sync += [at_e[name].eq(path[name]) for name in whole if name in SCAN_FIELDS]
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
            m.d.sync += [offer[name].eq(at_e[name]) for name in whole]
            m.d.sync += offer.weight.eq(at_e.weight + Mux(at_e.identity, 0, run.weight))

        # A later stage holds what comes earlier in the program: its error is the one to keep.
        with m.If(feed & at_c.valid & ~at_c.end & bad_segment & ~self.failed):
            m.d.sync += [drop_segments.eq(1), self.error_at.eq(at_c.index)]
            m.d.sync += self.error.eq(isa.Error.SEGMENT)
        with m.If(move & at_f.valid & ~offer.end & bad_run & ~(drop_runs | self.stop)):
            m.d.sync += [drop_runs.eq(1), self.error_at.eq(at_f.index)]
            m.d.sync += self.error.eq(isa.Error.RUN)
        with m.If(self.clear):
            m.d.sync += [drop_segments.eq(0), drop_runs.eq(0), self.error.eq(isa.Error.NONE)]
        return m
