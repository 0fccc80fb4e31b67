"""The registers that the host reads: the life of a run, its errors and counters."""

from amaranth import Cat, Const, Module, Mux, Signal, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from lbq_hw import isa
from lbq_hw.config import CoreConfig, address_bits
from lbq_hw.isa import Error, regions
from lbq_hw.isa.record import SLICE
from lbq_hw.isa.regions import COUNTERS

__all__ = ["Registers"]


class Registers(wiring.Component):
    """Starts a run, sees its end, keeps the first error, and counts.

    Of `regions.COUNTERS` the first ``config.counters`` count; the registers of the others read 0,
    as do the bits of a counter from ``config.counter_bits`` on.

    Timing. ``busy`` and ``start`` rise in the cycle after ``begin``. What ends a run or goes wrong
    in a cycle is in the registers in the next; what ticks, in the one after that.

    Members
    -------
    begin : in
        Start a run; never while busy.
    clear : in
        Forget the error, that a run is done, and what was counted.
    refused : in
        Error of a request that is refused in this cycle, or 0.
    start, busy, finished, layer, walk_error, walk_error_at, stray, ticks : as in `HostPort`
    values : out
        Each register by its name in `regions.REGISTERS`.
    """

    def __init__(self, config: CoreConfig):
        self._config = c = config
        at_bits = max(address_bits(getattr(c, name)) for name in isa.TABLES)
        widths = dict.fromkeys(regions.REGISTERS, SLICE)
        super().__init__(
            {
                "begin": In(1),
                "clear": In(1),
                "refused": In(4),
                "start": Out(1),
                "busy": Out(1),
                "finished": In(1),
                "layer": In(address_bits(c.layers)),
                "walk_error": In(4),
                "walk_error_at": In(at_bits),
                "stray": In(1),
                "ticks": In(data.StructLayout(dict.fromkeys(COUNTERS, 1))),
                "values": Out(data.StructLayout(widths)),
            }
        )

    def elaborate(self, _platform):
        m = Module()
        values = self._live(m) | self._count(m)
        values |= {
            "id": regions.MAGIC,
            "digest": int(self._config.digest[:8], 16),
            "control": 0,
            "layer": self.layer,
        }
        m.d.comb += [self.values[name].eq(value) for name, value in values.items()]
        return m

    def _live(self, m):
        """From begin to end, and what went wrong: the registers that tell."""
        error, done, failure = Signal(4), Signal(), Signal(4)
        error_at = Signal.like(self.walk_error_at)
        ends = self.finished & ~self.start
        at_record = ends & ~self.stray & (self.walk_error != 0)
        m.d.comb += failure.eq(self.refused)
        with m.If(self.stray):
            m.d.comb += failure.eq(Error.WEIGHT.value)
        with m.Elif(at_record):
            m.d.comb += failure.eq(self.walk_error)
        with m.If(self.clear):
            m.d.sync += [error.eq(0), error_at.eq(0), done.eq(0)]
        with m.Elif((failure != 0) & (error == 0)):
            m.d.sync += error.eq(failure)
            m.d.sync += error_at.eq(Mux(at_record, self.walk_error_at, self.layer))
        m.d.sync += self.start.eq(0)
        with m.If(self.begin):
            m.d.sync += [self.start.eq(1), self.busy.eq(1), done.eq(0)]
        with m.Elif(ends):
            m.d.sync += [self.busy.eq(0), done.eq(1)]
        return {
            "status": Cat(self.busy, done, error != 0),
            "error": error,
            "error_at": error_at,
        }

    def _count(self, m):
        """The counters of a run."""
        # Counted one cycle later, since what ticks come from is known late in its cycle.
        running = self.busy & ~self.start
        ticks = Signal(self.ticks.shape())
        m.d.sync += ticks.eq(self.ticks.as_value() & running.replicate(len(COUNTERS)))
        c, counters = self._config, dict.fromkeys(COUNTERS, Const(0, SLICE))
        for name in COUNTERS[: c.counters]:
            width = c.counter_bits if name == "cycles" else min(c.counter_bits, SLICE)
            counters[name] = counter = Signal(unsigned(width), name=f"count_{name}")
            with m.If(self.clear):
                m.d.sync += counter.eq(0)
            with m.Elif(ticks[name]):
                m.d.sync += counter.eq(counter + 1)
        whole = counters["cycles"]
        return counters | {"cycles": whole[:SLICE], "cycles_high": whole[SLICE:]}
