"""The host's view of the core: registers and memories behind 32-bit addresses."""

from functools import reduce
from operator import or_

from amaranth import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import ceil_log2

from lbq_hw.config import CoreConfig
from lbq_hw.core.errors import ErrorCode
from lbq_hw.core.fabric.contracts import must
from lbq_hw.core.fabric.registers import delayed
from lbq_hw.core.host.addresses import exists, place
from lbq_hw.core.host.registers import registers
from lbq_hw.core.host.writes import host_regions, host_writes
from lbq_hw.core.timing import timing
from lbq_hw.isa import regions
from lbq_hw.isa.record import SLICE
from lbq_hw.isa.regions import Region

__all__ = ["HostPort", "PortSignature", "gate"]

_WRITES = ("records", "weights", "params", "plane_write")
_RUN_OUT = ("start", "busy")
_READABLE = (Region.REGISTERS, Region.PLANES, Region.LOGITS, Region.MEMORY)


class PortSignature(wiring.Signature):
    """A request is taken in a cycle with ``valid`` and ``ready``, and is stable until then. Every
    read is answered by one cycle with ``r_valid``, before the next request is taken.
    """

    def __init__(self):
        super().__init__(
            {
                "valid": Out(1),
                "ready": In(1),
                "write": Out(1),
                "addr": Out(32),
                "w_data": Out(SLICE),
                "r_valid": In(1),
                "r_data": In(SLICE),
            }
        )


