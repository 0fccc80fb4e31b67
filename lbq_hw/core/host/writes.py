"""What the host writes, on its way to the block that stores it."""

from amaranth import Cat, Module, Signal, signed
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from lbq_hw import isa
from lbq_hw.config import CoreConfig
from lbq_hw.core.host.addresses import place
from lbq_hw.core.payload import PlaneWrite
from lbq_hw.core.walk.tables import Table, slice_stream
from lbq_hw.isa import regions
from lbq_hw.isa.record import SLICE
from lbq_hw.isa.regions import Region

__all__ = ["HostWrites"]

_TABLES = {region: Table[region.name] for region in regions.TABLES}


class HostWrites(wiring.Component):
    """Turns writes of slices into writes of the memories.

    Slices are stored at once, in the cycle in which they are given, but for those of a parameter,
    which wait for the last one.

    Members
    -------
    written : in, one bit per `Region`
        A slice is written there; at most one bit is set.
    addr, data : in
        The slice, which exists, and its value.
    records, weights, params, plane_write : out
        As in `HostPort`.
    """

    REGIONS = (*_TABLES, Region.WEIGHTS, Region.PARAMS, Region.PLANES)
    """Regions that can be written, but for the registers."""

    def __init__(self, config: CoreConfig):
        self._config = c = config
        row = data.ArrayLayout(signed(c.weight_bits), c.lanes)
        param = data.ArrayLayout(signed(c.membrane_bits), 3 * c.units)
        plane = PlaneWrite(word=c.word, granule=c.granule, address_bits=c.plane_address_bits)
        weights = memory.WritePort.Signature(
            addr_width=ceil_log2(c.weight_rows), shape=row, granularity=1
        )
        params = memory.WritePort.Signature(
            addr_width=ceil_log2(c.channels // c.units), shape=param, granularity=1
        )
        super().__init__(
            {
                "written": In(len(Region)),
                "addr": In(32),
                "data": In(SLICE),
                "records": Out(slice_stream(c)),
                "weights": In(weights),
                "params": In(params),
                "plane_write": Out(stream.Signature(plane, always_ready=True)),
            }
        )

    def elaborate(self, _platform):
        m = Module()
        self._store_records(m)
        self._store_weights(m)
        self._store_params(m)
        self._store_planes(m)
        return m

    def _store_records(self, m):
        """A slice of a record."""
        m.d.comb += [
            self.records.valid.eq(Cat(self.written[kind] for kind in _TABLES).any()),
            self.records.payload.address.eq(self.addr),
            self.records.payload.data.eq(self.data),
        ]
        for kind, table in _TABLES.items():
            with m.If(self.written[kind]):
                m.d.comb += self.records.payload.table.eq(table)

    def _store_weights(self, m):
        """Some lanes of a weight row."""
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

    def _store_params(self, m):
        """A parameter, once all of its slices are there."""
        c, word = self._config, self.data
        part, entry = place(c, self.addr, Region.PARAMS)
        slots, slices = isa.PARAM.slots(c), regions.slices(c)[Region.PARAMS]
        stage = Signal((slices - 1) * SLICE)  # of a parameter, all slices but the last
        bits = Cat(stage, word)
        with m.If(self.written[Region.PARAMS]):
            m.d.sync += stage.eq(bits[SLICE:])
        unit_bits = ceil_log2(c.units)
        stored = self.written[Region.PARAMS] & (part == slices - 1)
        m.d.comb += self.params.addr.eq(entry >> unit_bits)
        for unit in range(c.units):
            for number, slot in enumerate(slots[name] for name in ("bias", "theta", "reset")):
                m.d.comb += [
                    self.params.data[3 * unit + number].eq(bits[slot.offset :][: slot.width]),
                    self.params.en[3 * unit + number].eq(stored & (entry[:unit_bits] == unit)),
                ]

    def _store_planes(self, m):
        """A slice of a plane word."""
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
