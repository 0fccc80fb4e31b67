"""The registers that the host reads: the state of a run, its errors and counters."""

from amaranth import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from lbq_hw import isa
from lbq_hw.config import CoreConfig, address_bits
from lbq_hw.core.errors import ErrorCode
from lbq_hw.core.fabric.contracts import must
from lbq_hw.core.fabric.registers import copies
from lbq_hw.isa import regions, tape
from lbq_hw.isa.record import SLICE
from lbq_hw.isa.regions import COUNTERS

__all__ = ["Registers", "TapeRegisters", "error_at_bits", "registers"]

_PASS_BITS = tape.MOST_PASSES.bit_length()
_OF_RUNS = ("passes", "wait_cycles")


def error_at_bits(config: CoreConfig) -> int:
    """Bits of an error's place: an entry of a table or, with a tape, a number of passes."""
    tables = max(address_bits(getattr(config, name)) for name in isa.TABLES)
    return max(tables, _PASS_BITS) if config.external else tables


class Registers(wiring.Component):
    """Starts a run, detects its end, keeps the first error, and counts.

    The core has the first ``config.counters`` of `regions.COUNTERS`; the registers of the others
    read 0, and so do the bits of a counter from ``config.counter_bits`` on.

    Timing. ``busy`` and ``start`` rise in the cycle after ``begin``. The end of a run and an error
    are in the registers one cycle later, a tick two cycles later.

    Members
    -------
    begin : in
        Start a run; never while busy.
    clear : in
        Clear the error, the flag of a finished run, and the counters.
    refused : in
        `ErrorCode` of a request that is refused in this cycle, or NONE.
    start, busy, finished, layer, walk_error, walk_error_at, stray, ticks : as in `HostPort`
    values : out
        Each register by its name in `regions.registers`, without the registers of `MemoryAccess`.
    """

    def __init__(self, config: CoreConfig):
        self._config = c = config
        super().__init__(
            {
                "begin": In(1),
                "clear": In(1),
                "refused": In(ErrorCode),
                "start": Out(1),
                "busy": Out(1),
                "finished": In(1),
                "layer": In(address_bits(c.layers)),
                "walk_error": In(ErrorCode),
                "walk_error_at": In(error_at_bits(c)),
                "stray": In(1),
                "ticks": In(data.StructLayout(dict.fromkeys(COUNTERS, 1))),
                "values": Out(data.StructLayout(dict.fromkeys(self._names(), SLICE))),
            }
            | self._of_memory()
        )

    def _names(self) -> tuple[str, ...]:
        return tuple(regions.REGISTERS)

    def _of_memory(self):
        return {}

    def elaborate(self, platform):
        m = Module()
        starting, fails = self._begin(m)
        values = self._live(m, starting, fails) | self._counters(m, self.busy & ~starting)
        values |= {
            "id": regions.MAGIC,
            "digest": int(self._config.digest[:8], 16),
            "control": 0,
            "layer": self.layer,
        }
        m.d.comb += [self.values[name].eq(value) for name, value in values.items()]
        must(m, platform, ~(self.begin & self.busy), "a run begins while another is in progress")
        return m

    def _begin(self, m):
        """Whether a run starts now or waits for its start, and whether it fails at once."""
        m.d.sync += self.start.eq(self.begin)
        return self.start, Const(0)

    def _live(self, m, starting, fails):
        """The registers of a run's state: busy, done, and the first error."""
        error, done, failure = Signal(ErrorCode), Signal(), Signal(ErrorCode)
        error_at = Signal.like(self.walk_error_at)
        ends = self.finished & ~starting
        at_record = ends & ~self.stray & (self.walk_error != ErrorCode.NONE)
        m.d.comb += failure.eq(self.refused)
        with m.If(self.stray):
            m.d.comb += failure.eq(ErrorCode.WEIGHT)
        with m.Elif(at_record):
            m.d.comb += failure.eq(self.walk_error)
        with m.If(fails):
            m.d.comb += failure.eq(ErrorCode.MEMORY)
        with m.If(self.clear):
            m.d.sync += [error.eq(ErrorCode.NONE), error_at.eq(0), done.eq(0)]
        with m.Elif(error == ErrorCode.NONE):
            # The end of a run arrives late in its cycle, so it does not enable these registers.
            where = Mux(fails, 0, self.layer)
            m.d.sync += error.eq(failure)
            m.d.sync += error_at.eq(Mux(at_record, self.walk_error_at, where))
        with m.If(self.begin):
            m.d.sync += [self.busy.eq(1), done.eq(0)]
        with m.Elif(ends | fails):
            m.d.sync += [self.busy.eq(0), done.eq(1)]
        wrong = error != ErrorCode.NONE
        return {
            "status": Cat(self.busy, done, wrong),
            "error": error,
            "error_at": error_at & wrong.replicate(len(error_at)),
        }

    def _counters(self, m, running):
        return self._count(m, running, self.ticks, [self.clear] * len(COUNTERS))

    def _count(self, m, running, ticks, clears):
        """The counters of a run."""
        # Counted one cycle later, because ticks arrive late in their cycle.
        c, counters = self._config, dict.fromkeys(COUNTERS, Const(0, SLICE))
        ticking = Signal(ticks.shape())
        m.d.sync += ticking.eq(ticks.as_value() & running.replicate(len(COUNTERS)))
        for name, clear in zip(COUNTERS[: c.counters], clears, strict=False):
            width = c.counter_bits if name == "cycles" else min(c.counter_bits, SLICE)
            counters[name] = _counter(m, width, ticking[name], clear, name=name)
        whole = counters["cycles"]
        return counters | {"cycles": whole[:SLICE], "cycles_high": whole[SLICE:]}


