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
    """Turns a segment into its placed runs; the end of a step goes with the last of them.

    Timing. One run per cycle; the first run of a segment is offered 2 cycles after it was
    taken. ``i.ready`` depends on ``o.ready`` of the same cycle, which enables all of the block.

    Errors. An illegal RUN is dropped, together with all that follow; every step still has its end.
    ``dropping`` says so until ``clear``.

    Members
    -------
    i : stream of `FetchedSegment`
    only : in, as in `Segments`
    runs : read port of a RUN record, seen from the other side
    o : stream of `PlacedRun`
    stop, clear : in, as in `Segments`
    dropping : out
    bad, bad_at : out
        One cycle: this record is the first that is illegal.
    """

    def __init__(self, config: CoreConfig):
        self._config = config
        run_bits = address_bits(config.runs)
        run = records.layout(isa.RUN, config)
        super().__init__(
            {
                "i": In(stream.Signature(FetchedSegment(config))),
                "only": In(records.layout(isa.PATH, config, SCAN_FIELDS)),
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
        # The runs of a segment are asked for one by one, then there, and offered.
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
        given_path, asked_path = path_of(self.i.payload, self.only), path_of(asked, self.only)
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
        """What is kept of a run to look at, and whether it is illegal, once it is offered."""
        return offered.bad.eq(records.illegal(isa.RUN, self._config, run)), offered.bad

    def _find_last(self, m, last, asked, _given_path, asked_path):
        """Whether no run follows the one that was asked for in its segment."""
        m.d.comb += last.eq(~asked.valid | asked.none | (asked.run == asked_path.run_last))

    def _take(self, m, asked, path):
        """The next segment, with the place of its field of view added."""
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
        """The first illegal record is told, and ends all."""
        m.d.comb += [
            self.bad.eq(illegal & ~(self.dropping | self.stop)),
            self.bad_at.eq(index),
        ]
        with m.If(self.bad):
            m.d.sync += self.dropping.eq(1)
        with m.If(self.clear):
            m.d.sync += self.dropping.eq(0)


class SpreadRunFetch(RunFetch):
    """As `RunFetch`, where weights fill the chip and runs may come from afar: a register takes a
    run before it is looked at.
    """

    def _look_at(self, run, _offered):
        seen = Signal(run.shape(), name="seen")
        return seen.eq(run), records.illegal(isa.RUN, self._config, seen)


class TapeRunFetch(RunFetch):
    """As `RunFetch`, for the many blocks of a core with external memory that wait for the last run:
    a register has it, found while the run is asked for.
    """

    def _find_last(self, m, last, asked, given_path, asked_path):
        known, given = Signal(init=1), self.i.payload
        m.d.comb += last.eq(known)
        with m.If(self.o.ready):
            m.d.sync += known.eq(
                Mux(
                    last,
                    ~self.i.valid | given.none | (given_path.run_first == given_path.run_last),
                    (asked.run + 1)[: len(asked.run)] == asked_path.run_last,
                )
            )


def run_fetch(config: CoreConfig) -> type[RunFetch]:
    """The block that a core needs."""
    if config.external:
        return TapeRunFetch
    return SpreadRunFetch if config.spread else RunFetch