class HostPort(wiring.Component):
    """Decodes the addresses of `lbq_hw.isa.regions`, holds the registers, and starts the core.

    Blocks: `HostWrites` and `Registers`. The slices of a plane word and of a parameter must be
    written in ascending order; a parameter is stored with its last slice. While the core runs, only
    registers can be read: any other request is refused with the error BUSY. A request to an address
    that does not exist is refused with ADDRESS. A refused read returns 0. The first error is kept
    until it is cleared.

    Timing. A request takes two cycles and is taken in the second one, or in the third if a run
    ended in the first. A read is answered in the cycle after it is taken. A write is stored
    ``host_write`` cycles (see `Timing`) after it is taken.

    Spread cores have a `SpreadHostPort`, cores with external memory a `TapeHostPort`; `host_port`
    chooses.

    Members
    -------
    port : `PortSignature`
    records, weights, params, plane_write : out
        Writes to the memories of other blocks, never while `busy`.
    planes, logits : read ports
    start : out
        The first cycle of `busy`.
    busy : out
    finished : in
        The program ended; `busy` falls. Ignored in the cycle of `start`.
    layer : in
    walk_error, walk_error_at : in
        The walker's error, valid with `finished`.
    stray : in
        An event has a weight row that does not exist.
    ticks : in
        Which counters count in this cycle of a run; ignored in the cycle of `start`.
    """

    RUN_IN = ("finished", "layer", "walk_error", "walk_error_at", "stray", "ticks")
    """Inputs of the registers that report a run."""

    def __init__(self, config: CoreConfig):
        self._config = c = config
        self._timing = timing(config)
        self._writes = writes = host_writes(config)(config)
        self._registers = kept = registers(config)(config)
        logit = data.ArrayLayout(signed(c.membrane_bits), c.units)
        written, told = writes.signature.members, kept.signature.members
        super().__init__(
            {
                "port": In(PortSignature()),
                "planes": In(
                    memory.ReadPort.Signature(addr_width=c.plane_address_bits, shape=c.word)
                ),
                "logits": In(
                    memory.ReadPort.Signature(
                        addr_width=ceil_log2(c.logits // c.units), shape=logit
                    )
                ),
            }
            | {name: written[name] for name in _WRITES if name in written}
            | {name: told[name] for name in (*_RUN_OUT, *self.RUN_IN)}
            | self._of_memory()
        )

    def _of_memory(self):
        """Members for an external memory."""
        return {}

    def elaborate(self, platform):
        m = Module()
        port, c = self.port, self._config
        m.submodules.registers = kept = self._registers
        m.submodules.writes = writes = self._writes
        for name in _WRITES:
            if name in self.signature.members:
                connect(m, getattr(writes, name), flipped(getattr(self, name)))
        for name in _RUN_OUT:
            m.d.comb += getattr(self, name).eq(getattr(kept, name))
        for name in self.RUN_IN:
            m.d.comb += getattr(kept, name).eq(getattr(self, name))

        # A request is decoded in one cycle and taken in the next: without these registers, the
        # decoded address would reach the memories too late in the cycle.
        w = _Request(len(regions.reached(c)))
        in_region_now = [port.addr[regions.SHIFT :] == kind for kind in regions.reached(c)]
        settable = {
            name: self._number(port.addr) == register.address
            for name, register in regions.registers(c).items()
            if "w" in register.access
        }
        readable = Cat(in_region_now[kind] for kind in _READABLE if kind < len(in_region_now)).any()
        writable = Cat(in_region_now[kind] for kind in host_regions(c)).any()
        writable |= in_region_now[Region.REGISTERS] & reduce(or_, settable.values())
        clear, ended = Signal(), Signal()
        # Reads in flight, from the cycle after the request until the plane word arrives.
        in_flight = Signal(self._timing.host_ask + self._timing.plane_read)
        m.d.sync += [
            w.selected.eq(port.valid & ~port.ready),
            w.address_exists.eq(exists(c, port.addr, in_region_now)),
            w.allowed.eq(Mux(port.write, writable, readable)),
            w.in_region.eq(Cat(in_region_now)),
            in_flight.eq(Cat(w.answers, in_flight)),
            clear.eq(w.commands & port.w_data[1]),
            ended.eq(self.busy & self.finished),
        ]
        m.d.comb += [
            port.ready.eq(w.selected & ~ended & self._free(in_flight)),
            w.request.eq(port.ready),  # ``valid`` is held until then
            w.written.eq(w.in_region & (w.taken & port.write).replicate(len(w.in_region))),
            w.read.eq(w.in_region & (w.taken & ~port.write).replicate(len(w.in_region))),
            kept.begin.eq(w.commands & port.w_data[0]),
            kept.clear.eq(clear),
        ]
        self._judge(m, w, settable, in_region_now)
        given = {"written": w.written, "addr": port.addr, "data": port.w_data}
        for name, value in given.items():
            late = delayed(m, value, self._timing.host_write, name=f"late_{name}")
            m.d.comb += getattr(writes, name).eq(late)
        self._answer(m, w, in_flight[-1])
        stores = [writes.plane_write.valid]
        if "records" in self.signature.members:
            stores += [writes.records.valid, writes.weights.en.any(), writes.params.en.any()]
        must(m, platform, ~(self.busy & Cat(stores).any()), "a memory is written during a run")
        return m

    def _free(self, _in_flight):
        """Whether the next request can be taken."""
        return Const(1)

    def _judge(self, m, w, _settable, _in_region):
        """Decide whether the request is taken or refused, and with which error."""
        port, locked = self.port, Signal()
        m.d.comb += [
            locked.eq(self.busy & (port.write | ~w.in_region[Region.REGISTERS])),
            w.taken.eq(w.request & w.address_exists & ~locked & w.allowed),
            w.answers.eq(w.request & ~port.write),
            w.commands.eq(w.written[Region.REGISTERS]),
        ]
        with m.If(w.request & ~w.taken):
            m.d.comb += self._registers.refused.eq(
                Mux(w.address_exists & locked, ErrorCode.BUSY, ErrorCode.ADDRESS)
            )

    def _number(self, addr):
        """Number of the register at an address."""
        return addr[: (len(regions.registers(self._config)) - 1).bit_length()]

    def _answer(self, m, w, answer):
        """Answer a read when its data arrive; 0 if it was refused."""
        c, ask = self._config, self._timing.host_ask
        addr = delayed(m, self.port.addr, ask, name="asked_addr")
        read = delayed(m, w.read, ask, name="asked_read")
        source, register, answered = Signal.like(read), Signal(SLICE), Signal(SLICE)
        plane_part, plane = place(c, addr, Region.PLANES)
        logit_part, logit = place(c, addr, Region.LOGITS)
        unit_bits = ceil_log2(c.units)
        asked = Signal(data.StructLayout({"plane": len(plane_part), "logit": len(logit_part),
                                          "unit": unit_bits}))  # fmt: skip
        word = Signal(SLICE * regions.slices(c)[Region.PLANES])
        total = Signal(signed(SLICE * regions.slices(c)[Region.LOGITS]))
        with m.If(self._asks(m, w)):  # the request is stored until its data arrive
            m.d.sync += [
                source.eq(read),
                asked.plane.eq(plane_part),
                asked.logit.eq(logit_part),
                asked.unit.eq(logit),
            ]
            m.d.sync += register.eq(0)
            values = self._values()
            with m.If(read[Region.REGISTERS]), m.Switch(self._number(addr)):
                for name, where in regions.registers(c).items():
                    with m.Case(where.address):
                        m.d.sync += register.eq(values.get(name, 0))
        logit_slice = total.as_unsigned().word_select(asked.logit, SLICE)
        shown = delayed(m, logit_slice, self._timing.host_answer, name="logit", reset_less=True)
        m.d.comb += [
            self.planes.addr.eq(plane),
            self.planes.en.eq(read[Region.PLANES]),
            self.logits.addr.eq(logit >> unit_bits),
            self.logits.en.eq(read[Region.LOGITS]),
            word.eq(self.planes.data),
            total.eq(self._logit(m, asked.unit)),
            answered.eq(
                register
                | gate(source[Region.PLANES], word.word_select(asked.plane, SLICE))
                | gate(source[Region.LOGITS], shown)
            ),
        ]
        self._show(m, answer, answered)

    def _values(self):
        """The values of the registers, by name."""
        kept = self._registers
        return {name: kept.values[name] for name, _ in kept.values.shape()}

    def _asks(self, _m, _w):
        """Whether a new read is requested."""
        return Const(1)

    def _logit(self, _m, unit):
        """The logit of a unit."""
        return self.logits.data[unit]

    def _show(self, m, valid, answered):
        """Answer at the port."""
        registers = self._timing.host_answer
        m.d.comb += [
            self.port.r_valid.eq(delayed(m, valid, registers, name="answer_valid")),
            self.port.r_data.eq(delayed(m, answered, registers, name="answer")),
        ]


class _Request:
    """The decoded request."""

    def __init__(self, count: int):
        self.selected = Signal(name="selected")
        self.address_exists = Signal(name="address_exists")
        self.allowed = Signal(name="allowed")  # the address can be read or written, as requested
        self.request = Signal(name="request")  # it is taken, or refused
        self.taken = Signal(name="taken")
        self.answers = Signal(name="answers")  # it is a read that this block answers
        self.commands = Signal(name="commands")  # it is a write of the control register
        self.in_region = Signal(count, name="in_region")  # its region, one bit for each
        self.written = Signal(count, name="written")
        self.read = Signal(count, name="read")


def gate(enable, value):
    """The value while `enable` is 1, otherwise 0."""
    return value & enable.replicate(len(value))
