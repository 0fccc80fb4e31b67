"""Records of `lbq_hw.isa` as the hardware sees them: layouts, legality, and the tables' write."""

from collections.abc import Iterable

from amaranth import Cat, Const, Value, signed, unsigned
from amaranth.lib import data, enum, memory, stream

from lbq_hw import isa
from lbq_hw.config import CoreConfig, address_bits

__all__ = ["APART", "RecordWrite", "Table", "attach", "illegal", "layout", "record_stream"]

APART = {"no_rw_check": 1}
"""Of memories that are never read where they are written: spares the logic that would compare."""


class Table(enum.Enum, shape=2):
    """The tables of the program, in the order of `isa.TABLES`."""

    LAYERS = 0
    PATHS = 1
    SEGMENTS = 2
    RUNS = 3


class RecordWrite(data.StructLayout):
    """A record to be stored.

    Members
    -------
    table : `Table`
    entry : unsigned
        Index of the record. One that the table does not have is ignored.
    data : unsigned
        The record as `isa.Record.encode` packs it.
    """

    def __init__(self, config: CoreConfig):
        entries = max(getattr(config, name) for name in isa.TABLES)
        widths = [record.width(config) for record in isa.TABLES.values()]
        super().__init__({"table": Table, "entry": address_bits(entries), "data": max(widths)})


def record_stream(config: CoreConfig) -> stream.Signature:
    """Stream of `RecordWrite` that is always ready."""
    return stream.Signature(RecordWrite(config), always_ready=True)


def layout(record: isa.Record, config: CoreConfig, names: Iterable[str]) -> data.StructLayout:
    """Some fields of a record, in the given order."""
    slots = record.slots(config)
    return data.StructLayout(
        {
            name: (signed if slots[name].field.signed else unsigned)(slots[name].width)
            for name in names
        }
    )


def attach(m, records, table: Table, config: CoreConfig, names: Iterable[str]) -> memory.Memory:
    """A memory with these fields of every record of a table, written by the stream `records`."""
    kind = list(isa.TABLES)[table.value]
    record, depth = isa.TABLES[kind], getattr(config, kind)
    names = tuple(names)
    store = memory.Memory(shape=layout(record, config, names), depth=depth, init=[], attrs=APART)
    port = store.write_port()
    write = records.payload
    slots = record.slots(config)
    fields = [write.data[slots[n].offset : slots[n].offset + slots[n].width] for n in names]
    m.d.comb += [
        port.addr.eq(write.entry),
        Value.cast(port.data).eq(Cat(fields)),
        port.en.eq(records.valid & (write.table == table) & (write.entry < depth)),
    ]
    return store


def illegal(record: isa.Record, config: CoreConfig, view: data.View) -> Value:
    """1 where the fields in `view` break a rule of `isa.Record.violations`."""
    names = [name for name, _ in view.shape()]
    found = [Const(0)]
    for name, slot in record.slots(config).items():
        largest = slot.field.largest(config)
        if name in names and not slot.field.signed and largest < (1 << slot.width) - 1:
            found.append(view[name] > largest)
    for first, last in record.ordered:
        if first in names and last in names:
            found.append(view[first] > view[last])
    return Cat(found).any()
