"""Runs the core on each input that comes as pixels, without a host."""

from amaranth import Array, Cat, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from lbq_hw.config import CoreConfig
from lbq_hw.core.host.port import PortSignature
from lbq_hw.core.pixels.planes import PlaneSlice
from lbq_hw.isa import regions
from lbq_hw.isa.record import SLICE
from lbq_hw.isa.regions import REGISTERS, Region

__all__ = ["Feeder", "LogitSlice"]

_START, _CLEAR = 1, 2  # of the register `control`
_ERROR = 2  # bit of the register `status`


class LogitSlice(data.StructLayout):
    """A logit, or 32 bits of one.

    Members
    -------
    data : 32 bits
        Lowest bits first, where a logit has more than 32; the highest are its sign's.
    last : bit
        It is the last one of a run.
    """

    def __init__(self):
        super().__init__({"data": SLICE, "last": 1})


class Feeder(wiring.Component):
    """Writes slices of an input to the core, starts it, waits for its end and gives its logits.

    A slice waits while the core runs, whoever has started it. After a run that ended with an error
    there are no logits, and ``failed`` is 1 until the end of the next run. Where a host brings the
    pixels, it reads the logits too, and none are given.

    Timing. The next input's slices are taken once all logits were.

    Parameters
    ----------
    config : `CoreConfig`
    logits : sequence of int
        Entries of the logits memory, in the order of the classes.

    Members
    -------
    i : stream of `PlaneSlice`
    o : stream of `LogitSlice`
    port : `PortSignature`
    busy : in
        A run is under way.
    by_host : in
        Give no logits.
    feeding : out
        Slices are taken: no run is under way, and no logit waits.
    active : out
        From the last slice of an input to the end of its run.
    done : out
        One cycle: an input was run to its end.
    failed : out
    """

    def __init__(self, config: CoreConfig, *, logits):
        self._slices = regions.slices(config)[Region.LOGITS]
        self._logits = list(logits)
        super().__init__(
            {
                "i": In(stream.Signature(PlaneSlice())),
                "o": Out(stream.Signature(LogitSlice())),
                "port": Out(PortSignature()),
                "busy": In(1),
                "by_host": In(1),
                "feeding": Out(1),
                "active": Out(1),
                "done": Out(1),
                "failed": Out(1),
            }
        )

    def elaborate(self, _platform):
        m = Module()
        port, pending, ends = self.port, Signal(), Signal()
        addresses = [entry * self._slices + part
                     for entry in self._logits for part in range(self._slices)]  # fmt: skip
        number = Signal(range(len(addresses)))
        last = number == len(addresses) - 1
        place = number if addresses == list(range(len(addresses))) else Array(addresses)[number]
        control, status = REGISTERS["control"].address, REGISTERS["status"].address
        with m.FSM() as states:
            after = ("CLEAR", "START", "BEGUN", "RUN", "STATUS")
            m.d.comb += self.active.eq(
                Cat(states.ongoing(name) for name in after).any() | (states.ongoing("WRITE") & ends)
            )
            with m.State("SLICE"):
                m.d.comb += [self.feeding.eq(~self.busy), self.i.ready.eq(~self.busy)]
                m.d.sync += [
                    port.addr.eq(Region.PLANES << regions.SHIFT | self.i.payload.address),
                    port.w_data.eq(self.i.payload.data),
                    ends.eq(self.i.payload.last),
                ]
                with m.If(self.i.valid & self.i.ready):
                    m.d.sync += pending.eq(1)
                    m.next = "WRITE"
            with m.State("WRITE"):
                m.d.comb += [self.feeding.eq(~ends), port.write.eq(1)]
                with m.If(port.ready):
                    m.d.sync += pending.eq(0)
                    m.next = "SLICE"
                    with m.If(ends):
                        self._ask(m, pending, control, _CLEAR)
                        m.next = "CLEAR"
            with m.State("CLEAR"):
                m.d.comb += port.write.eq(1)
                with m.If(port.ready):
                    m.d.sync += port.w_data.eq(_START)
                    m.next = "START"
            with m.State("START"):
                m.d.comb += port.write.eq(1)
                with m.If(port.ready):
                    m.d.sync += pending.eq(0)
                    m.next = "BEGUN"
            with m.State("BEGUN"):  # `busy` rises
                m.next = "RUN"
            with m.State("RUN"), m.If(~self.busy):
                self._ask(m, pending, status)
                m.next = "STATUS"
            with m.State("STATUS"):
                with m.If(port.ready):
                    m.d.sync += pending.eq(0)
                with m.If(port.r_valid):
                    m.d.comb += self.done.eq(1)
                    m.d.sync += [self.failed.eq(port.r_data[_ERROR]), number.eq(0)]
                    m.next = "LOGIT"
                    with m.If(port.r_data[_ERROR] | self.by_host):
                        m.next = "SLICE"
            with m.State("LOGIT"):
                self._ask(m, pending, Region.LOGITS << regions.SHIFT | place)
                m.next = "ANSWER"
            with m.State("ANSWER"):
                with m.If(port.ready):
                    m.d.sync += pending.eq(0)
                m.d.sync += [self.o.payload.data.eq(port.r_data), self.o.payload.last.eq(last)]
                with m.If(port.r_valid):
                    m.next = "OFFER"
            with m.State("OFFER"):
                m.d.comb += self.o.valid.eq(1)
                with m.If(self.o.ready):
                    m.d.sync += number.eq(number + 1)
                    m.next = "LOGIT"
                    with m.If(last):
                        m.next = "SLICE"
        m.d.comb += port.valid.eq(pending)
        return m

    def _ask(self, m, pending, address, word=0):
        """The next request of the port."""
        m.d.sync += [self.port.addr.eq(address), self.port.w_data.eq(word), pending.eq(1)]
