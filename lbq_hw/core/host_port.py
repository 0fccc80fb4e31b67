"""The host's view of the core: registers and memories behind 32-bit addresses."""

from amaranth import Cat, Module, Mux, Signal, signed, unsigned
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from lbq_hw import isa
from lbq_hw.config import CoreConfig, address_bits
from lbq_hw.core.payload import PlaneWrite
from lbq_hw.core.tables import Table, slice_stream
from lbq_hw.isa import Error, regions
from lbq_hw.isa.record import SLICE
from lbq_hw.isa.regions import Region

__all__ = ["COUNTERS", "HostPort", "PortSignature"]

COUNTERS = ("cycles", "events", "null_events", "scanner_stalls", "neuron_stalls", "words",
            "empty_requests")  # fmt: skip
_TABLES = {
    Region.LAYERS: Table.LAYERS,
    Region.PATHS: Table.PATHS,
    Region.SEGMENTS: Table.SEGMENTS,
    Region.RUNS: Table.RUNS,
}
_WRITTEN = (*_TABLES, Region.WEIGHTS, Region.PARAMS, Region.PLANES)
_CYCLE_BITS = 40  # hours


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

    Slices are stored at once, but for those of a parameter, which wait for the last one. The slices
    of a plane word and of a parameter must be written in their order. While the core runs only
    registers can be read: anything else is refused with the error BUSY; what does not exist, with
    ADDRESS. A refused read answers 0. Of several errors the first stays until it is cleared.

    Timing. A request every other cycle, each taken in its second cycle; in its third where a run
    ended in its first. A read is answered in the cycle after it is taken.

    Members
    -------
    port : `PortSignature`
    records, weights, params, plane_write : out
        Writes for the blocks that have the memories, never while `busy`.
    planes, logits : read ports
    start : out
        The first cycle of `busy`.
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
        row = data.ArrayLayout(signed(c.weight_bits), c.lanes)
        param = data.ArrayLayout(signed(c.membrane_bits), 3 * c.units)
        logit = data.ArrayLayout(signed(c.membrane_bits), c.units)
        plane = PlaneWrite(word=c.word, granule=c.granule, address_bits=c.plane_address_bits)
        super().__init__(
            {
                "port": In(PortSignature()),
                "records": Out(slice_stream(c)),
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
                "walk_error_at": In(max(address_bits(getattr(c, name)) for name in isa.TABLES)),
                "stray": In(1),
                "ticks": In(data.StructLayout(dict.fromkeys(COUNTERS, 1))),
            }
        )

    def elaborate(self, _platform):
        m = Module()
        port = self.port
        named = [port.addr[regions.SHIFT :] == kind for kind in Region]
        control = port.addr[:4] == regions.REGISTERS["control"].address
        reads = (Region.REGISTERS, Region.PLANES, Region.LOGITS)
        readable = Cat(named[kind] for kind in reads).any()
        writable = Cat(named[kind] for kind in _WRITTEN).any()
        writable |= named[Region.REGISTERS] & control

        # A request is looked at, and taken in the cycle after: what follows from its address would
        # be late for all the memories.
        looked, known, allowed = Signal(), Signal(), Signal()
        here, written, read = (Signal(len(Region)) for _ in range(3))
        request, locked, taken, answer, clear, ended = (Signal() for _ in range(6))
        refused = Signal(4)
        m.d.sync += [
            looked.eq(port.valid & ~port.ready),
            known.eq(self._known(named)),
            allowed.eq(Mux(port.write, writable, readable)),
            here.eq(Cat(named)),
            answer.eq(request & ~port.write),
            clear.eq(written[Region.REGISTERS] & port.w_data[1]),
            ended.eq(self.busy & self.finished),
        ]
        m.d.comb += [
            port.ready.eq(looked & ~ended),
            port.r_valid.eq(answer),
            request.eq(port.ready),  # it is still valid
            locked.eq(self.busy & (port.write | ~here[Region.REGISTERS])),
            taken.eq(request & known & ~locked & allowed),
            written.eq(here & (taken & port.write).replicate(len(here))),
            read.eq(here & (taken & ~port.write).replicate(len(here))),
        ]
        with m.If(request & ~taken):
            m.d.comb += refused.eq(Mux(known & locked, Error.BUSY.value, Error.ADDRESS.value))
        begin = written[Region.REGISTERS] & port.w_data[0]
        self._store(m, written)
        self._answer(m, read, self._registers(m, refused, begin, clear))
        return m

    def _place(self, kind):
        """Slice and entry that an address names in a region."""
        part_bits = (regions.slices(self._config)[kind] - 1).bit_length()
        return self.port.addr[:part_bits], self.port.addr[part_bits : regions.SHIFT]

    def _known(self, here):
        """Whether the address names something."""
        slices, entries = regions.slices(self._config), regions.entries(self._config)
        used = {kind: len(self._place(kind)[0]) + ceil_log2(entries[kind]) for kind in Region}
        low, high = self.port.addr[: max(used.values())], self.port.addr[max(used.values()) :]
        nowhere = high[: regions.SHIFT - len(low)].any()
        found = []
        for kind in Region:
            part, entry = self._place(kind)
            bits = ceil_log2(entries[kind])
            exists = ~(nowhere | low[used[kind] :].any())
            if entries[kind] < 1 << bits:
                exists &= entry[:bits] < entries[kind]
            if slices[kind] < 1 << len(part):
                exists &= part < slices[kind]
            found.append(here[kind] & exists)
        return Cat(found).any()

    def _store(self, m, written):
        """What a write does, in its region."""
        c, word = self._config, self.port.w_data
        m.d.comb += [
            self.records.valid.eq(Cat(written[kind] for kind in _TABLES).any()),
            self.records.payload.address.eq(self.port.addr),
            self.records.payload.data.eq(word),
        ]
        for kind, table in _TABLES.items():
            with m.If(written[kind]):
                m.d.comb += self.records.payload.table.eq(table)

        part, entry = self._place(Region.WEIGHTS)
        each = regions.weight_slice_lanes(c)
        m.d.comb += self.weights.addr.eq(entry)
        for lane in range(c.lanes):
            low = lane % each * c.weight_bits
            m.d.comb += [
                self.weights.data[lane].eq(word[low : low + c.weight_bits]),
                self.weights.en[lane].eq(written[Region.WEIGHTS] & (part == lane // each)),
            ]

        part, entry = self._place(Region.PARAMS)
        slots, slices = isa.PARAM.slots(c), regions.slices(c)[Region.PARAMS]
        stage = Signal((slices - 1) * SLICE)  # of a parameter, all slices but the last
        bits = Cat(stage, word)
        with m.If(written[Region.PARAMS]):
            m.d.sync += stage.eq(bits[SLICE:])
        unit_bits = ceil_log2(c.units)
        stored = written[Region.PARAMS] & (part == slices - 1)
        m.d.comb += self.params.addr.eq(entry >> unit_bits)
        for unit in range(c.units):
            for number, slot in enumerate(slots[name] for name in ("bias", "theta", "reset")):
                m.d.comb += [
                    self.params.data[3 * unit + number].eq(bits[slot.offset :][: slot.width]),
                    self.params.en[3 * unit + number].eq(stored & (entry[:unit_bits] == unit)),
                ]

        part, entry = self._place(Region.PLANES)
        plane = self.plane_write.payload
        granules = len(plane.enable) // regions.slices(c)[Region.PLANES]
        m.d.comb += [
            self.plane_write.valid.eq(written[Region.PLANES]),
            plane.addr.eq(entry),
            plane.data.eq(word.replicate(-(-c.word // SLICE))),
            plane.first.eq(part == 0),
        ]
        for number, enable in enumerate(plane.enable):
            m.d.comb += enable.eq(part == number // granules)

    def _registers(self, m, refused, begin, clear):
        """Life of a run, its errors and counters; the registers by name."""
        c = self._config
        error, done, failure = Signal(4), Signal(), Signal(4)
        error_at = Signal.like(self.walk_error_at)
        ends = self.finished & ~self.start
        at_record = ends & ~self.stray & (self.walk_error != 0)
        m.d.comb += failure.eq(refused)
        with m.If(self.stray):
            m.d.comb += failure.eq(Error.WEIGHT.value)
        with m.Elif(at_record):
            m.d.comb += failure.eq(self.walk_error)
        with m.If(clear):
            m.d.sync += [error.eq(0), error_at.eq(0), done.eq(0)]
        with m.Elif((failure != 0) & (error == 0)):
            m.d.sync += error.eq(failure)
            m.d.sync += error_at.eq(Mux(at_record, self.walk_error_at, self.layer))
        m.d.sync += self.start.eq(0)
        with m.If(begin):
            m.d.sync += [self.start.eq(1), self.busy.eq(1), done.eq(0)]
        with m.Elif(ends):
            m.d.sync += [self.busy.eq(0), done.eq(1)]

        # A cycle late, for what ticks come from is late in its cycle.
        ticks = Signal(self.ticks.shape())
        m.d.sync += ticks.eq(_gate(self.busy & ~self.start, self.ticks.as_value()))
        counters = {}
        for name in COUNTERS:
            width = _CYCLE_BITS if name == "cycles" else SLICE
            counters[name] = counter = Signal(unsigned(width), name=f"count_{name}")
            with m.If(clear):
                m.d.sync += counter.eq(0)
            with m.Elif(ticks[name]):
                m.d.sync += counter.eq(counter + 1)
        return counters | {
            "id": regions.MAGIC,
            "digest": int(c.digest[:8], 16),
            "control": 0,
            "status": Cat(self.busy, done, error != 0),
            "error": error,
            "error_at": error_at,
            "layer": self.layer,
            "cycles": counters["cycles"][:SLICE],
            "cycles_high": counters["cycles"][SLICE:],
        }

    def _answer(self, m, read, values):
        """What a read brings, a cycle later; 0 if it was refused."""
        c = self._config
        source, register, answered = Signal.like(read), Signal(SLICE), Signal(SLICE)
        m.d.sync += source.eq(read)
        with m.Switch(self.port.addr[:4]):
            for name, where in regions.REGISTERS.items():
                with m.Case(where.address):
                    m.d.sync += register.eq(values[name])

        plane_part, plane = self._place(Region.PLANES)
        logit_part, logit = self._place(Region.LOGITS)
        unit_bits = ceil_log2(c.units)
        asked = Signal(data.StructLayout({"plane": len(plane_part), "logit": len(logit_part),
                                          "unit": unit_bits}))  # fmt: skip
        word = Signal(SLICE * regions.slices(c)[Region.PLANES])
        total = Signal(signed(SLICE * regions.slices(c)[Region.LOGITS]))
        m.d.sync += [
            asked.plane.eq(plane_part),
            asked.logit.eq(logit_part),
            asked.unit.eq(logit),
        ]
        m.d.comb += [
            self.planes.addr.eq(plane),
            self.planes.en.eq(read[Region.PLANES]),
            self.logits.addr.eq(logit >> unit_bits),
            self.logits.en.eq(read[Region.LOGITS]),
            word.eq(self.planes.data),
            total.eq(self.logits.data[asked.unit]),
            answered.eq(
                _gate(source[Region.REGISTERS], register)
                | _gate(source[Region.PLANES], word.word_select(asked.plane, SLICE))
                | _gate(source[Region.LOGITS], total.as_unsigned().word_select(asked.logit, SLICE))
            ),
            self.port.r_data.eq(answered),
        ]


def _gate(enable, value):
    return value & enable.replicate(len(value))
