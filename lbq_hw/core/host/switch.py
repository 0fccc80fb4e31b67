"""An arbiter between two users of the core's port."""

from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from lbq_hw.core.host.port import PortSignature

__all__ = ["PortSwitch"]


class PortSwitch(wiring.Component):
    """Lets two users of a port take turns, request by request.

    Timing. A user that owns the port has no added latency. To become the owner takes one cycle,
    after the request of the other user, if any, has ended.

    Members
    -------
    first, second : `PortSignature`, flipped
    port : `PortSignature`
    """

    first: In(PortSignature())
    second: In(PortSignature())
    port: Out(PortSignature())

    def elaborate(self, _platform):
        m = Module()
        users, port = (self.first, self.second), self.port
        owner, awaiting, ended = Signal(), Signal(), Signal()
        taken = port.valid & port.ready
        m.d.comb += ended.eq((taken & port.write) | (awaiting & port.r_valid))
        for number, (user, other) in enumerate(zip(users, reversed(users), strict=True)):
            m.d.comb += user.r_data.eq(port.r_data)
            with m.If(owner == number):
                m.d.comb += [
                    port.valid.eq(user.valid & ~awaiting),
                    port.write.eq(user.write),
                    port.addr.eq(user.addr),
                    port.w_data.eq(user.w_data),
                    user.ready.eq(port.ready),
                    user.r_valid.eq(port.r_valid & awaiting),
                ]
                with m.If(other.valid & (ended | (~user.valid & ~awaiting))):
                    m.d.sync += owner.eq(1 - number)
        with m.If(taken & ~port.write):
            m.d.sync += awaiting.eq(1)
        with m.Elif(port.r_valid):
            m.d.sync += awaiting.eq(0)
        return m
