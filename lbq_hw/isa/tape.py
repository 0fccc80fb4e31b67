"""The tape as bytes: a program as items, in the order in which a core takes them.

A core with external memory reads the tape from there, once per inference. For other cores the host
executes the writes of the tape once, and then all passes may begin.

An item is 32-bit slices, lowest byte first: an address, a count with a pass, the payload, a CRC::

    address   region in bits 31:28, below it entry and slice, as in the host port
    count     slices of payload in bits 15:0; `after` in bits 31:16: the item waits until this many
              passes are done
    payload   slices for consecutive addresses; the last slice of an entry is followed by the first
              slice of the next entry
    CRC-32    as in zlib, of the previous item's CRC-32 (as many of its lowest bytes as a word of
              the memory has), followed by all slices of the item before its CRC

Each item's CRC is seeded with the previous item's CRC, so reordered items, and items of another
tape, are rejected. HEAD comes first, END last; PASS lets one more pass begin. Zeros after END fill
the page.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from lbq_hw.config import CoreConfig
from lbq_hw.isa import regions
from lbq_hw.isa.regions import Region

MAGIC = 0x3254514C  # "LQT2"
NARROW = (10, 11, 12)
"""Address regions of items with rows of narrow weights, one per entry of the core's `narrow_bits`,
the widest first."""
HEAD, PASS, END = (number << regions.SHIFT for number in (13, 14, 15))
"""Addresses of the items that write no memory."""
WRITTEN = (*regions.TABLES, Region.WEIGHTS, Region.PARAMS)
"""Regions that an item may write."""
ITEM_SLICES = 3
"""Slices of an item in addition to its payload: address, count, CRC."""
MOST_SLICES = MOST_PASSES = (1 << 16) - 1


class TapeError(ValueError):
    """The bytes are not a tape, or not a tape for this core."""


@dataclass(frozen=True, kw_only=True)
class TapeItem:
    """`payload` for the slices from `address` on, once `after` passes are done."""

    address: int
    payload: tuple[int, ...] = ()
    after: int = 0

    def encode(self, before: bytes = b"") -> bytes:
        """The item's bytes; `before` are the bytes of the previous CRC, none for HEAD."""
        if len(self.payload) > MOST_SLICES:
            raise ValueError(
                f"an item must have at most {MOST_SLICES} slices, not {len(self.payload)}"
            )
        if self.after > MOST_PASSES:
            raise ValueError(f"a tape must have at most {MOST_PASSES} passes, not {self.after}")
        count = len(self.payload) | self.after << 16
        data = _bytes((self.address, count, *self.payload))
        return data + zlib.crc32(data, zlib.crc32(before)).to_bytes(4, "little")


def row_bits(config: CoreConfig) -> Mapping[int, int]:
    """Weight bits of the rows that an item writes, by the region of its address."""
    return {int(Region.WEIGHTS): config.weight_bits} | dict(
        zip(NARROW, config.narrow_bits, strict=False)
    )


