"""The host's view of the core: registers and memories behind 32-bit addresses."""

from functools import reduce
from operator import or_

from amaranth import Array, Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import ceil_log2

from lbq_hw.config import CoreConfig
from lbq_hw.core.external.host_memory_port import HostMemoryPort
from lbq_hw.core.external.memory_access import MemoryAccess
from lbq_hw.core.host.addresses import exists, place
from lbq_hw.core.host.registers import Registers
from lbq_hw.core.host.writes import HostWrites, host_regions
from lbq_hw.core.memory.spread import SpreadMemory
from lbq_hw.isa import Error, regions
from lbq_hw.isa.record import SLICE
from lbq_hw.isa.regions import Region

__all__ = ["FAR_LANES", "HostPort", "PortSignature"]

_WRITES = ("records", "weights", "params", "plane_write")
_RUN_IN = ("finished", "layer", "walk_error", "walk_error_at", "stray", "ticks")
_TAPE_IN = ("calibrated", "aligned", "passes", "waits")
_RUN_OUT = ("start", "busy")
_READABLE = (Region.REGISTERS, Region.PLANES, Region.LOGITS, Region.MEMORY)
FAR_LANES = 32
"""Lanes from which on memories lie far from the port."""
_UNITS_A_REGISTER = 8  # neuron units whose logits meet in one register


