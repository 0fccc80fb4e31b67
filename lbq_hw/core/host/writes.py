"""Turns the host's 32-bit writes into writes of the core's memories."""

from amaranth import Cat, Module, Signal, signed
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from lbq_hw import isa
from lbq_hw.config import CoreConfig
from lbq_hw.core.fabric.contracts import at_most_one, must
from lbq_hw.core.host.addresses import place
from lbq_hw.core.payload import PlaneWrite
from lbq_hw.core.walk.tables import Table, slice_stream
from lbq_hw.isa import regions
from lbq_hw.isa.record import SLICE
from lbq_hw.isa.regions import Region

__all__ = [
    "HostWrites",
    "PlaneWrites",
    "host_regions",
    "host_writes",
    "store_params",
    "store_records",
]

_TABLES = {region: Table[region.name] for region in regions.TABLES}


def host_regions(config: CoreConfig) -> tuple[Region, ...]:
    """Regions that the host can write, except the registers."""
    if config.external:
        return (Region.PLANES, Region.MEMORY)
    return (*_TABLES, Region.WEIGHTS, Region.PARAMS, Region.PLANES)


class HostWrites(wiring.Component):
    """Turns writes of slices into writes of the memories.

    A slice is stored in the cycle in which it is given. Parameters are the exception: each value is
    stored with its last slice.

    Members
    -------
    written : in, one bit per region of the core
        A slice is written there; at most one bit is set.
    addr, data : in
        Address of the slice, which must exist, and its value.
    records, weights, params, plane_write : out
        As in `HostPort`.
    """

    def __init__(self, config: CoreConfig):
        self._config = c = config
        plane = PlaneWrite(word=c.word, granule=c.granule, address_bits=c.plane_address_bits)
        super().__init__(
            {"written": In(len(regions.reached(c))), "addr": In(32), "data": In(SLICE)}
            | self._program()
            | {"plane_write": Out(stream.Signature(plane, always_ready=True))}
        )

    def _program(self):
        """Members that write a program."""
        c = self._config
        row = data.ArrayLayout(signed(c.weight_bits), c.lanes)
        param = data.ArrayLayout(signed(c.membrane_bits), len(isa.parameters(c)) * c.units)
        weights = memory.WritePort.Signature(
            addr_width=ceil_log2(c.weight_rows), shape=row, granularity=1
        )
        params = memory.WritePort.Signature(
            addr_width=ceil_log2(c.channels // c.units), shape=param, granularity=1
        )
        return {"records": Out(slice_stream(c)), "weights": In(weights), "params": In(params)}

    def elaborate(self, platform):
        m = Module()
        self._store_program(m)
        self._store_planes(m)
        must(m, platform, at_most_one(self.written), "a slice is written to two regions")
        return m

    def _store_program(self, m):
        given = {"written": self.written, "addr": self.addr, "value": self.data}
        store_records(m, self.records, **given)
        self._store_weights(m)
        store_params(m, self._config, self.params, **given)

    def _store_weights(self, m):
        """Write some lanes of a weight row."""
        c, word = self._config, self.data
        part, entry = place(c, self.addr, Region.WEIGHTS)
        each = regions.weight_slice_lanes(c)
        m.d.comb += self.weights.addr.eq(entry)
        for lane in range(c.lanes):
            low = lane % each * c.weight_bits
            m.d.comb += [
                self.weights.data[lane].eq(word[low : low + c.weight_bits]),
                self.weights.en[lane].eq(self.written[Region.WEIGHTS] & (part == lane // each)),
            ]

    def _store_planes(self, m):
        """Write a slice of a plane word."""
        c, word = self._config, self.data
        part, entry = place(c, self.addr, Region.PLANES)
        plane = self.plane_write.payload
        granules = len(plane.enable) // regions.slices(c)[Region.PLANES]
        m.d.comb += [
            self.plane_write.valid.eq(self.written[Region.PLANES]),
            plane.addr.eq(entry),
            plane.data.eq(word.replicate(-(-c.word // SLICE))),
            plane.first.eq(part == 0),
        ]
        for number, enable in enumerate(plane.enable):
            m.d.comb += enable.eq(part == number // granules)


class PlaneWrites(HostWrites):
    """As `HostWrites`, for a core with external memory: the host writes only planes.

    `TapeWrites` writes everything else from the tape; `MemoryAccess` gives the host access to the
    external memory.
    """

    def _program(self):
        return {}

    def _store_program(self, _m):
        pass


def host_writes(config: CoreConfig) -> type[HostWrites]:
    """The class of `HostWrites` for a core."""
    return PlaneWrites if config.external else HostWrites


def store_records(m, records, *, written, addr, value):
    """Write a slice of a record into a stream of `RecordSlice`."""
    m.d.comb += [
        records.valid.eq(Cat(written[kind] for kind in _TABLES).any()),
        records.payload.address.eq(addr),
        records.payload.data.eq(value),
    ]
    for kind, table in _TABLES.items():
        with m.If(written[kind]):
            m.d.comb += records.payload.table.eq(table)


def store_params(m, config, params, *, written, addr, value):
    """Write the values of a parameter, each with its last slice, into their memory."""
    part, entry = place(config, addr, Region.PARAMS)
    slots, slices = isa.PARAM.slots(config), regions.slices(config)[Region.PARAMS]
    before = Signal((slices - 1) * SLICE)  # the slices before this one
    bits = Cat(before, value)
    with m.If(written[Region.PARAMS]):
        m.d.sync += before.eq(bits[SLICE:])
    unit_bits = ceil_log2(config.units)
    m.d.comb += params.addr.eq(entry >> unit_bits)
    names = isa.parameters(config)
    for number, slot in enumerate(slots[name] for name in names):
        first_bit = slot.offset + (slices - 1 - slot.last_slice) * SLICE
        stored = written[Region.PARAMS] & (part == slot.last_slice)
        for unit in range(config.units):
            m.d.comb += [
                params.data[len(names) * unit + number].eq(bits[first_bit:][: slot.width]),
                params.en[len(names) * unit + number].eq(stored & (entry[:unit_bits] == unit)),
            ]
