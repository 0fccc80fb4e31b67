"""Records: fields side by side in one word, with widths and bounds that a `CoreConfig` gives.

The first field lies in the lowest bits. Encoders, decoders, the RTL's layouts and its checks of
legality all come from the same `Record`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from lbq_hw.config import CoreConfig

Number = int | Callable[[CoreConfig], int]
SLICE = 32  # bits that one read or write of the host port carries


def number_of(number: Number, config: CoreConfig) -> int:
    """A number, computed from the `CoreConfig` if it is a function."""
    return number if isinstance(number, int) else number(config)


@dataclass(frozen=True, kw_only=True)
class Field:
    """One field: unsigned 0..`most`, or any signed number of `signed_bits` bits.

    An unsigned field has the bits that `most` needs, and at least `bits`. A field that can only be
    0 has no bits, so that a core without an ability has no registers for it.
    """

    name: str
    meaning: str
    most: Number = 1
    signed_bits: Number = 0
    bits: int = 0

    @property
    def signed(self) -> bool:
        return self.signed_bits != 0

    def width(self, config: CoreConfig) -> int:
        if self.signed:
            return number_of(self.signed_bits, config)
        return max(self.bits, number_of(self.most, config).bit_length())

    def largest(self, config: CoreConfig) -> int:
        """The largest legal value; the width may hold more."""
        if self.signed:
            return max(0, (1 << self.width(config) >> 1) - 1)
        return number_of(self.most, config)

    def least(self, config: CoreConfig) -> int:
        return -(1 << self.width(config) >> 1) if self.signed else 0


@dataclass(frozen=True, kw_only=True)
class Slot:
    """Where a field lies in its record."""

    field: Field
    offset: int
    width: int

    @property
    def last_slice(self) -> int:
        """The slice of the record that has the field's last bit."""
        return (self.offset + self.width - 1) // SLICE


@dataclass(frozen=True)
class Record:
    """A record kind: its fields, lowest bits first. `ordered` pairs must not descend."""

    name: str
    meaning: str
    fields: tuple[Field, ...]
    ordered: tuple[tuple[str, str], ...] = ()

    def slots(self, config: CoreConfig) -> Mapping[str, Slot]:
        return _slots(self, config)

    def width(self, config: CoreConfig) -> int:
        return sum(slot.width for slot in self.slots(config).values())

    def slices(self, config: CoreConfig) -> int:
        """Number of 32-bit writes per record."""
        return -(-self.width(config) // SLICE)

    def encode(self, config: CoreConfig, values: Mapping[str, int]) -> int:
        """Pack every field; ValueError for a value that its field cannot hold."""
        slots = self.slots(config)
        if set(values) != set(slots):
            odd = ", ".join(sorted(set(values) ^ set(slots)))
            raise ValueError(f"a {self.name} record must have exactly its fields, not {odd}")
        word = 0
        for name, slot in slots.items():
            value = int(values[name])
            low, high = slot.field.least(config), slot.field.largest(config)
            if not low <= value <= high:
                raise ValueError(f"{self.name}.{name} must be {low}..{high}, not {value}")
            word |= (value & ((1 << slot.width) - 1)) << slot.offset
        return word

    def decode(self, config: CoreConfig, word: int) -> dict[str, int]:
        """Unpack every field, legal or not."""
        values = {}
        for name, slot in self.slots(config).items():
            value = word >> slot.offset & ((1 << slot.width) - 1)
            if value > slot.field.largest(config) and slot.field.signed:
                value -= 1 << slot.width
            values[name] = value
        return values

    def violations(self, config: CoreConfig, values: Mapping[str, int]) -> list[str]:
        """One sentence per rule that these values break; the core applies the same rules."""
        found = [
            f"{self.name}.{name} must be at most {slot.field.largest(config)}, not {values[name]}"
            for name, slot in self.slots(config).items()
            if values[name] > slot.field.largest(config)
        ]
        return found + [
            f"{self.name}.{first} must not be above {last}, not {values[first]} > {values[last]}"
            for first, last in self.ordered
            if values[first] > values[last]
        ]


@lru_cache(maxsize=256)
def _slots(record: Record, config: CoreConfig) -> Mapping[str, Slot]:
    slots, offset = {}, 0
    for field in record.fields:
        slots[field.name] = Slot(field=field, offset=offset, width=field.width(config))
        offset += field.width(config)
    return slots
