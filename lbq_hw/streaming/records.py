"""The records of a streaming core and the regions of its host port, in one table.

A program is a list of 32-bit words: a LAYER record, its PATH records, the next LAYER record, and so
on up to the LAYER record marked `last`. A record begins with a new word, and its fields are packed
from the lowest bit on. A record has at least two words, so that the core knows a layer's number of
paths by the time it has requested the first PATH record. The compiler makes all large products; the
core multiplies only small numbers.

The window of a path at output row y and column x has its first pixel in row ``y * row_step +
row_init`` and column ``x * column_step + column_init`` of its source. Pixels outside ``row_low ..
row_high``, and columns whose bit of `mask` is 0, count as empty. Entry ``row * (window + 1) +
column`` of the path's tap table is the weight row for the pixel's first channel in the first tile.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache

from lbq_hw.config import address_bits
from lbq_hw.isa.record import SLICE
from lbq_hw.streaming.config import StreamConfig


@dataclass(frozen=True)
class StreamField:
    """A field of a record and its width in bits; 0 bits if the field can only be 0."""

    name: str
    meaning: str
    bits: int
    signed: bool = False


Fields = tuple[StreamField, ...]


@lru_cache(maxsize=64)
def layer_fields(config: StreamConfig) -> Fields:
    """The fields of a LAYER record."""
    c = config
    membranes, levels = address_bits(c.membrane_words), address_bits(c.level_words)
    group, pixel = address_bits(c.groups), (c.tiles * c.groups).bit_length()
    words = (c.tiles * c.planes).bit_length()
    beat = address_bits(max(c.groups, c.planes))
    return (
        StreamField("last", "the step ends after this layer", 1),
        StreamField("readout", "no neurons: membranes are sums", 1),
        StreamField("always", "every position is visited at every step", 1),
        StreamField("leaks", "membranes leak", int(c.leaks)),
        StreamField("to_zero", "a spike resets the membrane to 0", c.zero_resets),
        StreamField("paths_last", "paths, minus 1", (c.layer_paths - 1).bit_length()),
        StreamField("tiles_last", "tiles of P channels, minus 1", (c.tiles - 1).bit_length()),
        StreamField("rows_last", "rows of the output, minus 1", c.side_bits),
        StreamField("columns_last", "columns of the output, minus 1", c.side_bits),
        StreamField("groups_last", "groups of the last tile, minus 1", group),
        StreamField("beats_last", "cycles of a tile in the neuron units, minus 2", beat),
        StreamField("membrane", "first word of the membranes", membranes),
        StreamField("membrane_pixel", "their words per position", pixel),
        StreamField("membrane_row", "their words per row", membranes + 1),
        StreamField("level", "first word of the output's levels", levels),
        StreamField("level_pixel", "their words per pixel", words),
        StreamField("level_row", "their words per row", levels + 1),
        StreamField("planes_last", "planes of the output, minus 1", (c.planes - 1).bit_length()),
        StreamField("capacity", "largest level N", c.planes),
        StreamField("fraction", "F", (c.fraction_high - c.fraction_low).bit_length()),
        StreamField("decay", "m of the leak", c.decay_bits + 1 if c.leaks else 0),
        StreamField("stamp", "first stamp", address_bits(c.positions) if c.leaks else 0),
        StreamField("param", "first word of parameters", address_bits(c.param_words)),
        StreamField("tile_rows", "weight rows per tile", address_bits(c.weight_rows + 1)),
        StreamField("map", "first row of the output's map", address_bits(c.map_rows)),
        StreamField("input_last", "rows of the input, minus 1", c.side_bits),
    )


@lru_cache(maxsize=64)
def path_fields(config: StreamConfig) -> Fields:
    """The fields of a PATH record."""
    c = config
    side, window = c.side_bits, address_bits(c.window)
    words = c.tiles * c.most_planes
    return (
        StreamField("map", "first row of the source's map", address_bits(c.map_rows)),
        StreamField("rows_last", "rows of the window, minus 1", side),
        StreamField("window_last", "columns of the window, minus 1", window),
        StreamField("row_step", "rows from one output row to the next", side),
        StreamField("column_step", "columns from one output column to the next", side),
        StreamField("row_init", "first row of the first window", side + 1, signed=True),
        StreamField("column_init", "first column of the first window", side + 1, signed=True),
        StreamField("left", "columns that a pixel is spread to the right", side),
        StreamField("right", "columns that a pixel is spread to the left", side),
        StreamField("row_low", "first row that counts", side),
        StreamField("row_high", "last row that counts", side),
        StreamField("tap", "first tap", address_bits(c.taps)),
        StreamField("pixel", "level words per pixel", words.bit_length()),
        StreamField("planes_last", "planes, minus 1", (c.most_planes - 1).bit_length()),
        StreamField("words_last", "words of a plane, minus 1", (c.tiles - 1).bit_length()),
        StreamField("exponent", "weights count 2**exponent", c.shifts.bit_length()),
        StreamField("identity", "levels of a lane meet the weight of that lane", c.identities),
        StreamField("mask", "columns that count", c.columns),
    )


def words_of(fields: Fields) -> int:
    """32-bit words of a record."""
    return max(2, -(-sum(field.bits for field in fields) // SLICE))


def encode(fields: Fields, values: Mapping[str, int]) -> list[int]:
    """The words of a record; ValueError for a value that its field cannot hold."""
    packed, offset = 0, 0
    for field in fields:
        value = values[field.name]
        low = -(1 << (field.bits - 1)) if field.signed else 0
        high = (1 << (field.bits - field.signed)) - 1
        if not low <= value <= high:
            raise ValueError(f"{field.name} must be {low}..{high}, not {value}")
        packed |= (value & ((1 << field.bits) - 1)) << offset
        offset += field.bits
    return [packed >> (SLICE * i) & ((1 << SLICE) - 1) for i in range(words_of(fields))]


def decode(fields: Fields, words: list[int]) -> dict[str, int]:
    """The fields of a record's words."""
    packed = sum(word << (SLICE * i) for i, word in enumerate(words))
    values, offset = {}, 0
    for field in fields:
        value = packed >> offset & ((1 << field.bits) - 1)
        if field.signed and value >> (field.bits - 1):
            value -= 1 << field.bits
        values[field.name] = value
        offset += field.bits
    return values