def writes(
    config: CoreConfig,
    region: Region,
    first: int,
    payload: Sequence[int],
    *,
    after: int = 0,
    bits: int | None = None,
) -> Iterator[TapeItem]:
    """Writes of whole entries of a region from `first` on: one item, or several for many slices.

    `bits` per weight, for rows of narrow weights.
    """
    size, number = regions.slices(config)[region], int(region)
    if bits is not None:
        size = regions.row_slices(config, bits)
        number = next(number for number, own in row_bits(config).items() if own == bits)
    step = MOST_SLICES // size
    for entry in range(0, len(payload) // size, step):
        place = regions.address(config, region, first + entry)
        yield TapeItem(
            address=place + (number - region << regions.SHIFT),
            payload=tuple(payload[entry * size : (entry + step) * size]),
            after=after,
        )


def head(config: CoreConfig, slices: int) -> TapeItem:
    """The first item: magic, the core's digest as its register has it, slices up to END's CRC."""
    return TapeItem(address=HEAD, payload=(MAGIC, int(config.digest[:8], 16), slices))


def encode(config: CoreConfig, items: Iterable[TapeItem], *, page_bytes: int = 1024) -> bytes:
    """The whole tape: HEAD, `items`, END, zeros to the end of the page."""
    rest = [*items, TapeItem(address=END)]
    slices = sum(ITEM_SLICES + len(item.payload) for item in (head(config, 0), *rest))
    data = joined(config, [head(config, slices), *rest])
    return data + bytes(-len(data) % page_bytes)


def joined(config: CoreConfig, items: Iterable[TapeItem]) -> bytes:
    """The first items of a tape as bytes, with chained CRCs."""
    data = bytearray()
    for item in items:
        data += item.encode(_before(config, data, len(data)))
    return bytes(data)


def _before(config: CoreConfig, data: bytes | bytearray, place: int) -> bytes:
    """The bytes of the previous CRC, with which the CRC of the item at `place` is seeded."""
    return bytes(data[place - 4 : place][: config.external // 8]) if place else b""


def decode(config: CoreConfig, data: bytes) -> Iterator[TapeItem]:
    """The items between HEAD and END, with the checks of the core; TapeError where it would refuse.

    Items before an error are still returned, because the core, too, has executed them by then.
    """
    place = slices = passes = 0
    while True:
        item, place = _item(data, place, _before(config, data, place))
        kind = item.address >> regions.SHIFT
        if item.address in (PASS, END) and (item.payload or item.after):
            raise TapeError("PASS and END must have neither payload nor pass to wait for")
        if item.after > passes:
            raise TapeError(f"an item waits for pass {item.after - 1}, which comes after it")
        if (item.address == HEAD) != (not slices):
            raise TapeError("HEAD must be the first item, and no other")
        if item.address == HEAD:
            if not item.payload or item.payload != head(config, item.payload[-1]).payload:
                raise TapeError("the tape is for another core")
            slices = item.payload[-1]
            continue
        if item.address == END:
            if place != 4 * slices:
                raise TapeError(f"END must end at slice {slices}, not {place // 4}")
            return
        if item.address == PASS:
            passes += 1
            if passes > MOST_PASSES:
                raise TapeError(f"a tape must have at most {MOST_PASSES} passes")
        elif kind not in (*WRITTEN, *row_bits(config)):
            raise TapeError(f"an item must not have address {item.address:#010x}")
        else:
            _check_place(config, item)
        yield item


def check_ends(config: CoreConfig, data: bytes) -> None:
    """TapeError unless the tape begins with HEAD for this core, has END where HEAD says, and has
    only whole slices of zeros after it. The items in between are not checked.
    """
    item, _ = _item(data, 0, b"")
    if item.address != HEAD:
        raise TapeError("HEAD must be the first item, and no other")
    if not item.payload or item.payload != head(config, item.payload[-1]).payload:
        raise TapeError("the tape is for another core")
    end, last = 4 * item.payload[-1], TapeItem(address=END).encode()
    if end > len(data) or data[max(end - len(last), 0) : max(end - 4, 0)] != last[:-4]:
        raise TapeError(f"END must end at slice {item.payload[-1]}")
    if len(data) % 4 or data.count(0, end) < len(data) - end:
        raise TapeError(f"after END, from slice {item.payload[-1]} on, all slices must be 0")


def entry(config: CoreConfig, item: TapeItem) -> tuple[Region, int, int]:
    """Region, entry and slice where the payload of an item begins."""
    number = item.address >> regions.SHIFT
    region = Region.WEIGHTS if number in row_bits(config) else Region(number)
    bits = (regions.slices(config)[region] - 1).bit_length()
    below = item.address & ((1 << regions.SHIFT) - 1)
    return region, below >> bits, below & ((1 << bits) - 1)


def entry_slices(config: CoreConfig, item: TapeItem) -> int:
    """Slices of each entry that an item writes."""
    number, widths = item.address >> regions.SHIFT, row_bits(config)
    if number in widths:
        return regions.row_slices(config, widths[number])
    return regions.slices(config)[Region(number)]


def _check_place(config: CoreConfig, item: TapeItem) -> None:
    """Refuse a payload that leaves its region, or has only part of a weight row or parameter."""
    region, first, part = entry(config, item)
    size = entry_slices(config, item)
    end = first * size + part + len(item.payload)
    if part >= size or end > size * regions.entries(config)[region]:
        raise TapeError(
            f"an item of {len(item.payload)} slices at {item.address:#010x} leaves its region"
        )
    if region in (Region.WEIGHTS, Region.PARAMS) and (part or len(item.payload) % size):
        raise TapeError(
            f"an item of {len(item.payload)} slices at {item.address:#010x} has a part of an entry"
        )


def _item(data: bytes, place: int, before: bytes) -> tuple[TapeItem, int]:
    address, count = _slices(data, place, 2)
    size = 2 + (count & 0xFFFF)
    slices = _slices(data, place, size + 1)
    end = place + 4 * size
    if slices[-1] != zlib.crc32(data[place:end], zlib.crc32(before)):
        raise TapeError(f"the item at byte {place} has a wrong CRC")
    item = TapeItem(address=address, payload=slices[2:-1], after=count >> 16)
    return item, end + 4


def _slices(data: bytes, place: int, count: int) -> tuple[int, ...]:
    if place + 4 * count > len(data):
        raise TapeError(f"the tape ends within the item at byte {place}")
    return struct.unpack_from(f"<{count}I", data, place)


def _bytes(slices: Sequence[int]) -> bytes:
    return struct.pack(f"<{len(slices)}I", *slices)
