"""Runs the core on each input that comes as slices of plane words."""

from amaranth import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from lbq_hw.core.host.port import PortSignature
from lbq_hw.core.pixels.planes import PlaneSlice
from lbq_hw.isa import regions
from lbq_hw.isa.regions import REGISTERS, Region

__all__ = ["InputRunner"]

_START, _CLEAR = 1, 2  # of the register `control`
_ERROR = 2  # bit of the register `status`
_AFTER = ("CLEAR", "START", "BEGUN", "RUN", "STATUS")  # the last slice, until the run has ended


class InputRunner(wiring.Component):
    """Writes slices of an input to the core, starts it, and waits for its end.

    A slice waits while the core runs, whoever has started it. ``failed`` is 1 from the end of a run
    with an error to that of the next.

    Members
    -------
    i : stream of `PlaneSlice`
    port : `PortSignature`
    busy : in
        A run is under way.
    feeding : out
        Slices are taken: no run is under way.
    active : out
        From the last slice of an input to the end of its run.
    done : out
        One cycle: an input was run to its end.
    failed : out
    """

    def __init__(self, **more):
        super().__init__(
            {
                "i": In(stream.Signature(PlaneSlice())),
                "port": Out(PortSignature()),
                "busy": In(1),
                "feeding": Out(1),
                "active": Out(1),
                "done": Out(1),
                "failed": Out(1),
            }
            | more
        )

    def elaborate(self, _platform):
        m = Module()
        port, pending, ends = self.port, Signal(), Signal()
        control, status = REGISTERS["control"].address, REGISTERS["status"].address
        m.d.comb += port.valid.eq(pending)
        with m.FSM() as states:
            m.d.comb += self.active.eq(
                Cat(states.ongoing(name) for name in _AFTER).any()
                | (states.ongoing("WRITE") & ends)
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
                    m.d.sync += self.failed.eq(port.r_data[_ERROR])
                    m.next = self._end(m)
            self._more(m, pending)
        return m

    def _end(self, _m):
        """The state that follows a run's."""
        return "SLICE"

    def _more(self, m, pending):
        """Further states."""

    def _ask(self, m, pending, address, word=0):
        """The next request of the port."""
        m.d.sync += [self.port.addr.eq(address), self.port.w_data.eq(word), pending.eq(1)]
