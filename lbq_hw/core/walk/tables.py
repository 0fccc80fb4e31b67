"""The program's tables in memory: written by the 32-bit slice, read by the slice or whole."""

from amaranth import Cat, Module, Mux, Value
from amaranth.lib import data, enum, memory, stream, wiring
from amaranth.lib.wiring import In, Out

from lbq_hw import isa
from lbq_hw.config import CoreConfig, address_bits
from lbq_hw.core.fabric.hints import APART, small_memory
from lbq_hw.core.walk import records
from lbq_hw.isa.record import SLICE, Record

__all__ = ["RecordSlice", "RecordTable", "SliceTable", "Table", "slice_stream"]


class Table(enum.Enum, shape=2):
    """The tables of the program, as in `isa.TABLES`."""

    LAYERS = 0
    PATHS = 1
    SEGMENTS = 2
    RUNS = 3

    @property
    def kind(self) -> str:
        """The table's name in `isa.TABLES` and in a `CoreConfig`."""
        return self.name.lower()

    @property
    def record(self) -> Record:
        return isa.TABLES[self.kind]

    def part_bits(self, config: CoreConfig) -> int:
        """Low bits of an address that select the slice; the upper bits select the record."""
        return (self.record.slices(config) - 1).bit_length()

    def bits(self, config: CoreConfig) -> int:
        """Bits of a slice's address."""
        return address_bits(getattr(config, self.kind)) + self.part_bits(config)


class RecordSlice(data.StructLayout):
    """One slice of a record to be stored.

    Members
    -------
    table : `Table`
    address : unsigned
        Address of the slice in its region of the host port; it must exist.
    data : unsigned
    """

    def __init__(self, config: CoreConfig):
        bits = max(table.bits(config) for table in Table)
        super().__init__({"table": Table, "address": bits, "data": SLICE})


def slice_stream(config: CoreConfig) -> stream.Signature:
    """Stream of `RecordSlice` that is always ready."""
    return stream.Signature(RecordSlice(config), always_ready=True)


class SliceTable(wiring.Component):
    """The tables whose records are read one slice after the other, in one narrow memory.

    Timing. Reads take one cycle. A slice that is stored in cycle c is read from cycle c + 1 on.

    Parameters
    ----------
    config : `CoreConfig`
    layers, paths : iterable of int
        Records after configuration; records left out are 0.

    Members
    -------
    i_record : stream of `RecordSlice`, always ready
    layers, paths : read ports of a slice, addressed as in the host port
        ``layers`` wins if both are enabled. Both show the data of the last read.
    """

    def __init__(self, config: CoreConfig, *, layers=(), paths=()):
        self._config = config
        self._init = {Table.LAYERS: list(layers), Table.PATHS: list(paths)}

        def port(table):
            bits = table.bits(config)
            return Out(memory.ReadPort.Signature(addr_width=bits, shape=SLICE))

        super().__init__(
            {
                "i_record": In(slice_stream(config)),
                "layers": port(Table.LAYERS),
                "paths": port(Table.PATHS),
            }
        )

    def elaborate(self, _platform):
        m = Module()
        c = self._config
        half = 1 << max(table.bits(c) for table in self._init)  # the paths' first address
        init = []
        for table, words in self._init.items():
            parts = range(1 << table.part_bits(c))
            init += [0] * (half - len(init) if words and table == Table.PATHS else 0)
            init += [word >> SLICE * i & (1 << SLICE) - 1 for word in words for i in parts]
        m.submodules.memory = store = memory.Memory(
            shape=SLICE,
            depth=half + (c.paths << Table.PATHS.part_bits(c)),
            init=init,
            attrs=APART,
        )
        read, write, given = store.read_port(), store.write_port(), self.i_record.payload
        in_paths = given.table == Table.PATHS
        m.d.comb += [
            write.addr.eq(Mux(in_paths, given.address | half, given.address)),
            write.data.eq(given.data),
            write.en.eq(self.i_record.valid & ((given.table == Table.LAYERS) | in_paths)),
            read.addr.eq(Mux(self.layers.en, self.layers.addr, self.paths.addr | half)),
            read.en.eq(self.layers.en | self.paths.en),
            self.layers.data.eq(read.data),
            self.paths.data.eq(read.data),
        ]
        return m


class RecordTable(wiring.Component):
    """A table whose records are read whole: one memory per slice.

    Timing. Reads take one cycle. A slice that is stored in cycle c is read from cycle c + 1 on.

    Parameters
    ----------
    config : `CoreConfig`
    table : `Table`
    init : iterable of int
        Records after configuration; records left out are 0.

    Members
    -------
    i_record : stream of `RecordSlice`, always ready
    read : read port of a record, with the layout `records.layout`
    """

    def __init__(self, config: CoreConfig, table: Table, init=()):
        self._config = config
        self._table = table
        self._init = list(init)
        port = memory.ReadPort.Signature(
            addr_width=address_bits(getattr(config, table.kind)),
            shape=records.layout(table.record, config),
        )
        super().__init__({"i_record": In(slice_stream(config)), "read": Out(port)})

    def elaborate(self, platform):
        m = Module()
        c, table, given = self._config, self._table, self.i_record.payload
        width, part_bits = table.record.width(c), table.part_bits(c)
        depth, slices = getattr(c, table.kind), []
        # The address of a run arrives too late in its cycle for a memory made of many LUTs.
        attrs = APART if table == Table.RUNS else small_memory(c, platform, depth)
        for part in range(table.record.slices(c)):
            low = SLICE * part
            bits = min(SLICE, width - low)
            m.submodules[f"slice_{part}"] = store = memory.Memory(
                shape=bits,
                depth=depth,
                init=[word >> low & ((1 << bits) - 1) for word in self._init],
                attrs=attrs,
            )
            read, write = store.read_port(), store.write_port()
            here = (given.table == table) & (given.address[:part_bits] == part)
            m.d.comb += [
                write.addr.eq(given.address >> part_bits),
                write.data.eq(given.data),
                write.en.eq(self.i_record.valid & here),
                read.addr.eq(self.read.addr),
                read.en.eq(self.read.en),
            ]
            slices.append(read.data)
        m.d.comb += Value.cast(self.read.data).eq(Cat(slices))
        return m
