"""The address map of the host port: registers, and the memories of a core in 32-bit slices."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import IntEnum
from functools import lru_cache
from typing import Any

from lbq_hw import isa
from lbq_hw.config import CoreConfig
from lbq_hw.isa.record import SLICE


class Region(IntEnum):
    """The regions of the host port: address bits 28 and up. Below them: entry, then slice."""

    REGISTERS = 0
    LAYERS = 1
    PATHS = 2
    SEGMENTS = 3
    RUNS = 4
    WEIGHTS = 5
    PARAMS = 6
    PLANES = 7
    LOGITS = 8
    MEMORY = 9  # external memory, which not every core has


SHIFT = 28
TABLES = {Region[name.upper()]: name for name in isa.TABLES}
"""The regions of the program's tables, with their names in `isa.TABLES` and in a `CoreConfig`."""
ACCESS = {
    Region.REGISTERS: "see below",
    **dict.fromkeys(TABLES, "w"),
    Region.WEIGHTS: "w",
    Region.PARAMS: "w",
    Region.PLANES: "rw",
    Region.LOGITS: "r",
    Region.MEMORY: "rw",
}
"""The host's access rights while no program runs. While a program runs, the host may only read
registers. With external memory, a tape writes tables, weights and parameters, and the host cannot.
"""
MEMORY_SLICES = 1 << 24
"""Slices of external memory that can be addressed: 64 MB."""
CAPTURES = 16
"""Bits of the register `captures` that tell which captures have passed; the one in use is above."""
MAGIC = 0x4C425131  # "LBQ1"


@dataclass(frozen=True, kw_only=True)
class Register:
    """One 32-bit register."""

    name: str
    address: int
    access: str
    meaning: str


def _counter(meaning: str) -> Any:
    return field(default=None, metadata={"meaning": meaning})


@dataclass(frozen=True, kw_only=True)
class Counters:
    """What a core counts from start to done, in the order of the registers; None if the core lacks
    the counter.
    """

    cycles: int = field(metadata={"meaning": "cycles from start to done"})
    events: int | None = _counter("events with a weight: lane cycles that worked")
    null_events: int | None = _counter("events that only double, clear or close a step")
    scanner_stalls: int | None = _counter("cycles in which the lanes waited for an event")
    neuron_stalls: int | None = _counter(
        "cycles in which a finished sum waited for the neuron units"
    )
    words: int | None = _counter("plane words read by the scanner")
    empty_requests: int | None = _counter("scan requests without a non-zero word")


COUNTERS = tuple(counter.name for counter in fields(Counters))
"""Names of the counters, in the order of their registers; `cycles` has two of them."""
_MEANINGS = {counter.name: str(counter.metadata["meaning"]) for counter in fields(Counters)}
_REGISTERS = (
    ("id", "r", f"0x{MAGIC:08X}"),
    ("digest", "r", "first 32 bits of the CoreConfig's digest"),
    ("control", "w", "bit 0: start; bit 1: clear done, error and counters (refused while busy)"),
    ("status", "r", "bit 0: busy; bit 1: done; bit 2: error"),
    ("error", "r", "code of the first error since the last clear"),
    ("error_at", "r", "index of the illegal record; else the layer that ran"),
    ("layer", "r", "layer that runs, or ran last"),
    ("cycles", "r", f"{_MEANINGS['cycles']}, low half"),
    ("cycles_high", "r", "high half"),
    *((name, "r", _MEANINGS[name]) for name in COUNTERS[1:]),
)
_MEMORY_REGISTERS = (
    (
        "memory",
        "r",
        "bit 0: calibrated; bit 1: digest under way; bit 2: calibration failed; bit 3: self-test "
        "under way",
    ),
    ("digest_first", "w", "first slice of the next digest"),
    ("digest_slices", "w", "number of its slices; starts it"),
    ("digest_crc", "r", "CRC-32 of these slices, as in zlib, once the digest is done"),
    ("passes", "r", "passes done, of the run or the last one"),
    ("wait_cycles", "r", "cycles in which no pass ran, because the tape did not allow one yet"),
    ("test_last", "w", "last slice of a self-test; starts it, and all up to there is overwritten"),
    ("test_differing", "r", "memory words that differed in the self-test"),
    (
        "captures",
        "rw",
        "bits 15:0: captures that passed in the calibration, by their numbers; bits 19:16: the one "
        "in use; writing anything calibrates again, which overwrites the last 16 memory words",
    ),
)


