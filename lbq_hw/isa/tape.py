"""The tape as bytes: items in the order in which the core takes them.

An item is 32-bit slices, lowest byte first: an address, a count with a pass, the payload, a CRC::

    address   region in bits 31:28, below it entry and slice, as in the host port
    count     slices of payload in bits 15:0; `after` in bits 31:16: the item waits until this many
              passes are done
    payload   slices, each for the address after the one before; behind the last slice of an entry
              comes the first of the next
    CRC-32    of all slices before it in the item, as in zlib

HEAD comes first, END last; PASS lets one more pass begin. Behind END zeros fill the page.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lbq_hw.config import CoreConfig
from lbq_hw.isa import regions
from lbq_hw.isa.regions import Region

MAGIC = 0x3154514C  # "LQT1"
HEAD, PASS, END = (number << regions.SHIFT for number in (13, 14, 15))
"""Addresses of the items that write no memory."""
WRITTEN = (*regions.TABLES, Region.WEIGHTS, Region.PARAMS)
"""Regions that an item may write."""
MOST_SLICES = MOST_PASSES = (1 << 16) - 1


class TapeError(ValueError):
    """Bytes that are no tape, or not one for this core."""


@dataclass(frozen=True, kw_only=True)
class TapeItem:
    """`payload` for the slices from `address` on, once `after` passes are done."""

    address: int
    payload: tuple[int, ...] = ()
    after: int = 0

    def encode(self) -> bytes:
        if len(self.payload) > MOST_SLICES:
            raise ValueError(
                f"an item must have at most {MOST_SLICES} slices, not {len(self.payload)}"
            )
        if self.after > MOST_PASSES:
            raise ValueError(f"a tape must have at most {MOST_PASSES} passes, not {self.after}")
        count = len(self.payload) | self.after << 16
        data = _bytes((self.address, count, *self.payload))
        return data + zlib.crc32(data).to_bytes(4, "little")


def head(config: CoreConfig, slices: int) -> TapeItem:
    """The first item: magic, the core's digest as its register has it, slices up to END's CRC."""
    return TapeItem(address=HEAD, payload=(MAGIC, int(config.digest[:8], 16), slices))


def encode(config: CoreConfig, items: Sequence[TapeItem], *, page_bytes: int = 1024) -> bytes:
    """The whole tape: HEAD, `items`, END, zeros to the end of the page."""
    body = b"".join(item.encode() for item in (*items, TapeItem(address=END)))
    first = len(head(config, 0).encode())
    data = head(config, (first + len(body)) // 4).encode() + body
    return data + bytes(-len(data) % page_bytes)


def decode(config: CoreConfig, data: bytes) -> Iterator[TapeItem]:
    """The items between HEAD and END, each checked as the core does; TapeError for what it refuses.

    What comes before an error has been given: the core, too, has executed it by then.
    """
    place = slices = passes = 0
    while True:
        item, place = _item(data, place)
        kind = item.address >> regions.SHIFT
        if item.address in (PASS, END) and (item.payload or item.after):
            raise TapeError("PASS and END must have neither payload nor pass to wait for")
        if (item.address == HEAD) != (not slices):
            raise TapeError("HEAD must be the first item, and no other")
        if item.address == HEAD:
            slices = item.payload[-1] if item.payload else 0
            if item != head(config, slices):
                raise TapeError("the tape is for another core")
            continue
        if item.address == END:
            if place != 4 * slices:
                raise TapeError(f"END must end at slice {slices}, not {place // 4}")
            return
        if item.address == PASS:
            passes += 1
        elif kind not in WRITTEN:
            raise TapeError(f"an item must not have address {item.address:#010x}")
        else:
            _check_place(config, Region(kind), item)
        if item.after > passes:
            raise TapeError(f"an item waits for pass {item.after - 1}, which comes after it")
        yield item


def _check_place(config: CoreConfig, region: Region, item: TapeItem) -> None:
    """Refuse slices that the region does not have, and parts of a row or parameter."""
    parts = regions.slices(config)[region]
    part_bits = (parts - 1).bit_length()
    entry, part = divmod(item.address - (region << regions.SHIFT), 1 << part_bits)
    last = entry * parts + part + max(0, len(item.payload) - 1)
    if part >= parts or entry >= regions.entries(config)[region]:
        raise TapeError(f"{region.name} has no slice at {item.address:#010x}")
    if last >= regions.entries(config)[region] * parts:
        raise TapeError(f"{region.name} has fewer slices than the item at {item.address:#010x}")
    if region not in regions.TABLES and (part or len(item.payload) % parts):
        raise TapeError(f"the item at {item.address:#010x} must have whole entries")


def _item(data: bytes, place: int) -> tuple[TapeItem, int]:
    address, count = _slices(data, place, 2)
    size = 2 + (count & 0xFFFF)
    slices = _slices(data, place, size + 1)
    end = place + 4 * size
    if slices[-1] != zlib.crc32(data[place:end]):
        raise TapeError(f"the item at byte {place} has a wrong CRC")
    item = TapeItem(address=address, payload=tuple(slices[2:-1]), after=count >> 16)
    return item, end + 4


def _slices(data: bytes, place: int, count: int) -> list[int]:
    end = place + 4 * count
    if end > len(data):
        raise TapeError(f"the tape ends within the item at byte {place}")
    return [int.from_bytes(data[i : i + 4], "little") for i in range(place, end, 4)]


def _bytes(slices: Sequence[int]) -> bytes:
    return b"".join(value.to_bytes(4, "little") for value in slices)