class StreamRegion(IntEnum):
    """The regions of the host port: address bits 28 and up. Below them: entry, then slice."""

    REGISTERS = 0
    RECORDS = 1
    TAPS = 2
    ROWS = 3
    WEIGHTS = 4
    PARAMS = 5
    MEMBRANES = 6
    EVENTS = 7  # the number of PLANES in other cores: the link does not take it for a program
    LEVELS = 8
    MAPS = 9


MAGIC = 0x4C425153  # "LBQS"
REGISTERS = ("id", "digest", "control", "status", "error", "layer", "cycles", "step", "epoch")
"""In the order of their addresses: `control` (bit 0: step; bit 1: clear done and error; bit 2:
reset), `status` (bit 0: busy; bit 1: done; bit 2: error), `error`, `layer` that runs or ran last,
`cycles` of the last step or reset, `step`, steps since the last reset, and `epoch`, resets."""
STEP, CLEAR, RESET = 1, 2, 4


class StreamError(IntEnum):
    """The error codes of a streaming core."""

    NONE = 0
    BUSY = 1
    ADDRESS = 2
    MEMBRANE = 3


@lru_cache(maxsize=64)
def widths(config: StreamConfig) -> Mapping[StreamRegion, int]:
    """Bits of an entry, by region."""
    c = config
    return {
        StreamRegion.REGISTERS: SLICE,
        StreamRegion.RECORDS: SLICE,
        StreamRegion.TAPS: address_bits(c.weight_rows) + 1,
        StreamRegion.ROWS: address_bits(c.level_words),
        StreamRegion.WEIGHTS: c.lanes * c.weight_bits,
        StreamRegion.PARAMS: c.units * c.membrane_bits * (2 + c.resets + c.floors),
        StreamRegion.MEMBRANES: c.units * c.membrane_bits,
        StreamRegion.EVENTS: SLICE,
        StreamRegion.LEVELS: c.lanes,
        StreamRegion.MAPS: c.columns,
    }


def depths(config: StreamConfig) -> Mapping[StreamRegion, int]:
    """Entries, by region."""
    c = config
    return {
        StreamRegion.REGISTERS: len(REGISTERS),
        StreamRegion.RECORDS: c.record_words,
        StreamRegion.TAPS: c.taps,
        StreamRegion.ROWS: c.map_rows,
        StreamRegion.WEIGHTS: c.weight_rows,
        StreamRegion.PARAMS: c.param_words,
        StreamRegion.MEMBRANES: c.membrane_words,
        StreamRegion.EVENTS: EVENT_ENTRIES,
        StreamRegion.LEVELS: c.level_words,
        StreamRegion.MAPS: c.map_rows,
    }


def slices(config: StreamConfig, region: StreamRegion) -> int:
    """Number of 32-bit slices of an entry; they are written in ascending order."""
    return -(-widths(config)[region] // SLICE)


def address(config: StreamConfig, region: StreamRegion, entry: int) -> int:
    """Host address of an entry's first slice."""
    return region << 28 | entry << (slices(config, region) - 1).bit_length()


EVENT_ENTRIES = 256
"""Addresses of EVENTS: all are equivalent, so that one write carries many events."""
X_BITS, Y_BITS, PLANE_BITS, VALUE_BITS = 8, 8, 4, 12


def event_word(x: int, y: int, plane: int, value: int) -> int:
    """One plane of one pixel of the input, as it is written to EVENTS: a bit per channel."""
    return x | y << X_BITS | plane << (X_BITS + Y_BITS) | value << (X_BITS + Y_BITS + PLANE_BITS)
