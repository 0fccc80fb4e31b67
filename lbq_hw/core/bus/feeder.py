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
    """A logit, or 32 bits of a wider logit.

    Members
    -------
    data : 32 bits
        Lowest bits first if a logit has more than 32; sign-extended.
    last : bit
        The last slice of a run.
    """

    def __init__(self):
        super().__init__({"data": SLICE, "last": 1})


class Feeder(InputRunner):
    """As `InputRunner`, and sends the logits of each run.

    After a run that ended with an error, no logits are sent. If a host writes the pixels, it also
    reads the logits, and none are sent.

    Timing. The slices of the next input are taken after all logits have been taken.

    Parameters
    ----------
    config : `CoreConfig`
    logits : sequence of int
        Entries of the logits memory, in the order of the classes.

    Members
    -------
    o : stream of `LogitSlice`
    by_host : in
        Send no logits.
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
