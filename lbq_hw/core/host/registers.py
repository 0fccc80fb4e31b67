"""The registers that the host reads: the life of a run, its errors and counters."""

from amaranth import Cat, Const, Module, Mux, Signal, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from lbq_hw import isa
from lbq_hw.config import CoreConfig, address_bits
from lbq_hw.core.fabric.registers import copies
from lbq_hw.isa import Error, regions, tape
from lbq_hw.isa.record import SLICE
from lbq_hw.isa.regions import COUNTERS

__all__ = ["Registers", "error_at_bits"]

_PASS_BITS = tape.MOST_PASSES.bit_length()
_OF_RUNS = ("passes", "wait_cycles")


def error_at_bits(config: CoreConfig) -> int:
    """Bits that tell where an error is: an entry of a table, or with a tape a number of passes."""
    tables = max(address_bits(getattr(config, name)) for name in isa.TABLES)
    return max(tables, _PASS_BITS) if config.external else tables


class Registers(wiring.Component):
    """Starts a run, sees its end, keeps the first error, and counts.

    Of `regions.COUNTERS` the first ``config.counters`` count; the registers of the others read 0,
    as do the bits of a counter from ``config.counter_bits`` on.

    Timing. ``busy`` and ``start`` rise in the cycle after ``begin``; with external memory,
    ``start`` is 1 in the first cycle from then on with ``aligned``. What ends a run or goes wrong
    in a cycle is in the registers in the next; what ticks, in the one after that, with external
    memory a cycle later.

    Members
    -------
    begin : in
        Start a run; never while busy.
    clear : in
        Forget the error, that a run is done, and what was counted; with external memory, the latter
        a cycle later.
    refused : in
        Error of a request that is refused in this cycle, or 0.
    calibrated, aligned : in, with external memory
        The memory works, else a run ends with MEMORY as soon as it began; it can start.
    passes, waits : in, with external memory
        Passes done; whether to count a cycle of waiting for one, as ``ticks``.
    start, busy, finished, layer, walk_error, walk_error_at, stray, ticks : as in `HostPort`
    values : out
        Each register by its name in `regions.registers`, without those of `MemoryAccess`.
    """

    def __init__(self, config: CoreConfig):
        self._config = c = config
        names = (*regions.REGISTERS, *_OF_RUNS) if c.external else regions.REGISTERS
        memory = {"calibrated": In(1), "aligned": In(1), "passes": In(_PASS_BITS), "waits": In(1)}
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
                "walk_error_at": In(error_at_bits(c)),
                "stray": In(1),
                "ticks": In(data.StructLayout(dict.fromkeys(COUNTERS, 1))),
                "values": Out(data.StructLayout(dict.fromkeys(names, SLICE))),
            }
            | (memory if c.external else {})
        )

    def elaborate(self, _platform):
        m = Module()
        self._starting = Signal(name="starting") if self._config.external else self.start
        values = self._live(m) | self._count(m)
        values |= {
            "id": regions.MAGIC,
            "digest": int(self._config.digest[:8], 16),
            "control": 0,
            "layer": self.layer,
        }
        if self._config.external:
            values["passes"] = self.passes
        m.d.comb += [self.values[name].eq(value) for name, value in values.items()]
        return m

    def _live(self, m):
        """From begin to end, and what went wrong: the registers that tell."""
        error, done, failure = Signal(4), Signal(), Signal(4)
        error_at = Signal.like(self.walk_error_at)
        where = self.layer
        ends = self.finished & ~self._starting
        at_record = ends & ~self.stray & (self.walk_error != 0)
        m.d.comb += failure.eq(self.refused)
        with m.If(self.stray):
            m.d.comb += failure.eq(Error.WEIGHT.value)
        with m.Elif(at_record):
            m.d.comb += failure.eq(self.walk_error)
        waits = 0
        if self._config.external:
            at_once = self._starting & ~self.calibrated
            waits = self._starting & self.calibrated & ~self.aligned
            where = Mux(at_once, 0, where)
            m.d.comb += self.start.eq(self._starting & self.calibrated & self.aligned)
            ends |= at_once
            with m.If(at_once):
                m.d.comb += failure.eq(Error.MEMORY.value)
        with m.If(self.clear):
            m.d.sync += [error.eq(0), error_at.eq(0), done.eq(0)]
        with m.Elif(error == 0):
            # The end of a run is known late in its cycle: it is no enable of these registers.
            m.d.sync += error.eq(failure)
            m.d.sync += error_at.eq(Mux(at_record, self.walk_error_at, where))
        m.d.sync += self._starting.eq(waits)
        with m.If(self.begin):
            m.d.sync += [self._starting.eq(1), self.busy.eq(1), done.eq(0)]
        with m.Elif(ends):
            m.d.sync += [self.busy.eq(0), done.eq(1)]
        return {
            "status": Cat(self.busy, done, error != 0),
            "error": error,
            "error_at": error_at & (error != 0).replicate(len(error_at)),
        }

    def _count(self, m):
        """The counters of a run."""
        # Counted one cycle later, since what ticks come from is known late in its cycle.
        c, counters = self._config, dict.fromkeys(COUNTERS, Const(0, SLICE))
        running, ticking = self.busy & ~self._starting, self.ticks.as_value()
        if c.external:  # and it is far away
            before, came, waits = Signal(), Signal.like(ticking), Signal()
            m.d.sync += [before.eq(running), came.eq(ticking), waits.eq(self.waits)]
            running, ticking = before, came
        ticks = Signal(self.ticks.shape())
        m.d.sync += ticks.eq(ticking & running.replicate(len(COUNTERS)))
        clears = [self.clear] * (len(COUNTERS) + 1)
        if c.external:  # what they count is far apart, and they lie near it
            clears = copies(m, self.clear, len(clears), name="clear")
        for name, clear in zip(COUNTERS[: c.counters], clears, strict=False):
            width = c.counter_bits if name == "cycles" else min(c.counter_bits, SLICE)
            counters[name] = counter = Signal(unsigned(width), name=f"count_{name}")
            with m.If(clear):
                m.d.sync += counter.eq(0)
            with m.Elif(ticks[name]):
                m.d.sync += counter.eq(counter + 1)
        whole = counters["cycles"]
        if c.external:
            waited, tick = Signal(min(c.counter_bits, SLICE)), Signal()
            m.d.sync += tick.eq(waits & running)
            with m.If(clears[-1]):
                m.d.sync += waited.eq(0)
            with m.Elif(tick):
                m.d.sync += waited.eq(waited + 1)
            counters["wait_cycles"] = waited
        return counters | {"cycles": whole[:SLICE], "cycles_high": whole[SLICE:]}
