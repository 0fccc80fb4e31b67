"""Records of `lbq_hw.isa` as the hardware sees them: layouts and legality."""

from collections.abc import Iterable

from amaranth import Cat, Const, Value, signed, unsigned
from amaranth.lib import data

from lbq_hw.config import CoreConfig
from lbq_hw.isa.record import Record

__all__ = ["illegal", "layout"]


def layout(
    record: Record, config: CoreConfig, names: Iterable[str] | None = None
) -> data.StructLayout:
    """Layout of some fields of a record, in the given order; by default of the whole record."""
    slots = record.slots(config)
    return data.StructLayout(
        {
            name: (signed if slot.field.signed and slot.width else unsigned)(slot.width)
            for name, slot in ((name, slots[name]) for name in names or slots)
        }
    )


def illegal(record: Record, config: CoreConfig, view: data.View) -> Value:
    """1 where the fields in `view` break a rule of `Record.violations`."""
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
