"""Weight memory and accumulators."""

from amaranth import Module, Mux, Signal, signed
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from lbq_hw.config import address_bits
from lbq_hw.core.memory.rows import RowMemory
from lbq_hw.core.streaming.layouts import StreamEvent
from lbq_hw.streaming.config import StreamConfig

__all__ = ["StreamLanes"]


class StreamLanes(wiring.Component):
    """Adds the weights of an event to the sums of its lanes. Complete sums are offered, and the
    next sums begin at 0.

    Timing. An event is added in the cycle after it is taken. With the last event of a tile, the
    sums are offered in that cycle, and later events wait until the sums are taken.

    Members
    -------
    i : stream of `StreamEvent`
    o : stream of an array of sums
    weights : write port
        Not written while there are events.
    """

    def __init__(self, config: StreamConfig):
        self._config = c = config
        sums = data.ArrayLayout(signed(c.acc_bits), c.lanes)
        port = memory.WritePort.Signature(
            addr_width=address_bits(c.weight_rows), shape=c.lanes * c.weight_bits
        )
        super().__init__(
            {
                "i": In(stream.Signature(StreamEvent(c))),
                "o": Out(stream.Signature(sums)),
                "weights": Out(port),
            }
        )

    def elaborate(self, _platform):
        m = Module()
        c = self._config
        m.submodules.weights = store = RowMemory(
            rows=c.weight_rows, lanes=c.lanes, weight_bits=c.weight_bits
        )
        write, read = store.write, store.read
        current, current_valid, advance = Signal(StreamEvent(c)), Signal(), Signal()
        sums = Signal(data.ArrayLayout(signed(c.acc_bits), c.lanes))
        rows = data.View(data.ArrayLayout(signed(c.weight_bits), c.lanes), read.data)
        m.d.comb += [
            write.addr.eq(self.weights.addr),
            write.data.eq(self.weights.data),
            write.en.eq(self.weights.en.replicate(c.lanes)),
            advance.eq(~(current_valid & current.end) | self.o.ready),
            self.i.ready.eq(advance),
            read.addr.eq(self.i.payload.row),
            read.en.eq(self.i.valid & advance),
            self.o.valid.eq(current_valid & current.end),
        ]
        with m.If(advance):
            m.d.sync += [current_valid.eq(self.i.valid), current.eq(self.i.payload)]
        for lane in range(c.lanes):
            adds = current.mask[lane if c.identities else 0]
            total = sums[lane] + Mux(adds, rows[lane] << current.shift, 0)
            m.d.comb += self.o.payload[lane].eq(total)
            with m.If(current_valid & advance):
                m.d.sync += sums[lane].eq(Mux(current.end, 0, self.o.payload[lane]))
        return m
