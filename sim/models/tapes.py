"""Random tapes of a small core, and the slices that their items write."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator

from lbq_hw.config import CoreConfig, Profile
from lbq_hw.isa import regions, tape
from lbq_hw.isa.tape import TapeItem

CORE = CoreConfig(
    lanes=8, word=8, summary=8, units=2, planes=2, timesteps=2, plane_words=64, weight_rows=24,
    channels=16, logits=8, layers=4, paths=4, segments=8, runs=12, external=16,
    profile=Profile.SPREAD, partial_words=16, partial_bits=12,
)  # fmt: skip
"""A small core; not all of its memories have a power of two of entries."""


def words_of(data: bytes, word_bits: int) -> list[int]:
    """Memory words of a tape."""
    size = word_bits // 8
    return [int.from_bytes(data[i : i + size], "little") for i in range(0, len(data), size)]


def random_items(source: random.Random, config: CoreConfig, passes: int) -> list[TapeItem]:
    """Items of a legal tape with this many passes."""
    slices, entries = regions.slices(config), regions.entries(config)
    items = []
    for done in range(passes):
        for _ in range(source.randint(0, 4)):
            region = source.choice(tape.WRITTEN)
            entry = source.randrange(entries[region])
            part = source.randrange(slices[region]) if region in regions.TABLES else 0
            room = (entries[region] - entry) * slices[region] - part
            count = min(source.choice([0, 1, 3, 20, 100]), room)
            if region not in regions.TABLES:
                count -= count % slices[region]
            address = regions.address(config, region, entry, part)
            payload = tuple(source.getrandbits(32) for _ in range(count))
            items.append(TapeItem(address=address, payload=payload, after=source.randint(0, done)))
        items.append(TapeItem(address=tape.PASS))
    return items


def written(config: CoreConfig, items: Iterable[TapeItem]) -> Iterator[tuple[int, int, int]]:
    """Region, address and data of every slice that items write, in order."""
    for item in items:
        if not item.payload:
            continue
        region, entry, part = tape.entry(config, item)
        for data in item.payload:
            yield int(region), regions.address(config, region, entry, part), data
            part += 1
            if part == regions.slices(config)[region]:
                entry, part = entry + 1, 0
