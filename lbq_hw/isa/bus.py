"""The address map of a core on a bus: the regions of `lbq_hw.isa.regions`, packed into a few
hundred kilobytes.

A bus address counts bytes. From the top, it has four bits for the region, the address within the
region (as many bits as the core's largest region needs), and two bits for the byte, which are 0.
External memory is not in this map, because it belongs to the user's design. The last region has the
registers of the bus side.
"""

from __future__ import annotations

from collections.abc import Mapping

from lbq_hw.config import CoreConfig
from lbq_hw.isa import regions
from lbq_hw.isa.record import SLICE
from lbq_hw.isa.regions import Region, Register

REGION_BITS = 4
BYTE_BITS = (SLICE // 8 - 1).bit_length()
"""Bits of an address that name a byte of a slice."""
BUS = (1 << REGION_BITS) - 1
"""The region of the bus side's own registers."""
RESERVED = {"memory", "digest_first", "digest_slices", "digest_crc", "test_last", "test_differing",
            "captures"}  # fmt: skip
"""Registers of a core with external memory that have no use where its controller is the user's."""

REGISTERS = {
    name: Register(name=name, address=address, access=access, meaning=meaning)
    for address, (name, access, meaning) in enumerate(
        (
            (
                "ended",
                "rw",
                "bit 0: a run has ended since this bit was cleared; writing 1 clears it",
            ),
            ("interrupt", "rw", "bit 0: the line irq is 1 while bit 0 of `ended` is"),
            (
                "source",
                "rw",
                "bit 0: pixels come from the register `pixels`, else from the stream; writing "
                "drops the pixels of an unfinished input",
            ),
            (
                "pixels",
                "w",
                "the next pixels, packed without gaps, lowest bits first; the last one of an input "
                "starts a run; refused while a run is under way, or if `source` is 0",
            ),
            ("inputs", "r", "inputs that came as pixels and were run to their end, modulo 2**32"),
        )
    )
}
"""Of the bus side."""


def reached(config: CoreConfig) -> tuple[Region, ...]:
    """The regions of a core that a bus reaches."""
    return tuple(region for region in regions.reached(config) if region != Region.MEMORY)


def registers(config: CoreConfig) -> Mapping[str, Register]:
    """The registers of a core that a bus has a use for."""
    return {
        name: register
        for name, register in regions.registers(config).items()
        if name not in RESERVED
    }


def offset_bits(config: CoreConfig) -> int:
    """Bits of an address between its region and its byte."""
    slices, entries = regions.slices(config), regions.entries(config)
    return max(
        (slices[region] - 1).bit_length() + (entries[region] - 1).bit_length()
        for region in reached(config)
    )


def address_bits(config: CoreConfig) -> int:
    """Bits of a bus address."""
    return REGION_BITS + offset_bits(config) + BYTE_BITS


def address(config: CoreConfig, host: int) -> int:
    """The bus address of an address of the host port."""
    low = (1 << regions.SHIFT) - 1
    return (host >> regions.SHIFT << offset_bits(config) | host & low) << BYTE_BITS


def register_address(config: CoreConfig, name: str) -> int:
    """The bus address of a register of the bus side."""
    return (BUS << offset_bits(config) | REGISTERS[name].address) << BYTE_BITS
