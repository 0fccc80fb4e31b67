"""Fetches the runs of a segment, one per cycle, and places them in their plane."""

from amaranth import Module, Mux, Signal, signed
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from lbq_hw import isa
from lbq_hw.config import CoreConfig, address_bits
from lbq_hw.core.walk import records
from lbq_hw.core.walk.places import (
    RUN_FIELDS,
    SCAN_FIELDS,
    FetchedSegment,
    PathKind,
    PlacedRun,
    carry,
    item_members,
    path_of,
)

__all__ = ["RunFetch", "SpreadRunFetch", "TapeRunFetch", "run_fetch"]


class RunFetch(wiring.Component):
    """Turns a segment into its placed runs; the last run of a step has ``end``.

    Timing. One run per cycle; the first run of a segment is offered 2 cycles after the segment was
    taken. ``i.ready`` depends on ``o.ready`` of the same cycle, which enables the whole block.

    Errors. An illegal RUN is dropped, together with all later ones; every step still has its end.
    ``dropping`` is 1 from the cycle after ``bad`` until ``clear``.

    Members
    -------
    i : stream of `FetchedSegment`
    scan_fields : in, as in `Segments`
    runs : read port of a RUN record, flipped
    o : stream of `PlacedRun`
    stop, clear : in, as in `Segments`
    dropping : out
    bad, bad_at : out
        Strobe: record `bad_at` is the first that is illegal.
    """

    def __init__(self, config: CoreConfig):
        self._config = config
        run_bits = address_bits(config.runs)
        run = records.layout(isa.RUN, config)
        super().__init__(
            {
                "i": In(stream.Signature(FetchedSegment(config))),
                "scan_fields": In(records.layout(isa.PATH, config, SCAN_FIELDS)),
                "runs": In(memory.ReadPort.Signature(addr_width=run_bits, shape=run)),
                "o": Out(stream.Signature(PlacedRun(config))),
                "stop": In(1),
                "clear": In(1),
                "dropping": Out(1),
                "bad": Out(1),
                "bad_at": Out(run_bits),
            }
        )

    def elaborate(self, _platform):
        m = Module()
        c, run, move = self._config, self.runs.data, self.o.ready
        run_bits, placed = address_bits(c.runs), PlacedRun(c)
        # Each run of a segment is requested; its data arrive a cycle later, and are offered after
        # that.
        carried = ("base", "number", "exponent")
        members = {
            "valid": 1,
            "end": 1,
            "none": 1,
            "run": run_bits,
            "weight": c.weight_address_bits,
        }
        members |= {"row": signed(c.row_offset_bits), "col": signed(c.column_bits)}
        members |= {name: placed[name].shape for name in carried}
        asked = Signal(data.StructLayout(item_members(c, members, (*RUN_FIELDS, "run_last"))))
        offered = Signal(data.StructLayout({"valid": 1, "bad": 1, "index": run_bits}))
        offer = Signal(placed)
        given_path, asked_path = (
            path_of(self.i.payload, self.scan_fields),
            path_of(asked, self.scan_fields),
        )
        identity = PathKind.of(c, asked_path).identity
        last, next_run, none = Signal(), Signal(run_bits), Signal()
        self._find_last(m, last, asked, given_path, asked_path)
        look, illegal = self._look_at(run, offered)
        m.d.comb += [
            self.i.ready.eq(move & last),
            next_run.eq(Mux(last, given_path.run_first, asked.run + 1)),
            self.runs.en.eq(move),
            self.runs.addr.eq(next_run),
            none.eq(offer.none | illegal | self.dropping),
            self.o.valid.eq(offered.valid & (offer.end | ~none)),
            self.o.payload.eq(offer),
            self.o.payload.none.eq(none),
        ]
        self._take(m, asked, given_path)
        with m.If(move):
            m.d.sync += [
                asked.run.eq(next_run),
                offered.valid.eq(asked.valid),
                look,
                offered.index.eq(asked.run),
                offer.end.eq(asked.end & last),
                offer.none.eq(asked.none),
                offer.top.eq(asked.row + run.row),
                offer.left.eq(asked.col + run.column),
                offer.length_last.eq(run.length_last),
                offer.weight.eq(asked.weight + Mux(identity, 0, run.weight)),
            ]
            m.d.sync += [offer[name].eq(asked[name]) for name in carried]
            m.d.sync += carry(offer, asked_path)
        self._drop(m, move & offered.valid & ~offer.none & illegal, offered.index)
        return m

    def _look_at(self, run, offered):
        """Returns the assignment of a register beside `offer`, and whether its run is illegal."""
        return offered.bad.eq(records.illegal(isa.RUN, self._config, run)), offered.bad

    def _find_last(self, m, last, asked, _given_path, asked_path):
        """Whether the run that was requested is the last one of its segment."""
        m.d.comb += last.eq(~asked.valid | asked.none | (asked.run == asked_path.run_last))

    def _take(self, m, asked, path):
        """Take the next segment, and add the place of its field of view."""
        given, state = self.i.payload, self.i.payload.state
        with m.If(self.i.ready):
            m.d.sync += [
                asked.valid.eq(self.i.valid),
                asked.end.eq(given.end),
                asked.none.eq(given.none),
                asked.row.eq(state.row),
                asked.col.eq(state.col),
                asked.number.eq(state.number),
                asked.base.eq(given.base + state.frame),
                asked.weight.eq(given.weight + state.tile),
                asked.exponent.eq(given.exponent),
            ]
            m.d.sync += carry(asked, path)

    def _drop(self, m, illegal, index):
        """Report the first illegal record, and drop all runs from then on."""
        m.d.comb += [
            self.bad.eq(illegal & ~(self.dropping | self.stop)),
            self.bad_at.eq(index),
        ]
        with m.If(self.bad):
            m.d.sync += self.dropping.eq(1)
        with m.If(self.clear):
            m.d.sync += self.dropping.eq(0)


class SpreadRunFetch(RunFetch):
    """As `RunFetch`, for cores whose weights fill the chip: the RUN table may be far away, so a run
    is registered before it is checked.
    """

    def _look_at(self, run, _offered):
        seen = Signal(run.shape(), name="seen")
        return seen.eq(run), records.illegal(isa.RUN, self._config, seen)


class TapeRunFetch(RunFetch):
    """As `RunFetch`, for a core with external memory: whether a run is the last of its segment is
    found in the cycle of its request, and kept in a register, because many blocks depend on it.
    """

    def _find_last(self, m, last, asked, given_path, asked_path):
        known_last, given = Signal(init=1), self.i.payload
        m.d.comb += last.eq(known_last)
        with m.If(self.o.ready):
            m.d.sync += known_last.eq(
                Mux(
                    last,
                    ~self.i.valid | given.none | (given_path.run_first == given_path.run_last),
                    (asked.run + 1)[: len(asked.run)] == asked_path.run_last,
                )
            )


def run_fetch(config: CoreConfig) -> type[RunFetch]:
    """The class of `RunFetch` for a core."""
    if config.external:
        return TapeRunFetch
    return SpreadRunFetch if config.spread else RunFetch
