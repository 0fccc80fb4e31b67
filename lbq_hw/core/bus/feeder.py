"""Runs the core on each input that comes as pixels, without a host."""

from amaranth import Array, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from lbq_hw.config import CoreConfig
from lbq_hw.core.pixels.input_runner import InputRunner
from lbq_hw.isa import regions
from lbq_hw.isa.record import SLICE
from lbq_hw.isa.regions import Region

__all__ = ["Feeder", "LogitSlice"]


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


class Feeder(InputRunner):
    """As `InputRunner`, and gives the logits of each run.

    There are none after a run that ended with an error. Where a host brings the pixels, it reads
    the logits too, and none are given.

    Timing. The next input's slices are taken once all logits were.

    Parameters
    ----------
    config : `CoreConfig`
    logits : sequence of int
        Entries of the logits memory, in the order of the classes.

    Members
    -------
    o : stream of `LogitSlice`
    by_host : in
        Give no logits.
    """

    def __init__(self, config: CoreConfig, *, logits):
        slices = regions.slices(config)[Region.LOGITS]
        self._addresses = [entry * slices + part for entry in logits for part in range(slices)]
        self._number = Signal(range(len(self._addresses)))
        super().__init__(o=Out(stream.Signature(LogitSlice())), by_host=In(1))

    def _end(self, m):
        m.d.sync += self._number.eq(0)
        return "ENDED"

    def _more(self, m):
        port, number, addresses = self.port, self._number, self._addresses
        last = number == len(addresses) - 1
        place = number if addresses == list(range(len(addresses))) else Array(addresses)[number]
        with m.State("ENDED"):
            m.next = "LOGIT"
            with m.If(self.failed | self.by_host):
                m.next = "SLICE"
        with m.State("LOGIT"):
            self._ask(m, Region.LOGITS << regions.SHIFT | place)
            with m.If(port.ready):
                m.next = "ANSWER"
        with m.State("ANSWER"):
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
