"""Runs the core on each input that arrives as slices of plane words."""

from amaranth import Cat, Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from lbq_hw.core.host.port import PortSignature
from lbq_hw.core.pixels.planes import PlaneSlice
from lbq_hw.isa import regions
from lbq_hw.isa.regions import REGISTERS, Region

__all__ = ["InputRunner"]

_START, _CLEAR = 1, 2  # of the register `control`
_ERROR = 2  # bit of the register `status`
_AFTER = (
    "CLEAR",
    "START",
    "BEGUN",
    "RUN",
    "STATUS",
    "TOLD",
)  # the last slice, until the run has ended


class InputRunner(wiring.Component):
    """Writes slices of an input to the core, starts it, and waits for its end.

    A slice waits while the core runs, whoever started the run, and is stable while it is written.
    ``failed`` is 1 from the end of a run with an error to the end of the next run.

    Members
    -------
    i : stream of `PlaneSlice`
    port : `PortSignature`
    busy : in
        A run is in progress.
    feeding : out
        Slices are taken: no run is in progress.
    writing : out
        The slice that is offered is being written.
    active : out
        From the last slice of an input to the end of its run.
    done : out
        One cycle: the run of an input has ended.
    failed : out
    """

    def __init__(self, **more):
        super().__init__(
            {
                "i": In(stream.Signature(PlaneSlice())),
                "port": Out(PortSignature()),
                "busy": In(1),
                "feeding": Out(1),
                "writing": Out(1),
                "active": Out(1),
                "done": Out(1),
                "failed": Out(1),
            }
            | more
        )

    def elaborate(self, _platform):
        m = Module()
        port = self.port
        control, status = REGISTERS["control"].address, REGISTERS["status"].address
        place = Region.PLANES << regions.SHIFT
        with m.FSM() as states:
            m.d.comb += self.active.eq(
                Cat(states.ongoing(name) for name in _AFTER).any()
                | (states.ongoing("WRITE") & self.i.payload.last)
            )
            with m.State("SLICE"):
                m.d.comb += self.feeding.eq(~self.busy)
                with m.If(self.i.valid & ~self.busy):
                    m.next = "WRITE"
            with m.State("WRITE"):
                self._ask(m, place | self.i.payload.address, self.i.payload.data)
                m.d.comb += [
                    self.writing.eq(1),
                    self.feeding.eq(~self.i.payload.last),
                    self.i.ready.eq(port.ready),
                ]
                with m.If(port.ready):
                    m.next = "SLICE"
                    with m.If(self.i.payload.last):
                        m.next = "CLEAR"
            with m.State("CLEAR"):
                self._ask(m, control, _CLEAR)
                with m.If(port.ready):
                    m.next = "START"
            with m.State("START"):
                self._ask(m, control, _START)
                with m.If(port.ready):
                    m.next = "BEGUN"
            with m.State("BEGUN"):  # `busy` rises
                m.next = "RUN"
            with m.State("RUN"), m.If(~self.busy):
                m.next = "STATUS"
            with m.State("STATUS"):
                self._ask(m, status)
                with m.If(port.ready):
                    m.next = "TOLD"
            with m.State("TOLD"), m.If(port.r_valid):
                m.d.comb += self.done.eq(1)
                m.d.sync += self.failed.eq(port.r_data[_ERROR])
                m.next = self._end(m)
            self._more(m)
        return m

    def _end(self, _m):
        """The state after the end of a run."""
        return "SLICE"

    def _more(self, m):
        """Further states."""

    def _ask(self, m, address, word=None):
        """Request a write of a word, or a read."""
        m.d.comb += [self.port.valid.eq(1), self.port.addr.eq(address)]
        if word is not None:
            m.d.comb += [self.port.write.eq(1), self.port.w_data.eq(word)]
