"""Weight memory and lanes: one event a cycle, one accumulation in every lane."""

from amaranth import Module, Mux, Signal, signed
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from lbq_hw.core.fabric import RowMemory
from lbq_hw.core.payload import Event, check_size

__all__ = ["LaneArray"]


class LaneArray(wiring.Component):
    """Accumulates weight rows event by event, and offers the sums of each step.

    An event makes every lane compute ``acc = (clear ? 0 : double ? 2*acc : acc) + (mask[lane] ?
    weight[row][lane] : 0)``, modulo ``2**acc_bits``. One with ``end`` completes a step: its sums
    are offered, and nothing moves until they are taken.

    Timing. An event taken in cycle c reads its weights in c + 1 and adds them in c + 2; after an
    ``end`` the sums are valid in c + 3. An event is taken every cycle, but for those in which a
    valid sum is not taken: then ``i_event.ready`` is 0. ``i_event.ready`` depends on
    ``o_sum.ready`` of the same cycle. The sums are the accumulators themselves, so whoever takes
    them must copy them; the next step begins without a gap.

    Weights are written while not ``busy``; an event taken after the write sees them. In the cycle
    of a write no event is taken: the memory may have one port for both.

    Parameters
    ----------
    lanes : int
        Lanes P.
    rows : int
        Weight rows. An event with mask 0 may have any row.
    weight_bits, acc_bits : int
        Signed widths of a weight and of an accumulator.
    init : iterable of int
        Weight rows after configuration, as `RowMemory` takes them.

    Members
    -------
    i_event : stream of `Event`
    o_sum : stream of ``lanes`` signed sums
    weights : write port of a row, one enable a lane
    busy : bit
        An event or a sum is on its way.
    """

    def __init__(self, *, lanes: int, rows: int, weight_bits: int, acc_bits: int, init=()):
        check_size("lanes", lanes)
        check_size("rows", rows)
        check_size("weight_bits", weight_bits, least=2)
        check_size("acc_bits", acc_bits)
        if acc_bits < weight_bits:
            raise ValueError(f"acc_bits must be at least weight_bits, not {acc_bits!r}")
        self._rows = rows
        self._init = list(init)
        row_bits = ceil_log2(rows)
        row_shape = data.ArrayLayout(signed(weight_bits), lanes)
        weights = memory.WritePort.Signature(addr_width=row_bits, shape=row_shape, granularity=1)
        super().__init__(
            {
                "i_event": In(stream.Signature(Event(lanes=lanes, row_bits=row_bits))),
                "o_sum": Out(stream.Signature(data.ArrayLayout(signed(acc_bits), lanes))),
                "weights": Out(weights),
                "busy": Out(1),
            }
        )

    @property
    def rows(self) -> int:
        """Weight rows."""
        return self._rows

    def elaborate(self, _platform):
        m = Module()
        row_shape = self.weights.data.shape()
        m.submodules.memory = store = RowMemory(
            rows=self._rows,
            lanes=len(self.weights.data),
            weight_bits=len(self.weights.data[0]),
            init=self._init,
        )
        read, write = store.read, store.write

        event = self.i_event.payload
        advance = Signal()
        done = Signal()
        fetched = Signal(data.StructLayout({"mask": len(event.mask), "act": _ACT}))
        adding = Signal(_ACT)
        addend = Signal(row_shape, reset_less=True)
        acc = Signal(self.o_sum.payload.shape(), reset_less=True)

        m.d.comb += [
            advance.eq(~done | self.o_sum.ready),
            self.i_event.ready.eq(advance),
            write.addr.eq(self.weights.addr),
            write.data.eq(self.weights.data),
            write.en.eq(self.weights.en),
            read.addr.eq(event.row),
            read.en.eq(advance),
            self.o_sum.valid.eq(done),
            self.o_sum.payload.eq(acc),
            self.busy.eq(fetched.act.valid | adding.valid | done),
        ]
        with m.If(advance):
            m.d.sync += [
                fetched.mask.eq(event.mask),
                fetched.act.valid.eq(self.i_event.valid),
                fetched.act.clear.eq(event.clear),
                fetched.act.double.eq(event.double),
                fetched.act.end.eq(event.end),
                adding.eq(fetched.act),
                done.eq(adding.valid & adding.end),
            ]
            row = data.View(row_shape, read.data)
            for lane, enabled in enumerate(fetched.mask):
                m.d.sync += addend[lane].eq(Mux(enabled, row[lane], 0))
        with m.If(advance & adding.valid):
            for total, weight in zip(acc, addend, strict=True):
                # One LUT a bit chooses what the carry chain adds to.
                start = Mux(adding.double, total << 1, total)[: len(total)]
                start &= (~adding.clear).replicate(len(total))
                m.d.sync += total.eq(start.as_signed() + weight)
        return m


_ACT = data.StructLayout({"valid": 1, "clear": 1, "double": 1, "end": 1})