def _numbered(rows: Sequence[tuple[str, str, str]], first: int) -> dict[str, Register]:
    return {
        name: Register(name=name, address=address, access=access, meaning=meaning)
        for address, (name, access, meaning) in enumerate(rows, first)
    }


REGISTERS = _numbered(_REGISTERS, 0)
"""Of every core."""
MEMORY_REGISTERS = _numbered(_MEMORY_REGISTERS, len(REGISTERS))
"""Registers that only cores with external memory have, after the others."""


def registers(config: CoreConfig) -> Mapping[str, Register]:
    """The registers of a core."""
    return REGISTERS | MEMORY_REGISTERS if config.external else REGISTERS


def reached(config: CoreConfig) -> tuple[Region, ...]:
    """The regions of a core."""
    return tuple(Region) if config.external else tuple(Region)[: Region.MEMORY]


def weight_slice_lanes(config: CoreConfig) -> int:
    """Lanes of a weight row in one 32-bit slice: a power of two, `weight_bits` per lane, packed."""
    lanes = 1 << ((SLICE // config.weight_bits).bit_length() - 1)
    return min(lanes, config.lanes)


def weight_slice_bits(config: CoreConfig) -> int:
    """Bits of a 32-bit slice that a weight row uses."""
    return weight_slice_lanes(config) * config.weight_bits


def row_slices(config: CoreConfig, bits: int) -> int:
    """32-bit slices of a weight row with `bits` per weight, packed without gaps."""
    return -(-config.lanes * bits // weight_slice_bits(config))


@lru_cache(maxsize=256)
def slices(config: CoreConfig) -> Mapping[Region, int]:
    """32-bit slices of one entry, by region.

    An entry takes ``2**ceil(log2(slices))`` addresses. A slice is stored at once, except that a
    parameter is stored with its last slice. Slices of a parameter and of a plane word are written
    in order.
    """
    return {
        Region.REGISTERS: 1,
        **{region: isa.TABLES[name].slices(config) for region, name in TABLES.items()},
        Region.WEIGHTS: row_slices(config, config.weight_bits),
        Region.PARAMS: isa.PARAM.slices(config),
        Region.PLANES: -(-config.word // SLICE),
        Region.LOGITS: -(-config.membrane_bits // SLICE),
        **({Region.MEMORY: 1} if config.external else {}),
    }


@lru_cache(maxsize=256)
def entries(config: CoreConfig) -> Mapping[Region, int]:
    """Entries of each region."""
    return {
        Region.REGISTERS: len(registers(config)),
        **{region: getattr(config, name) for region, name in TABLES.items()},
        Region.WEIGHTS: config.weight_rows,
        Region.PARAMS: config.channels,
        Region.PLANES: config.plane_words,
        Region.LOGITS: config.logits,
        **({Region.MEMORY: MEMORY_SLICES} if config.external else {}),
    }


def address(config: CoreConfig, region: Region, entry: int, part: int = 0) -> int:
    """Host address of one slice of one entry."""
    parts = slices(config).get(region, 0)
    if not (0 <= part < parts and 0 <= entry < entries(config)[region]):
        raise ValueError(f"{region.name} has no slice {part} of entry {entry}")
    return region << SHIFT | entry << (parts - 1).bit_length() | part


def tag(image: Mapping[Region, Sequence[int]]) -> int:
    """The tag of a memory image (entries by region): 32 bits of a SHA-256, and never 0.

    Zeros at the end of a region are ignored, because the core decides how long a memory is.
    """
    lines = []
    for region in sorted(image):
        values = list(image[region])
        while values and not values[-1]:
            values.pop()
        if values:
            lines.append(f"{region.name} {' '.join(format(value, 'x') for value in values)}")
    return int(hashlib.sha256("\n".join(lines).encode()).hexdigest()[:8], 16) or 1