class PortSignature(wiring.Signature):
    """A request is taken in a cycle with ``valid`` and ``ready``, and stays until then. Every read
    is answered by one cycle with ``r_valid``, before the next request is taken.
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

    Blocks: `HostWrites`, `Registers` and, with external memory, `MemoryAccess`. The slices of a
    plane word and of a parameter must be written in their order; those of a parameter are stored
    with the last. While the core runs only registers can be read: anything else is refused with the
    error BUSY; what does not exist, with ADDRESS. A refused read answers 0. Of several errors the
    first stays until it is cleared.

    What needs the external memory (its slices, a digest, a self-test) is refused with MEMORY while
    it is not calibrated. While a digest or a self-test is under way, these, a calibration and a
    start are refused with BUSY.

    Timing. A request every other cycle, each taken in its second cycle; in its third where a run
    ended in its first. A read is answered in the cycle after it is taken. A write is stored in the
    cycle in which it is taken; from `FAR_LANES` lanes on, in the one after, by a register.

    Where memories fill a good part of the chip, a read is answered ``SpreadMemory.LATENCY`` + 2
    cycles after it is taken, and the next request is taken after that. With external memory, a
    write is stored in the cycle in which it is taken. A slice of external memory is offered to the
    memory in the cycle after it was taken; if it answers in cycle c, the read is answered in cycle
    c + 2. After a write, the next request is taken in the cycle after the memory took it at the
    earliest.

    Members
    -------
    port : `PortSignature`
    records, weights, params, plane_write : out
        Writes for the blocks that have the memories, never while `busy`. With external memory,
        only the last one: writes to the other regions are refused with ADDRESS.
    planes, logits : read ports
    start : out
        The first cycle of `busy`; with external memory, the first of these with `aligned`.
    calibrated, aligned, passes, waits : in, with external memory
        As in `Registers`.
    host_memory : `HostMemoryPort`, with external memory
    busy : out
    finished : in
        The program ended; `busy` falls. Not looked at in the cycle of `start`.
    layer : in
    walk_error, walk_error_at : in
        The walker's, valid with `finished`.
    stray : in
        An event has a weight row that does not exist.
    ticks : in
        What to count in this cycle, of a run; not in that of `start`.
    """

    def __init__(self, config: CoreConfig):
        self._config = c = config
        self._writes = writes = HostWrites(config)
        self._registers = registers = Registers(config)
        self._access = MemoryAccess() if config.external else None
        self._run_in = (*_RUN_IN, *_TAPE_IN) if config.external else _RUN_IN
        logit = data.ArrayLayout(signed(c.membrane_bits), c.units)
        written, kept = writes.signature.members, registers.signature.members
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
            | {name: kept[name] for name in (*_RUN_OUT, *self._run_in)}
            | ({"host_memory": Out(HostMemoryPort())} if c.external else {})
        )

    def elaborate(self, _platform):
        m = Module()
        port = self.port
        m.submodules.registers = registers = self._registers
        m.submodules.writes = writes = self._writes
        for name in _WRITES:
            if name in self.signature.members:
                connect(m, getattr(writes, name), flipped(getattr(self, name)))
        for name in _RUN_OUT:
            m.d.comb += getattr(self, name).eq(getattr(registers, name))
        for name in self._run_in:
            m.d.comb += getattr(registers, name).eq(getattr(self, name))
        named = [port.addr[regions.SHIFT :] == kind for kind in regions.reached(self._config)]
        settable = {
            name: self._number(port.addr) == register.address
            for name, register in regions.registers(self._config).items()
            if "w" in register.access
        }
        readable = Cat(named[kind] for kind in _READABLE if kind < len(named)).any()
        writable = Cat(named[kind] for kind in host_regions(self._config)).any()
        writable |= named[Region.REGISTERS] & reduce(or_, settable.values())

        # A request is looked at, and taken in the cycle after: what follows from its address would
        # be late for all the memories.
        looked, known, allowed = Signal(), Signal(), Signal()
        here, written, read = (Signal(len(named)) for _ in range(3))
        request, locked, taken, clear, ended = (Signal() for _ in range(5))
        # An answer, from the cycle after its request to the one in which its plane word is there.
        on_its_way = Signal(1 + SpreadMemory.LATENCY if self._config.spread else 1)
        refused = Signal(4)
        ready, answers = looked & ~ended, request & ~port.write
        locks = self.busy & (port.write | ~here[Region.REGISTERS])
        takes = request & known & ~locked & allowed
        commands = written[Region.REGISTERS]
        if self._access:
            commanded, calibrates, absent = Signal(), Signal(), Signal()
            m.d.sync += [
                commanded.eq(settable["control"]),
                calibrates.eq(settable["captures"] & named[Region.REGISTERS]),
            ]
            sets = here[Region.REGISTERS] & port.write
            uses = here[Region.MEMORY] | (sets & ~commanded)
            m.d.comb += absent.eq(known & allowed & uses & ~self.calibrated & ~calibrates)
            answers &= ~read[Region.MEMORY]
            locks |= self._access.in_use & (uses | (sets & port.w_data[0]))
            takes &= ~absent
            commands &= commanded
            self._reach_memory(m, written, read)
        if self._config.spread:
            pending = self._access.pending if self._access else Const(0)
            ready &= ~pending & ~on_its_way.any() & ~port.r_valid
        m.d.sync += [
            looked.eq(port.valid & ~port.ready),
            known.eq(exists(self._config, port.addr, named)),
            allowed.eq(Mux(port.write, writable, readable)),
            here.eq(Cat(named)),
            on_its_way.eq(Cat(answers, on_its_way)),
            clear.eq(commands & port.w_data[1]),
            ended.eq(self.busy & self.finished),
        ]
        m.d.comb += [
            port.ready.eq(ready),
            request.eq(port.ready),  # it is still valid
            locked.eq(locks),
            taken.eq(takes),
            written.eq(here & (taken & port.write).replicate(len(here))),
            read.eq(here & (taken & ~port.write).replicate(len(here))),
        ]
        with m.If(request & ~taken):
            m.d.comb += refused.eq(Mux(known & locked, Error.BUSY.value, Error.ADDRESS.value))
            if self._access:
                with m.If(absent & ~locked):
                    m.d.comb += refused.eq(Error.MEMORY.value)
        m.d.comb += [
            registers.begin.eq(commands & port.w_data[0]),
            registers.clear.eq(clear),
            registers.refused.eq(refused),
        ]
        # With external memory, only planes are written, and these have a register of their own.
        far = self._config.lanes >= FAR_LANES and not self._config.external
        stored = m.d.sync if far else m.d.comb
        stored += [
            writes.written.eq(written),
            writes.addr.eq(port.addr),
            writes.data.eq(port.w_data),
        ]
        addr, asks = port.addr, Const(1)
        if self._config.spread:
            addr, asks, asked = Signal.like(port.addr), Signal(), Signal.like(read)
            m.d.sync += [addr.eq(port.addr), asks.eq(request), asked.eq(read)]
            read = asked
        self._answer(m, on_its_way[-1], asks, addr, read)
        return m

    def _number(self, addr):
        """Of the register that an address names."""
        return addr[: (len(regions.registers(self._config)) - 1).bit_length()]

    def _reach_memory(self, m, written, read):
        """Pass on what concerns the external memory."""
        m.submodules.access = access = self._access
        connect(m, access.memory, flipped(self.host_memory))
        m.d.comb += [
            access.read.eq(read[Region.MEMORY]),
            access.write.eq(written[Region.MEMORY]),
            access.set.eq(written[Region.REGISTERS]),
            access.addr.eq(self.port.addr),
            access.data.eq(self.port.w_data),
            access.calibrated.eq(self.calibrated),
        ]

    def _answer(self, m, answer, asks, addr, read):
        """What a read brings, as soon as it is there; 0 if it was refused."""
        c = self._config
        source, register, answered = Signal.like(read), Signal(SLICE), Signal(SLICE)
        blocks = [self._registers, self._access] if self._access else [self._registers]
        values = {name: block.values[name] for block in blocks for name, _ in block.values.shape()}
        plane_part, plane = place(c, addr, Region.PLANES)
        logit_part, logit = place(c, addr, Region.LOGITS)
        unit_bits = ceil_log2(c.units)
        asked = Signal(data.StructLayout({"plane": len(plane_part), "logit": len(logit_part),
                                          "unit": unit_bits}))  # fmt: skip
        word = Signal(SLICE * regions.slices(c)[Region.PLANES])
        total = Signal(signed(SLICE * regions.slices(c)[Region.LOGITS]))
        with m.If(asks):  # what is asked for stays until it is there
            m.d.sync += [
                source.eq(read),
                asked.plane.eq(plane_part),
                asked.logit.eq(logit_part),
                asked.unit.eq(logit),
            ]
            m.d.sync += register.eq(0)
            with m.If(read[Region.REGISTERS]), m.Switch(self._number(addr)):
                for name, where in regions.registers(c).items():
                    with m.Case(where.address):
                        m.d.sync += register.eq(values.get(name, 0))
        logit_slice = Signal(SLICE, reset_less=True)
        # Where planes are far it waits for what they take, and a register is on its way.
        logits = m.d.sync if c.spread else m.d.comb
        logits += logit_slice.eq(total.as_unsigned().word_select(asked.logit, SLICE))
        m.d.comb += [
            self.planes.addr.eq(plane),
            self.planes.en.eq(read[Region.PLANES]),
            self.logits.addr.eq(logit >> unit_bits),
            self.logits.en.eq(read[Region.LOGITS]),
            word.eq(self.planes.data),
            total.eq(self._logit(m, asked.unit)),
            answered.eq(
                register
                | _gate(source[Region.PLANES], word.word_select(asked.plane, SLICE))
                | _gate(source[Region.LOGITS], logit_slice)
            ),
        ]
        valid, brought = answer, answered
        if self._access:
            valid |= self._access.answered
            brought |= _gate(self._access.answered, self._access.answer)
        answers = m.d.sync if c.spread else m.d.comb
        answers += [self.port.r_valid.eq(valid), self.port.r_data.eq(brought)]

    def _logit(self, m, unit):
        """The logit of a unit. Where planes are far it is a cycle later, and units are far from
        here: registers take those of some of them each.
        """
        logits = self.logits.data
        if not self._config.spread:
            return logits[unit]
        low = ceil_log2(_UNITS_A_REGISTER)
        chosen = []
        for first in range(0, len(logits), _UNITS_A_REGISTER):
            some = [logits[i] for i in range(first, min(first + _UNITS_A_REGISTER, len(logits)))]
            chosen.append(Signal.like(logits[0], name=f"logit_{first}", reset_less=True))
            m.d.sync += chosen[-1].eq(Array(some)[unit[:low]])
        return Array(chosen)[unit[low:]]


def _gate(enable, value):
    return value & enable.replicate(len(value))
