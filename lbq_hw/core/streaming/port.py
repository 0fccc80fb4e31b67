"""The host port of a streaming core: registers and memories behind 32-bit addresses."""

from amaranth import Cat, Const, Module, Mux, Signal
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out

from lbq_hw.config import address_bits
from lbq_hw.core.host.port import PortSignature
from lbq_hw.isa.record import SLICE
from lbq_hw.isa.regions import SHIFT
from lbq_hw.streaming import records
from lbq_hw.streaming.config import StreamConfig
from lbq_hw.streaming.records import StreamError, StreamRegion

__all__ = ["StreamPort"]

_WRITTEN = ("RECORDS", "TAPS", "ROWS", "WEIGHTS", "PARAMS")
_READ = ("MEMBRANES", "LEVELS", "MAPS")


class StreamPort(wiring.Component):
    """Decodes the addresses of `records.StreamRegion`, holds the registers, starts steps and
    resets.

    The slices of an entry are written in ascending order, and stored with the last slice. While a
    step or a reset runs, only registers can be read: any other request is refused with BUSY. A
    request to an address that does not exist, or that cannot be read or written as requested, is
    refused with ADDRESS; the only register that can be written is ``control``. A refused read
    returns 0. The first error is kept until it is cleared.

    Timing. A request is decoded in one cycle and taken in the next. An event is taken when the
    stream ``events`` takes it. The request after a read is not taken before the read is answered. A
    read is answered 2 cycles after it was taken.

    Members
    -------
    port : `PortSignature`
    writes : one write port for each region that the host writes
    reads : one read port for each region that the host reads
    events : stream of event words
    step, reset : out
        A step, or a reset, begins: ``busy`` rises in the next cycle.
    finished : in
        The last cycle of either.
    busy : out
    overflow : in
        A membrane overflowed its width.
    layer : in
    steps : out
        Steps since the last reset, including the current one.
    """

    def __init__(self, config: StreamConfig):
        self._config = c = config
        widths, depths = records.widths(c), records.depths(c)

        def port(kind, name):
            region = StreamRegion[name]
            return kind.Signature(addr_width=address_bits(depths[region]), shape=widths[region])

        writes = {name.lower(): In(port(memory.WritePort, name)) for name in _WRITTEN}
        reads = {name.lower(): In(port(memory.ReadPort, name)) for name in _READ}
        super().__init__(
            {
                "port": In(PortSignature()),
                "writes": Out(wiring.Signature(writes)),
                "reads": Out(wiring.Signature(reads)),
                "events": Out(stream.Signature(SLICE)),
                "step": Out(1),
                "reset": Out(1),
                "finished": In(1),
                "busy": Out(1),
                "overflow": In(1),
                "layer": In(8),
                "steps": Out(SLICE),
            }
        )

    def elaborate(self, _platform):
        m = Module()
        port = self.port
        regions = list(StreamRegion)
        in_region = Signal(len(regions))
        selected, address_exists, taken, control, answers = (Signal() for _ in range(5))
        writable = Cat(in_region[StreamRegion[name]] for name in (*_WRITTEN, "EVENTS")).any()
        writable |= in_region[StreamRegion.REGISTERS] & control
        readable = Cat(in_region[StreamRegion[name]] for name in (*_READ, "REGISTERS")).any()
        asks = in_region[StreamRegion.REGISTERS] & ~port.write
        allowed = address_exists & Mux(port.write, writable, readable)
        m.d.sync += [
            selected.eq(port.valid & ~port.ready & ~answers),
            in_region.eq(Cat(port.addr[SHIFT:] == region for region in regions)),
            address_exists.eq(Cat(self._exists(port.addr, region) for region in regions).any()),
            control.eq(port.addr[:SHIFT] == records.REGISTERS.index("control")),
            answers.eq(selected & ~port.write),
        ]
        locked = self.busy & ~asks
        event = selected & port.write & allowed & ~locked & in_region[StreamRegion.EVENTS]
        m.d.comb += [
            taken.eq(selected & allowed & ~locked),
            self.events.valid.eq(event),
            self.events.payload.eq(port.w_data),
            port.ready.eq(selected & (~event | self.events.ready)),
        ]
        refused = Mux(allowed & locked, StreamError.BUSY, StreamError.ADDRESS)
        commands = taken & port.write & in_region[StreamRegion.REGISTERS] & port.ready
        self._control(m, commands, selected & ~taken, refused)
        self._write(m, taken & port.write, in_region)
        self._read(m, taken & ~port.write, answers, in_region)
        return m

    def _exists(self, addr, region):
        """Whether an address names a slice of an entry."""
        c = self._config
        parts = records.slices(c, region)
        bits = (parts - 1).bit_length()
        there = (addr[SHIFT:] == region) & (addr[bits:SHIFT] < records.depths(c)[region])
        return there & (addr[:bits] < parts) if bits else there

    def _control(self, m, commands, refuses, refused):
        """The registers, and the start and end of a step or reset."""
        data = self.port.w_data
        self._error, self._done = Signal(8), Signal()
        self._cycles, self._epoch = Signal(SLICE), Signal(SLICE)
        error, begins = self._error, Signal()
        m.d.comb += [
            self.step.eq(commands & data[0]),
            self.reset.eq(commands & data[2] & ~data[0]),
            begins.eq(self.step | self.reset),
        ]
        with m.If(commands & data[1]):
            m.d.sync += [error.eq(StreamError.NONE), self._done.eq(0)]
        with m.Elif(error == StreamError.NONE):
            with m.If(self.overflow):
                m.d.sync += error.eq(StreamError.MEMBRANE)
            with m.Elif(refuses):
                m.d.sync += error.eq(refused)
        with m.If(begins):
            m.d.sync += [self.busy.eq(1), self._done.eq(0), self._cycles.eq(0)]
        with m.Elif(self.busy):
            m.d.sync += self._cycles.eq(self._cycles + 1)
            with m.If(self.finished):
                m.d.sync += [self.busy.eq(0), self._done.eq(1)]
        with m.If(self.step):
            m.d.sync += self.steps.eq(self.steps + 1)
        with m.If(self.reset):
            m.d.sync += [self.steps.eq(0), self._epoch.eq(self._epoch + 1)]

    def _write(self, m, writes, in_region):
        """Collect the slices of an entry, and write it with the last one."""
        c, port = self._config, self.port
        widths = records.widths(c)
        most = max(records.slices(c, StreamRegion[name]) for name in _WRITTEN)
        kept = [Signal(SLICE, name=f"slice_{i}") for i in range(most - 1)]
        for name in _WRITTEN:
            region, target = StreamRegion[name], getattr(self.writes, name.lower())
            parts = records.slices(c, region)
            bits = (parts - 1).bit_length()
            part = port.addr[:bits]
            m.d.comb += [
                target.addr.eq(port.addr[bits:SHIFT]),
                target.data.eq(Cat(*kept[: parts - 1], port.w_data)[: widths[region]]),
                target.en.eq(writes & in_region[region] & ((part == parts - 1) if bits else 1)),
            ]
            for i in range(parts - 1):
                with m.If(writes & in_region[region] & (part == i)):
                    m.d.sync += kept[i].eq(port.w_data)

    def _read(self, m, reads, answers, in_region):
        """Answer a read two cycles later; ``answers`` is 1 in the cycle before."""
        c, port = self._config, self.port
        values = {
            "id": records.MAGIC,
            "digest": int(c.digest[:8], 16),
            "control": 0,
            "status": Cat(self.busy, self._done, self._error != StreamError.NONE),
            "error": self._error,
            "layer": self.layer,
            "cycles": self._cycles,
            "step": self.steps,
            "epoch": self._epoch,
        }
        table = [values[name] for name in records.REGISTERS]
        most = max(records.slices(c, StreamRegion[name]) for name in _READ)
        register, source, part = Signal(SLICE), Signal(len(_READ)), Signal(range(most))
        found = Signal(SLICE)
        m.d.sync += [register.eq(0), self.port.r_valid.eq(answers)]
        with m.If(reads & in_region[StreamRegion.REGISTERS]), m.Switch(port.addr[:4]):
            for i, value in enumerate(table):
                with m.Case(i):
                    m.d.sync += register.eq(value)
        m.d.comb += found.eq(register)
        for i, name in enumerate(_READ):
            region, target = StreamRegion[name], getattr(self.reads, name.lower())
            parts = records.slices(c, region)
            bits = (parts - 1).bit_length()
            m.d.comb += [
                target.addr.eq(port.addr[bits:SHIFT]),
                target.en.eq(reads & in_region[region]),
            ]
            m.d.sync += source[i].eq(target.en)
            with m.If(target.en):
                m.d.sync += part.eq(port.addr[:bits])
            whole = Cat(target.data, Const(0, parts * SLICE - len(target.data)))
            with m.If(source[i]):
                m.d.comb += found.eq(whole.word_select(part[:bits], SLICE))
        m.d.sync += self.port.r_data.eq(found)