class TapeRegisters(Registers):
    """As `Registers`, in a core with external memory.

    Timing. ``start`` is 1 in the first cycle after ``begin`` in which ``aligned`` is 1. Counters
    count, and are cleared, a cycle later than in `Registers`.

    Members
    -------
    calibrated, aligned : in
        ``calibrated``: the memory works; without it, a run ends at once with MEMORY. ``aligned``: a
        run can start in this cycle.
    passes, waits : in
        Number of passes done; a cycle of waiting for a pass, counted like ``ticks``.
    """

    def _names(self) -> tuple[str, ...]:
        return (*regions.REGISTERS, *_OF_RUNS)

    def _of_memory(self):
        return {"calibrated": In(1), "aligned": In(1), "passes": In(_PASS_BITS), "waits": In(1)}

    def _begin(self, m):
        starting = Signal()
        m.d.sync += starting.eq(self.begin | (starting & self.calibrated & ~self.aligned))
        m.d.comb += self.start.eq(starting & self.calibrated & self.aligned)
        return starting, starting & ~self.calibrated

    def _counters(self, m, running):
        # The sources of ticks are far away, and the counters are placed near them.
        before, ticks, waits, waiting = Signal(), Signal.like(self.ticks), Signal(), Signal()
        m.d.sync += [
            before.eq(running),
            ticks.eq(self.ticks),
            waits.eq(self.waits),
            waiting.eq(waits & before),
        ]
        *clears, last = copies(m, self.clear, len(COUNTERS) + 1, name="clear")
        width = min(self._config.counter_bits, SLICE)
        waited = _counter(m, width, waiting, last, name="waits")
        counters = self._count(m, before, ticks, clears)
        return counters | {"wait_cycles": waited, "passes": self.passes}


def registers(config: CoreConfig) -> type[Registers]:
    """The class of `Registers` for a core."""
    return TapeRegisters if config.external else Registers


def _counter(m, width, tick, clear, *, name):
    count = Signal(width, name=f"count_{name}")
    with m.If(clear):
        m.d.sync += count.eq(0)
    with m.Elif(tick):
        m.d.sync += count.eq(count + 1)
    return count
