"""The host port of a core with external memory."""

from amaranth import Mux, Signal
from amaranth.lib.wiring import Out, connect, flipped

from lbq_hw.config import CoreConfig
from lbq_hw.core.errors import ErrorCode
from lbq_hw.core.external.host_memory_port import HostMemoryPort
from lbq_hw.core.external.memory_access import MemoryAccess
from lbq_hw.core.host.port import HostPort, gate
from lbq_hw.core.host.spread_port import SpreadHostPort
from lbq_hw.isa.regions import Region

__all__ = ["TapeHostPort"]


class TapeHostPort(SpreadHostPort):
    """As `SpreadHostPort`, for a core with external memory, which it reaches through
    `MemoryAccess`.

    Requests that need the external memory (its slices, a digest, a self-test) are refused with
    MEMORY while it is not calibrated. While a digest or a self-test is in progress, the same
    requests, a calibration and a start are refused with BUSY. Writes to regions that the tape
    writes are refused with ADDRESS.

    Timing. A slice request is offered to the memory in the cycle after it was taken. If the memory
    answers in cycle c, the read is answered in cycle c + 2. After a write, the next request is
    taken at the earliest in the cycle after the memory took the write.

    Members
    -------
    plane_write : out
        As in `HostPort`; the host writes no other memory of the core.
    start : out
        The first cycle of `busy` with `aligned`.
    calibrated, aligned, passes, waits : in
        As in `TapeRegisters`.
    host_memory : `HostMemoryPort`
    """

    RUN_IN = (*HostPort.RUN_IN, "calibrated", "aligned", "passes", "waits")

    def __init__(self, config: CoreConfig):
        self._access = MemoryAccess()
        super().__init__(config)

    def _of_memory(self):
        return {"host_memory": Out(HostMemoryPort())}

    def _free(self, in_flight):
        return super()._free(in_flight) & ~self._access.pending

    def _judge(self, m, w, settable, in_region):
        port, access = self.port, self._access
        m.submodules.access = access
        connect(m, access.memory, flipped(self.host_memory))
        m.d.comb += [
            access.read.eq(w.read[Region.MEMORY]),
            access.write.eq(w.written[Region.MEMORY]),
            access.set.eq(w.written[Region.REGISTERS]),
            access.addr.eq(port.addr),
            access.data.eq(port.w_data),
            access.calibrated.eq(self.calibrated),
        ]
        commanded, calibrates, absent, locked = Signal(), Signal(), Signal(), Signal()
        m.d.sync += [
            commanded.eq(settable["control"]),
            calibrates.eq(settable["captures"] & in_region[Region.REGISTERS]),
        ]
        sets = w.in_region[Region.REGISTERS] & port.write
        uses = w.in_region[Region.MEMORY] | (sets & ~commanded)
        runs = self.busy & (port.write | ~w.in_region[Region.REGISTERS])
        m.d.comb += [
            absent.eq(w.address_exists & w.allowed & uses & ~self.calibrated & ~calibrates),
            locked.eq(runs | (access.in_use & (uses | (sets & port.w_data[0])))),
            w.taken.eq(w.request & w.address_exists & ~locked & w.allowed & ~absent),
            w.answers.eq(w.request & ~port.write & ~w.read[Region.MEMORY]),
            w.commands.eq(w.written[Region.REGISTERS] & commanded),
        ]
        refused = self._registers.refused
        with m.If(w.request & ~w.taken):
            m.d.comb += refused.eq(
                Mux(w.address_exists & locked, ErrorCode.BUSY, ErrorCode.ADDRESS)
            )
            with m.If(absent & ~locked):
                m.d.comb += refused.eq(ErrorCode.MEMORY)

    def _values(self):
        values = self._access.values
        return super()._values() | {name: values[name] for name, _ in values.shape()}

    def _show(self, m, valid, answered):
        access = self._access
        super()._show(m, valid | access.answered, answered | gate(access.answered, access.answer))
