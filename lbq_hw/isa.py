"""ONE table of what the core reads: descriptor records, registers, memories, errors, link frames.

Encoders, decoders, the RTL's layouts and the documentation (``python -m lbq_hw.isa``) come from it.

A program is a list of LAYER records, executed from 0 to the one marked `last`. A record is packed
into one word, first field in the lowest bits. The loops of a layer, outermost first, where every
product has been made by the compiler, so that the core only adds::

    for output row, output column, tile of P channels, window row, window column, timestep: a STEP
        for segment in segments:            descending exponent
            for run in runs of its path:    -> scan requests -> events
        END                                 closes the step

*State.* The core keeps for each path of the layer ``row0, row`` (first word of the window's
topmost row, counted from the plane's first word), ``col0, col`` (the window's leftmost bit,
counted in its row), ``frame`` (words) and ``tile`` (weight rows), and for the layer ``y0, y, x0,
x``, the pixel before max-pooling. With y, x stepping by 1 where row, col step by `row_window`,
`column_window`, and by `window_row_step`, `window_column_step` where they step by `row_step`,
`column_step`, each advance is one addition a path::

    start          row = row0 = row_init    col = col0 = column_init   frame = 0  tile = 0
    timestep                                                           frame += frame_words
    window column                           col += column_window       frame = 0
    window row     row += row_window        col = col0                 frame = 0
    tile           row = row0               col = col0                 frame = 0  tile += tile_rows
    output column  row = row0               col = col0 += column_step  frame = 0  tile = 0
    output row     row = row0 += row_step   col = col0 = column_init   frame = 0  tile = 0

A window position is skipped unless ``0 <= y <= conv_rows_last and 0 <= x <= conv_columns_last``;
every window has one that is not. Where the core's `window` is 1, every position is one pixel, and
the core does not look at y and x. A layer that is `static` runs the steps of its first timestep
only; the neuron units then update T times with one sum.

*Runs.* Of a run, in words and bits of the plane, all bounds inclusive::

    top    = row + run.row                     first word of the run's first row, may lie outside
    first  = max(top, row_low)                 last = min(top + rows_last, row_high)
    left   = col + run.column                  first bit of the run, may lie outside
    low    = max(left, column_low)             high = min(left + length_last, column_high)
    nothing if first > last or low > high, else the plane words
    base + frame + (first + low // W ... last + high // W), bits low % W of the first (of every
    word if `stacked`) to high % W of the last (of every word if `stacked`)

`rows_last` is 0 unless the path is `stacked`, and a stacked path has rows of one word, so that
one row is one word. The event of bit i of word ``base + frame + top + j`` uses the weight row::

    segment.weight + tile + run.weight + (j << increment) + i - left       modulo 2**address bits

where `increment` is log2 W, or for a stacked path log2 of the weight rows of one kernel row.
A run of an `identity` path gives one event if ``row_low <= top <= row_high and column_low <= left
<= column_high``: its lane mask is the `lanes` bits from ``left + tile number * P`` on of row
`top`, its weight row ``segment.weight + tile``; no event if the mask is 0.

*Output.* A tile's levels go to bit ``b = column * out_pitch + tile number * P`` of the output
row, as a chunk of ``2**out_chunk`` bits that is aligned to its size. Plane k of timestep t lies in
the word ``out_base + t * out_frame + k * out_plane + row * out_row + b // W``. The readout writes
P logits a tile instead, in the order of the steps.

*Legality.* A field above its largest legal value (a reserved bit that is set, too) and a `first`
above its `last` are errors. So are a layer with more paths than `layer_paths`, a last table entry
that is not `last`, a layer of neurons and of several timesteps whose `out_frame` is not its planes
times `out_plane`, a segment of a path that its layer does not have, and a run of several rows in a
path that is not stacked. The core stops and says which record.

*Link.* A frame is a REQUEST or a REPLY and its data words, followed by the CRC-32 (ISO-HDLC, as in
zlib) of both, all in bytes, lowest first. On the wire, as in RFC 1662, every 0x7E and 0x7D in it
becomes 0x7D and the byte with bit 5 flipped, and 0x7E ends it; empty frames mean nothing. A frame
that was cut off, is too long, or has a wrong CRC is dropped. Each other request gets one reply
with its sequence number. Requests are executed once and in order: one whose number follows the
last executed one's is executed; the same number again is answered again (a READ with the data of
now); any other is answered with SEQUENCE and does nothing. SYNC makes its own number the last
executed one, and comes first after a reset. A new divisor holds once the reply has left. A break
(the line low for longer than a byte) brings back the divisor of the reset.
"""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache

from lbq_hw.config import CoreConfig

Number = int | Callable[[CoreConfig], int]
SLICE = 32  # bits of the host port's data


def _of(number: Number, config: CoreConfig) -> int:
    return number if isinstance(number, int) else number(config)


@dataclass(frozen=True, kw_only=True)
class Field:
    """One field: unsigned 0..`most`, or any signed number of `signed_bits` bits.

    An unsigned field has the bits that `most` needs, and no fewer than `bits`.
    """

    name: str
    meaning: str
    most: Number = 1
    signed_bits: Number = 0
    bits: int = 1

    @property
    def signed(self) -> bool:
        return self.signed_bits != 0

    def width(self, config: CoreConfig) -> int:
        if self.signed:
            return _of(self.signed_bits, config)
        return max(self.bits, _of(self.most, config).bit_length())

    def largest(self, config: CoreConfig) -> int:
        """The largest legal value; the width may hold more."""
        if self.signed:
            return (1 << (self.width(config) - 1)) - 1
        return _of(self.most, config)

    def least(self, config: CoreConfig) -> int:
        return -1 << (self.width(config) - 1) if self.signed else 0


@dataclass(frozen=True, kw_only=True)
class Slot:
    """Where a field lies in its record."""

    field: Field
    offset: int
    width: int


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
        """32-bit writes that bring one record."""
        return -(-self.width(config) // SLICE)

    def encode(self, config: CoreConfig, values: Mapping[str, int]) -> int:
        """Pack every field; ValueError for what the field cannot hold."""
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
            if slot.field.signed and value >> (slot.width - 1):
                value -= 1 << slot.width
            values[name] = value
        return values

    def violations(self, config: CoreConfig, values: Mapping[str, int]) -> list[str]:
        """What makes these values illegal; the core refuses the same."""
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


def _upto(name: str, meaning: str, most: Number) -> Field:
    return Field(name=name, meaning=meaning, most=most)


def _below(name: str, meaning: str, size: str) -> Field:
    return _upto(name, meaning, lambda c: getattr(c, size) - 1)


def _flag(name: str, meaning: str) -> Field:
    return _upto(name, meaning, 1)


def _words(name: str, meaning: str) -> Field:
    return _upto(name, meaning, lambda c: c.plane_words)


def _bits(name: str, meaning: str) -> Field:
    return _upto(name, meaning, lambda c: (1 << (c.column_bits - 1)) - 1)


def _signed(name: str, meaning: str, bits: Number) -> Field:
    return Field(name=name, meaning=meaning, signed_bits=bits)


def _row(name: str, meaning: str) -> Field:
    return _signed(name, meaning, lambda c: c.row_offset_bits)


def _column(name: str, meaning: str) -> Field:
    return _signed(name, meaning, lambda c: c.column_bits)


def _pixel(name: str, meaning: str) -> Field:
    return _signed(name, meaning, lambda c: c.coordinate_bits)


LAYER = Record(
    "layer",
    "One layer: its loops, its neurons, its output tensor.",
    (
        _flag("last", "the program ends after this layer"),
        _flag("readout", "no neurons: membranes are summed over T and become logits"),
        _flag("static", "every path reads a static input: one sum serves all T updates"),
        _below("rows_last", "rows of the output, minus 1", "side"),
        _below("columns_last", "columns of the output, minus 1", "side"),
        _upto("tiles_last", "tiles of P output channels, minus 1", lambda c: c.param_tiles - 1),
        _below("time_last", "timesteps, minus 1", "timesteps"),
        _below("window_rows_last", "rows of the max-pool window, minus 1 (0: no pool)", "window"),
        _below("window_columns_last", "its columns, minus 1", "window"),
        _pixel("window_row_init", "y of the first window: minus the pool's padding"),
        _pixel("window_column_init", "x of the first window"),
        _below("window_row_step", "y from one output row to the next", "side"),
        _below("window_column_step", "x from one output column to the next", "side"),
        _below("conv_rows_last", "rows before max-pooling, minus 1", "side"),
        _below("conv_columns_last", "columns before max-pooling, minus 1", "side"),
        _upto("capacity", "N, the largest level", lambda c: c.capacity),
        _below("planes_last", "bit planes of the output, minus 1", "planes"),
        _upto("decay", "m of the leak m / 2**B", lambda c: 1 << c.decay_bits),
        _upto(
            "fraction",
            "F: the membrane counts in 2**-F accumulator steps",
            lambda c: c.fraction_bits,
        ),
        _below("param", "first parameter tile (of P channels)", "param_tiles"),
        _below("out_base", "first word of the output", "plane_words"),
        _words("out_row", "words from one row of the output to the next"),
        _words("out_plane", "words from one plane to the next"),
        _words("out_frame", "words from one timestep to the next"),
        _bits("out_pitch", "bits from one column to the next"),
        _upto(
            "out_chunk",
            "log2 of the bits that a tile writes: P, or the pitch if it is less",
            lambda c: c.lane_log2,
        ),
        _below("path_first", "its first PATH record", "paths"),
        _below("path_last", "its last", "paths"),
        _below("segment_first", "its first SEGMENT record", "segments"),
        _below("segment_last", "its last", "segments"),
        Field(
            name="reserved",
            meaning="0: partial sums in, out; weights in external memory; 5 more",
            most=0,
            bits=8,
        ),
    ),
    ordered=(("path_first", "path_last"), ("segment_first", "segment_last")),
)

PATH = Record(
    "path",
    "How the window of one path moves over its source tensor.",
    (
        _flag("identity", "plane bits are the lane mask; see Runs"),
        _flag("stacked", "rows of the source are one word each and a run covers several"),
        _row("row_init", "row at the layer's start, in words from the plane's first"),
        _row("row_window", "words to the next row before max-pooling: stride * words of a row"),
        _row("row_step", "words to the next output row: row_window * the max-pool's stride"),
        _below("row_low", "first row that counts", "plane_words"),
        _below("row_high", "last row that counts", "plane_words"),
        _column("column_init", "column at the start of a row, in bits"),
        _column("column_window", "bits to the next column before max-pooling: stride * pitch"),
        _column("column_step", "bits to the next output column"),
        _bits("column_low", "first bit that counts"),
        _bits("column_high", "last bit that counts"),
        _upto("increment", "log2 of the weight rows from one word of a run to the next", 15),
        _words("frame_words", "words from one timestep to the next; 0: a static source"),
        _below("tile_rows", "weight rows from one tile to the next (0: one tile)", "weight_rows"),
        _upto("lanes", "lanes in the mask of an identity", lambda c: c.lanes),
        _below("run_first", "its first RUN record", "runs"),
        _below("run_last", "its last", "runs"),
    ),
    ordered=(("run_first", "run_last"),),
)

SEGMENT = Record(
    "segment",
    "One bit plane of one path (of an identity: and one limb of its weights).",
    (
        _below("path", "number of its path, counted from the layer's first", "layer_paths"),
        _upto("exponent", "its events count 2**exponent", 31),
        _below("base", "first word of the plane at timestep 0", "plane_words"),
        _below("weight", "first weight row", "weight_rows"),
    ),
)

RUN = Record(
    "run",
    "Taps of a window that lie side by side: a range of bits of one row (stacked: of several).",
    (
        _row("row", "first row, from the window's topmost, in words"),
        _column("column", "first bit, from the window's leftmost"),
        _bits("length_last", "bits, minus 1"),
        _below("rows_last", "rows, minus 1; 0 unless the path is stacked", "side"),
        _below("weight", "weight row of the first bit, from the segment's", "weight_rows"),
    ),
)

PARAM = Record(
    "param",
    "Parameters of one channel; sums of membranes wrap, and are proven to end in range.",
    (
        _signed("bias", "added each timestep", lambda c: c.membrane_bits),
        _upto(
            "theta",
            "one burst step; the largest is never reached",
            lambda c: (1 << (c.membrane_bits - 1)) - 1,
        ),
        _signed(
            "reset",
            "subtracted after any spike, modulo 2**membrane_bits",
            lambda c: c.membrane_bits,
        ),
    ),
)

TABLES = {"layers": LAYER, "paths": PATH, "segments": SEGMENT, "runs": RUN}


class Error(IntEnum):
    """Why the core stopped, or refused."""

    NONE = 0
    BUSY = 1  # a start, or a write, while the core runs
    ADDRESS = 2  # the host addressed what does not exist
    LAYER = 3  # an illegal LAYER record
    PATH = 4
    SEGMENT = 5
    RUN = 6
    PLANE = 7  # a plane word outside its memory was to be read or written
    WEIGHT = 8  # an event with a weight row outside its memory
    LOGIT = 9  # more logits than their memory holds
    PARAM = 10  # a parameter tile outside its memory


class Region(IntEnum):
    """What the host port reaches: address bits 28 and up. Below them: entry, then slice."""

    REGISTERS = 0
    LAYERS = 1
    PATHS = 2
    SEGMENTS = 3
    RUNS = 4
    WEIGHTS = 5
    PARAMS = 6
    PLANES = 7
    LOGITS = 8


REGION_SHIFT = 28
MAGIC = 0x4C425131  # "LBQ1"


@dataclass(frozen=True, kw_only=True)
class Register:
    """One 32-bit register."""

    name: str
    address: int
    access: str
    meaning: str


_REGISTERS = (
    ("id", "r", f"0x{MAGIC:08X}"),
    ("digest", "r", "first 32 bits of the CoreConfig's digest"),
    ("control", "w", "bit 0: start; bit 1: clear done, error and counters (refused while busy)"),
    ("status", "r", "bit 0: busy; bit 1: done; bit 2: error"),
    ("error", "r", "code of the first error since the last clear"),
    ("error_at", "r", "index of the illegal record; else the layer that ran"),
    ("layer", "r", "layer that runs, or ran last"),
    ("cycles", "r", "cycles from start to done, low half"),
    ("cycles_high", "r", "high half"),
    ("events", "r", "events with a weight: lane cycles that worked"),
    ("null_events", "r", "events that only double, clear or close a step"),
    ("scanner_stalls", "r", "cycles in which the lanes waited for an event"),
    ("neuron_stalls", "r", "cycles in which a finished sum waited for the neuron units"),
    ("words", "r", "plane words read by the scanner"),
    ("empty_requests", "r", "scan requests without a non-zero word"),
)
REGISTERS = {
    name: Register(name=name, address=address, access=access, meaning=meaning)
    for address, (name, access, meaning) in enumerate(_REGISTERS)
}


def weight_slice_lanes(config: CoreConfig) -> int:
    """Lanes of a weight row in one 32-bit slice: a power of two, `weight_bits` a lane, packed."""
    lanes = 1 << ((SLICE // config.weight_bits).bit_length() - 1)
    return min(lanes, config.lanes)


def region_slices(config: CoreConfig) -> dict[Region, int]:
    """32-bit slices of one entry, by region.

    An entry takes ``2**ceil(log2(slices))`` addresses. A slice is stored at once, but those of a
    parameter with its last one. Slices of a parameter and of a plane word are written in order.
    """
    return {
        Region.REGISTERS: 1,
        Region.LAYERS: LAYER.slices(config),
        Region.PATHS: PATH.slices(config),
        Region.SEGMENTS: SEGMENT.slices(config),
        Region.RUNS: RUN.slices(config),
        Region.WEIGHTS: config.lanes // weight_slice_lanes(config),
        Region.PARAMS: PARAM.slices(config),
        Region.PLANES: -(-config.word // SLICE),
        Region.LOGITS: -(-config.membrane_bits // SLICE),
    }


def region_entries(config: CoreConfig) -> dict[Region, int]:
    """Entries of each region."""
    return {
        Region.REGISTERS: len(REGISTERS),
        Region.LAYERS: config.layers,
        Region.PATHS: config.paths,
        Region.SEGMENTS: config.segments,
        Region.RUNS: config.runs,
        Region.WEIGHTS: config.weight_rows,
        Region.PARAMS: config.channels,
        Region.PLANES: config.plane_words,
        Region.LOGITS: config.logits,
    }


def address(config: CoreConfig, region: Region, entry: int, part: int = 0) -> int:
    """Host address of one slice of one entry."""
    slices = region_slices(config)[region]
    if not (0 <= entry < region_entries(config)[region] and 0 <= part < slices):
        raise ValueError(f"{region.name} has no slice {part} of entry {entry}")
    return region << REGION_SHIFT | entry << (slices - 1).bit_length() | part


def tag(image: Mapping[Region, Sequence[int]]) -> int:
    """Names what memories hold, entries by region: 32 bits of a SHA-256, and never 0.

    Entries of 0 at the end of a region count as none: memories are as long as their core's.
    """
    lines = []
    for region in sorted(image):
        values = list(image[region])
        while values and not values[-1]:
            values.pop()
        if values:
            lines.append(f"{region.name} {' '.join(format(value, 'x') for value in values)}")
    return int(hashlib.sha256("\n".join(lines).encode()).hexdigest()[:8], 16) or 1


class Command(IntEnum):
    """What a frame asks the link to do."""

    READ = 0  # reply with `words` words from `address` on
    WRITE = 1  # write the `words` data words from `address` on
    SYNC = 2  # begin a session: the next sequence number follows this one's
    DIVISOR = 3  # the UART's clock cycles a bit: the low bits of `address`


class Status(IntEnum):
    """How a frame was taken."""

    OK = 0
    SEQUENCE = 1  # not executed: its number does not follow the last one's


FLAG, ESCAPE, ESCAPED = 0x7E, 0x7D, 0x20
FRAME_WORDS = 60
BAKED = 15 << REGION_SHIFT
"""Read by the link itself: `tag` of what the bitstream put into the memories, 0 once any of their
tables, weights or parameters has been written."""
DIVISOR_BITS = 12
LEAST_DIVISOR = 4


def divisor(*, clock_hz: int, baud: int) -> int:
    """Clock cycles a bit of the link; ValueError where the rate would be off by 2 % or more."""
    for name, value in (("clock_hz", clock_hz), ("baud", baud)):
        if not isinstance(value, int) or isinstance(value, bool):
            raise TypeError(f"{name} must be an integer, not {value!r}")
        if value < 1:
            raise ValueError(f"{name} must be at least 1, not {value!r}")
    cycles = round(clock_hz / baud)
    least, most = LEAST_DIVISOR, (1 << DIVISOR_BITS) - 1
    if not least <= cycles <= most:
        low, high = -(-clock_hz // most), clock_hz // least
        raise ValueError(f"baud must be {low}..{high} at {clock_hz} Hz, not {baud!r}")
    if abs(clock_hz - cycles * baud) * 50 >= cycles * baud:
        raise ValueError(
            f"baud must be within 2 % of {clock_hz} Hz over a whole number, not {baud!r}"
        )
    return cycles


REQUEST = Record(
    "request",
    "Head of a frame to the core; a WRITE's data words follow.",
    (
        _upto("sequence", "number of the request; counts up, modulo 256", 255),
        _upto("words", "data words that follow, or that a READ wants", FRAME_WORDS),
        _upto("command", ", ".join(f"{c.value}: {c.name}" for c in Command), max(Command)),
        _upto(
            "address",
            "of the first word; of the next ones, only bits 7:0 count up",
            (1 << SLICE) - 1,
        ),
    ),
)
REPLY = Record(
    "reply",
    "Head of a frame from the core; a READ's data words follow.",
    (
        _upto("sequence", "of the request", 255),
        Field(
            name="status",
            meaning=", ".join(f"{s.value}: {s.name}" for s in Status),
            most=max(Status),
            bits=8,
        ),
    ),
)


def markdown(config: CoreConfig) -> str:
    """The tables as documentation, with the widths of `config`."""
    lines = []
    for record in (*TABLES.values(), PARAM, REQUEST, REPLY):
        lines += [f"### {record.name.upper()}: {record.width(config)} bits", "", record.meaning, ""]
        lines += ["| bits | field | largest | meaning |", "|---|---|--:|---|"]
        for name, slot in record.slots(config).items():
            kind = "signed" if slot.field.signed else str(slot.field.largest(config))
            place = f"{slot.offset + slot.width - 1}:{slot.offset}"
            lines.append(f"| {place} | {name} | {kind} | {slot.field.meaning} |")
        lines.append("")
    lines += ["### Registers", "", "| address | name | access | meaning |", "|--:|---|---|---|"]
    lines += [f"| {r.address} | {r.name} | {r.access} | {r.meaning} |" for r in REGISTERS.values()]
    lines += ["", "### Regions", "", "| region | number | entries | slices |", "|---|--:|--:|--:|"]
    entries, slices = region_entries(config), region_slices(config)
    lines += [f"| {r.name} | {r.value} | {entries[r]} | {slices[r]} |" for r in Region]
    lines += ["", "### Errors", "", "| code | name |", "|--:|---|"]
    lines += [f"| {error.value} | {error.name} |" for error in Error]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    argparse.ArgumentParser(
        prog="python -m lbq_hw.isa",
        description="Print the records, registers, regions and errors of a default core.",
    ).parse_args()
    print(markdown(CoreConfig()), end="")
