"""Address decoding of the host port; `lbq_hw.isa.regions` has the map."""

from amaranth import Cat, Value
from amaranth.utils import ceil_log2

from lbq_hw.config import CoreConfig
from lbq_hw.isa import regions
from lbq_hw.isa.regions import Region

__all__ = ["exists", "place", "used_bits"]


def place(config: CoreConfig, addr: Value, kind: Region) -> tuple[Value, Value]:
    """The slice and the entry of an address in a region."""
    part_bits = _part_bits(config, kind)
    return addr[:part_bits], addr[part_bits : regions.SHIFT]


def used_bits(config: CoreConfig) -> int:
    """Number of low address bits that select anything within a region."""
    return max(_bits(config, kind) for kind in regions.reached(config))


def exists(config: CoreConfig, addr: Value, in_region: list[Value]) -> Value:
    """Whether an address exists; `in_region` is its region, one bit per region."""
    slices, entries, reached = (
        regions.slices(config),
        regions.entries(config),
        regions.reached(config),
    )
    used = {kind: _bits(config, kind) for kind in reached}
    low, high = addr[: used_bits(config)], addr[used_bits(config) :]
    nowhere = high[: regions.SHIFT - len(low)].any()
    found = []
    for kind in reached:
        part, entry = place(config, addr, kind)
        bits = ceil_log2(entries[kind])
        there = ~(nowhere | low[used[kind] :].any())
        if entries[kind] < 1 << bits:
            there &= entry[:bits] < entries[kind]
        if slices[kind] < 1 << len(part):
            there &= part < slices[kind]
        found.append(in_region[kind] & there)
    return Cat(found).any()


def _bits(config: CoreConfig, kind: Region) -> int:
    """Number of address bits of a region."""
    return _part_bits(config, kind) + ceil_log2(regions.entries(config)[kind])


def _part_bits(config: CoreConfig, kind: Region) -> int:
    return (regions.slices(config)[kind] - 1).bit_length()
