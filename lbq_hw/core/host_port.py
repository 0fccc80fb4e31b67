"""The host's view of the core: registers and memories behind 32-bit addresses."""

from amaranth import Cat, Const, Module, Mux, Signal, signed, unsigned
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from lbq_hw import isa
from lbq_hw.config import CoreConfig, address_bits
from lbq_hw.core.payload import PlaneWrite
from lbq_hw.core.records import Table, record_stream
from lbq_hw.isa import SLICE, Error, Region

__all__ = ["COUNTERS", "HostPort", "PortSignature"]

COUNTERS = ("cycles", "events", "null_events", "scanner_stalls", "neuron_stalls", "words",
            "empty_requests")  # fmt: skip
_TABLES = {
    Region.LAYERS: Table.LAYERS,
    Region.PATHS: Table.PATHS,
    Region.SEGMENTS: Table.SEGMENTS,
    Region.RUNS: Table.RUNS,
}


class PortSignature(wiring.Signature):
    """A request is taken in a cycle with ``valid`` and ``ready``. Every read is answered by one
    cycle with ``r_valid``, before the next request is taken.
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
    """Decodes the regions of `lbq_hw.isa`, holds the registers, and starts the core.

    Records, parameters and plane words are staged slice by slice, and stored when their last slice
    is written; a weight slice is stored at once. While the core runs only registers can be read:
    anything else is refused with the error BUSY; what does not exist, with ADDRESS. A refused read
    answers 0. Of several errors the first stays until it is cleared.

    Timing. A request a cycle; a read is answered in the next cycle.

    Members
    -------
    port : `PortSignature`
    records, weights, params, plane_write : out
        Writes for the blocks that have the memories, never while `busy`.
    planes, logits : read ports
    start : out
        One cycle, before `busy` rises.
    busy : out
    finished : in
        The program ended; `busy` falls.
    layer : in
    walk_error, walk_error_at : in
        The walker's, valid with `finished`.
    stray : in
        An event has a weight row that does not exist.
    ticks : in
        What to count in this cycle, of a run.
    """

    def __init__(self, config: CoreConfig):
        self._config = c = config
        row = data.ArrayLayout(signed(c.weight_bits), c.lanes)
        param = data.ArrayLayout(signed(c.membrane_bits), 3 * c.units)
        logit = data.ArrayLayout(signed(c.membrane_bits), c.units)
        plane = PlaneWrite(word=c.word, granule=c.granule, address_bits=c.plane_address_bits)
        super().__init__(
            {
                "port": In(PortSignature()),
                "records": Out(record_stream(c)),
                "weights": In(
                    memory.WritePort.Signature(
                        addr_width=ceil_log2(c.weight_rows), shape=row, granularity=1
                    )
                ),
                "params": In(
                    memory.WritePort.Signature(
                        addr_width=ceil_log2(c.channels // c.units), shape=param, granularity=1
                    )
                ),
                "plane_write": Out(stream.Signature(plane, always_ready=True)),
                "planes": In(
                    memory.ReadPort.Signature(addr_width=c.plane_address_bits, shape=c.word)
                ),
                "logits": In(
                    memory.ReadPort.Signature(
                        addr_width=ceil_log2(c.logits // c.units), shape=logit
                    )
                ),
                "start": Out(1),
                "busy": Out(1),
                "finished": In(1),
                "layer": In(address_bits(c.layers)),
                "walk_error": In(4),
                "walk_error_at": In(SLICE),
                "stray": In(1),
                "ticks": In(data.StructLayout(dict.fromkeys(COUNTERS, 1))),
            }
        )

    def elaborate(self, _platform):
        m = Module()
        c = self._config
        slices, entries = isa.region_slices(c), isa.region_entries(c)
        request = Signal()
        read, write = Signal(), Signal()
        region = self.port.addr[isa.REGION_SHIFT :]
        error, error_at = Signal(4), Signal(SLICE)
        done = Signal()
        refused = Signal(4)
        clear = Signal()
        answer = Signal()
        registers = Signal(SLICE)
        plane_part, logit_part, logit_unit = Signal(8), Signal(1), Signal(range(max(2, c.units)))
        source = Signal(4)

        m.d.comb += [
            self.port.ready.eq(~answer),
            request.eq(self.port.valid & self.port.ready),
            read.eq(request & ~self.port.write),
            write.eq(request & self.port.write),
            self.port.r_valid.eq(answer),
            self.planes.en.eq(0),  # a read port's enable is 1 where nobody drives it
        ]
        counters = self._counters(m, clear)
        m.d.sync += answer.eq(read)

        # Slices of records, parameters and plane words, the newest in its place.
        stage = Signal(data.ArrayLayout(SLICE, max(slices.values())))
        whole = Signal.like(stage)
        m.d.comb += whole.eq(stage)

        with m.Switch(region):
            for kind in Region:
                part_bits = (slices[kind] - 1).bit_length()
                part = self.port.addr[:part_bits]
                entry = self.port.addr[part_bits : isa.REGION_SHIFT]
                last = part == slices[kind] - 1 if part_bits else Const(1)
                exists = entry < entries[kind]
                if part_bits:
                    exists &= part < slices[kind]
                with m.Case(kind.value), m.If(request):
                    with m.If(~exists):
                        m.d.comb += refused.eq(Error.ADDRESS.value)
                    with m.Elif(self.busy & ((kind != Region.REGISTERS) | self.port.write)):
                        m.d.comb += refused.eq(Error.BUSY.value)
                    with m.Elif(self.port.write):
                        m.d.comb += whole[part if part_bits else 0].eq(self.port.w_data)
                        m.d.sync += stage.eq(whole)
                        self._store(m, kind, entry, part, last, whole, refused, clear)
                    with m.Else():
                        m.d.sync += source.eq(kind.value)
                        if kind == Region.PLANES:
                            m.d.comb += [self.planes.addr.eq(entry), self.planes.en.eq(1)]
                            m.d.sync += plane_part.eq(part if part_bits else 0)
                        elif kind == Region.LOGITS:
                            unit_bits = ceil_log2(c.units)
                            m.d.comb += [
                                self.logits.addr.eq(entry >> unit_bits),
                                self.logits.en.eq(1),
                            ]
                            m.d.sync += logit_unit.eq(entry[:unit_bits] if unit_bits else 0)
                            m.d.sync += logit_part.eq(part if part_bits else 0)
                        elif kind != Region.REGISTERS:
                            m.d.comb += refused.eq(Error.ADDRESS.value)
            with m.Default(), m.If(request):
                m.d.comb += refused.eq(Error.ADDRESS.value)

        # Answers.
        status = Cat(self.busy, done, error != 0)
        values = {
            "id": isa.MAGIC,
            "digest": int(c.digest[:8], 16),
            "control": 0,
            "status": status,
            "error": error,
            "error_at": error_at,
            "layer": self.layer,
            "cycles_high": counters["cycles"][SLICE:],
        } | {name: counters[name][:SLICE] for name in COUNTERS}
        with m.If(read), m.Switch(self.port.addr[:4]):
            for name, register in isa.REGISTERS.items():
                with m.Case(register.address):
                    m.d.sync += registers.eq(values[name])
        with m.If(read & (refused != 0)):
            m.d.sync += source.eq(15)
        logit = Signal(2 * SLICE)
        word = Signal(data.ArrayLayout(SLICE, slices[Region.PLANES]))
        m.d.comb += [
            word.eq(self.planes.data),
            logit.eq(self.logits.data[logit_unit].as_signed()),
        ]
        with m.Switch(source):
            with m.Case(Region.REGISTERS.value):
                m.d.comb += self.port.r_data.eq(registers)
            with m.Case(Region.PLANES.value):
                m.d.comb += self.port.r_data.eq(word[plane_part])
            with m.Case(Region.LOGITS.value):
                m.d.comb += self.port.r_data.eq(logit.word_select(logit_part, SLICE))

        # Life of a run, and its errors.
        failure = Signal(4)
        m.d.comb += failure.eq(refused)
        with m.If(self.stray):
            m.d.comb += failure.eq(Error.WEIGHT.value)
        with m.Elif(self.finished & (self.walk_error != 0)):
            m.d.comb += failure.eq(self.walk_error)
        with m.If(clear):
            m.d.sync += [error.eq(0), error_at.eq(0), done.eq(0)]
        with m.Elif((failure != 0) & (error == 0)):
            at_record = self.finished & ~self.stray & (self.walk_error != 0)
            m.d.sync += [
                error.eq(failure),
                error_at.eq(Mux(at_record, self.walk_error_at, self.layer)),
            ]
        with m.If(self.start):
            m.d.sync += [self.busy.eq(1), done.eq(0)]
        with m.Elif(self.finished):
            m.d.sync += [self.busy.eq(0), done.eq(1)]
        return m

    def _store(self, m, kind, entry, part, last, whole, refused, clear):
        """What a write does, in its region."""
        c = self._config
        bits = Cat(*whole)
        if kind == Region.REGISTERS:
            with m.If(entry == isa.REGISTERS["control"].address):
                m.d.comb += [clear.eq(self.port.w_data[1]), self.start.eq(self.port.w_data[0])]
            with m.Else():
                m.d.comb += refused.eq(Error.ADDRESS.value)
        elif kind in _TABLES:
            m.d.comb += [
                self.records.valid.eq(last),
                self.records.payload.table.eq(_TABLES[kind]),
                self.records.payload.entry.eq(entry),
                self.records.payload.data.eq(bits),
            ]
        elif kind == Region.WEIGHTS:
            each = isa.weight_slice_lanes(c)
            for lane in range(c.lanes):
                low = lane % each * c.weight_bits
                m.d.comb += [
                    self.weights.data[lane].eq(self.port.w_data[low : low + c.weight_bits]),
                    self.weights.en[lane].eq(part == lane // each if len(part) else 1),
                ]
            m.d.comb += self.weights.addr.eq(entry)
        elif kind == Region.PARAMS:
            unit_bits = ceil_log2(c.units)
            unit = entry[:unit_bits] if unit_bits else Const(0)
            slots = isa.PARAM.slots(c)
            fields = [slots[name] for name in ("bias", "theta", "reset")]
            for index in range(c.units):
                for number, slot in enumerate(fields):
                    value = bits[slot.offset : slot.offset + slot.width]
                    m.d.comb += [
                        self.params.data[3 * index + number].eq(value),
                        self.params.en[3 * index + number].eq(last & (unit == index)),
                    ]
            m.d.comb += self.params.addr.eq(entry >> unit_bits)
        elif kind == Region.PLANES:
            m.d.comb += [
                self.plane_write.valid.eq(last),
                self.plane_write.payload.addr.eq(entry),
                self.plane_write.payload.data.eq(bits),
                self.plane_write.payload.enable.eq(~0),
                self.plane_write.payload.first.eq(1),
            ]
        else:
            m.d.comb += refused.eq(Error.ADDRESS.value)

    def _counters(self, m, clear):
        counters = {}
        for name in COUNTERS:
            width = 2 * SLICE if name == "cycles" else SLICE
            counters[name] = counter = Signal(unsigned(width), name=f"count_{name}")
            with m.If(clear):
                m.d.sync += counter.eq(0)
            with m.Elif(self.busy & self.ticks[name]):
                m.d.sync += counter.eq(counter + 1)
        return counters
