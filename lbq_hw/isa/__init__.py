"""The records of a program and the error codes of the core, in ONE table.

Encoders, decoders, the RTL's layouts and the documentation (``python -m lbq_hw.isa``) come from
this table. See also `record` for the packing of fields, `regions` for the address map of the host
port, and `link` for the frames between host and core.

A program is a list of LAYER records, executed from 0 to the one marked `last`. A record is packed
into one word, first field in the lowest bits. The loops of a layer, outermost first, where every
product has been made by the compiler, so that the core only adds::

    for output row, output column, tile of P channels, window row, window column, timestep: a STEP
        for segment in segments:            descending exponent
            for run in runs of its path:    -> scan requests -> events
        the last of its events closes the step

*State.* The core keeps for each path of the layer ``row0, row`` (first word of the topmost row of
its field of view, counted from the plane's first word), ``col0, col`` (leftmost bit of its field of
view, counted in its row), ``frame`` (words) and ``tile`` (weight rows), and for the layer ``y0, y,
x0, x``, the pixel before max-pooling. With y, x stepping by 1 where row, col step by `row_window`,
`column_window`, and by `window_row_step`, `window_column_step` where they step by `row_step`,
`column_step`, each advance is one addition per path::

    start          row = row0 = row_init    col = col0 = column_init   frame = 0  tile = 0
    timestep                                                           frame += frame_words
    window column                           col += column_window       frame = 0
    window row     row += row_window        col = col0                 frame = 0
    tile           row = row0               col = col0                 frame = 0  tile += tile_rows
    output column  row = row0               col = col0 += column_step  frame = 0  tile = 0
    output row     row = row0 += row_step   col = col0 = column_init   frame = 0  tile = 0

"Window" always means the max-pool window. A window position is skipped unless ``0 <= y <=
conv_rows_last and 0 <= x <= conv_columns_last``; every window has a position that is not skipped.
If the core's `window` is 1, every position is one pixel, and there is no y or x. A `static` layer
runs only the steps of its first timestep; the neuron units then update T times with one sum.

In a core without max-pools, the fields that only max-pools need (y, x and the window) are 0 and
have no bits. The same holds for fields that only several timesteps need.

*Runs.* A run selects these bits, in words and bits of the plane, all bounds inclusive::

    top    = row + run.row                     first word of the run's row, may lie outside
    left   = col + run.column                  first bit of the run, may lie outside
    low    = max(left, column_low)             high = min(left + length_last, column_high)
    nothing unless row_low <= top <= row_high and low <= high, else the plane words
    base + frame + top + (low // W ... high // W), bits low % W of the first to high % W of the last

The event of bit i of word ``base + frame + top + j`` uses the weight row::

    segment.weight + tile + run.weight + j * W + i - left                  modulo 2**address bits

A run of an `identity` path gives one event if ``row_low <= top <= row_high and column_low <= left
<= column_high``: its lane mask is the `lanes` bits from ``left + tile number * P`` on of row
`top`, its weight row ``segment.weight + tile``; no event if the mask is 0.

*Output.* A tile's levels go to bit ``b = column * out_pitch + tile number * P`` of the output
row, as a chunk of ``2**out_chunk`` bits that is aligned to its size. Plane k of timestep t lies in
the word ``out_base + t * out_frame + k * out_plane + row * out_row + b // W``. The readout writes
P logits per tile instead, in the order of the steps.

*Legality.* The core stops at an illegal record and reports its index. A record is illegal if a
field is above its largest legal value (a set reserved bit counts), or a `first` is above its
`last`. A layer is also illegal if it has more paths than `layer_paths`, if it is the last entry of
the table and not marked `last`, or if it has neurons and several timesteps and its `out_frame` is
not the number of its planes times `out_plane`. A segment is illegal if its layer does not have its
path, or if its exponent is larger than the previous segment's (sums are doubled on the way down and
cannot be halved).
"""

from __future__ import annotations

from lbq_hw.config import CoreConfig
from lbq_hw.isa.codes import Code
from lbq_hw.isa.record import Field, Number, Record, number_of
from lbq_hw.network.neuron import FLAGS, PARAMETERS, Rule


def _upto(name: str, meaning: str, most: Number) -> Field:
    return Field(name=name, meaning=meaning, most=most)


def _below(name: str, meaning: str, size: str) -> Field:
    return _upto(name, meaning, lambda c: getattr(c, size) - 1)


def _flag(name: str, meaning: str) -> Field:
    return _upto(name, meaning, 1)


def _pools(number: Number) -> Number:
    """A number that is 0 in a core without max-pools."""
    return lambda c: number_of(number, c) if c.window > 1 else 0


def _times(number: Number) -> Number:
    """A number that is 0 in a core for one timestep."""
    return lambda c: number_of(number, c) if c.timesteps > 1 else 0


def _words(name: str, meaning: str) -> Field:
    return _upto(name, meaning, lambda c: c.plane_words)


def _frame(name: str, meaning: str) -> Field:
    return _upto(name, meaning, _times(lambda c: c.plane_words))


def _bits(name: str, meaning: str) -> Field:
    return _upto(name, meaning, lambda c: (1 << (c.column_bits - 1)) - 1)


def _signed(name: str, meaning: str, bits: Number) -> Field:
    return Field(name=name, meaning=meaning, signed_bits=bits)


def _row_bits(config: CoreConfig) -> int:
    return config.row_offset_bits


def _column_bits(config: CoreConfig) -> int:
    return config.column_bits


def _row(name: str, meaning: str) -> Field:
    return _signed(name, meaning, _row_bits)


def _column(name: str, meaning: str) -> Field:
    return _signed(name, meaning, _column_bits)


def _pixel(name: str, meaning: str) -> Field:
    return _signed(name, meaning, _pools(lambda c: c.coordinate_bits))


def _pixels(name: str, meaning: str) -> Field:
    return _upto(name, meaning, _pools(lambda c: c.side - 1))


def _ability(rule: Rule) -> Number:
    """1 if a core has the ability for a rule."""
    return lambda c: getattr(c, rule.ability)


def _membrane_bits(rule: Rule) -> Number:
    """The bits of a membrane, or none in a core that does without the rule."""
    return lambda c: c.membrane_bits * (getattr(c, rule.ability) if rule.optional else 1)


LAYER = Record(
    "layer",
    "One layer: its loops, its neurons, its output tensor.",
    (
        _flag("last", "the program ends after this layer"),
        _flag("readout", "no neurons: membranes are summed over T and become logits"),
        _upto("static", "every path reads a static input: one sum serves all T updates", _times(1)),
        _below("rows_last", "rows of the output, minus 1", "side"),
        _below("columns_last", "columns of the output, minus 1", "side"),
        _upto("tiles_last", "tiles of P output channels, minus 1", lambda c: c.param_tiles - 1),
        _below("time_last", "timesteps, minus 1", "timesteps"),
        _below("window_rows_last", "rows of the max-pool window, minus 1 (0: no pool)", "window"),
        _below("window_columns_last", "its columns, minus 1", "window"),
        _pixel("window_row_init", "y of the first window: minus the pool's padding"),
        _pixel("window_column_init", "x of the first window"),
        _pixels("window_row_step", "y from one output row to the next"),
        _pixels("window_column_step", "x from one output column to the next"),
        _pixels("conv_rows_last", "rows before max-pooling, minus 1"),
        _pixels("conv_columns_last", "columns before max-pooling, minus 1"),
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
        _frame("out_frame", "words from one timestep to the next"),
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
        _upto(
            "partial_in",
            "the sums start from the partial sums of the previous pass",
            lambda c: int(c.external > 0),
        ),
        _upto(
            "partial_out",
            "the sums are stored as partial sums for the next pass: no levels, no logits",
            lambda c: int(c.external > 0),
        ),
        *(_upto(rule.name, rule.meaning, _ability(rule)) for rule in FLAGS),
        Field(name="reserved", meaning="0", most=0, bits=1),
    ),
    ordered=(("path_first", "path_last"), ("segment_first", "segment_last")),
)

PATH = Record(
    "path",
    "How the field of view of one path moves over its source tensor.",
    (
        _upto("identity", "plane bits are the lane mask; see Runs", lambda c: c.identities),
        _row("row_init", "row at the layer's start, in words from the plane's first"),
        _signed(
            "row_window",
            "words to the next row before max-pooling: stride * words of a row",
            _pools(_row_bits),
        ),
        _row("row_step", "words to the next output row: row_window * the max-pool's stride"),
        _below("row_low", "first row that counts", "plane_words"),
        _below("row_high", "last row that counts", "plane_words"),
        _column("column_init", "column at the start of a row, in bits"),
        _signed(
            "column_window",
            "bits to the next column before max-pooling: stride * pitch",
            _pools(_column_bits),
        ),
        _column("column_step", "bits to the next output column"),
        _bits("column_low", "first bit that counts"),
        _bits("column_high", "last bit that counts"),
        _frame("frame_words", "words from one timestep to the next; 0: a static source"),
        _below("tile_rows", "weight rows from one tile to the next (0: one tile)", "weight_rows"),
        _upto(
            "lanes", "lanes in the mask of an identity", lambda c: c.lanes if c.identities else 0
        ),
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
        _upto("exponent", "its events count 2**exponent", lambda c: c.exponents),
        _below("base", "first word of the plane at timestep 0", "plane_words"),
        _below("weight", "first weight row", "weight_rows"),
    ),
)

RUN = Record(
    "run",
    "Taps that lie side by side in the field of view: bits of one row.",
    (
        _row("row", "first row, from the topmost of the field of view, in words"),
        _column("column", "first bit, from the leftmost of the field of view"),
        _bits("length_last", "bits, minus 1"),
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
        *(_signed(rule.name, rule.meaning, _membrane_bits(rule)) for rule in PARAMETERS),
    ),
)


def parameters(config: CoreConfig) -> tuple[str, ...]:
    """The parameters of a channel that a core has, in their order."""
    return tuple(name for name, slot in PARAM.slots(config).items() if slot.width)


TABLES = {"layers": LAYER, "paths": PATH, "segments": SEGMENT, "runs": RUN}
"""The tables of a program, by the name of the `CoreConfig` field that sizes each."""


class Error(Code):
    """Why the core stopped, or refused."""

    NONE = 0, "nothing went wrong since the last clear"
    BUSY = 1, "the host wrote, started or read a memory while the core ran"
    ADDRESS = 2, "the host addressed what does not exist, or what cannot be read or written so"
    LAYER = 3, "an illegal LAYER record"
    PATH = 4, "an illegal PATH record"
    SEGMENT = 5, "an illegal SEGMENT record"
    RUN = 6, "an illegal RUN record"
    PLANE = 7, "a plane word outside its memory was to be read or written"
    WEIGHT = 8, "an event has a weight row outside its memory"
    LOGIT = 9, "there are more logits than their memory holds"
    PARAM = 10, "a parameter tile lies outside its memory"
    TAPE = 11, "an item of the tape is illegal, or the tape is for another core"
    CRC = 12, "an item of the tape has a wrong CRC"
    ORDER = 13, "the tape and the passes wait for each other"
    MEMORY = 14, "the external memory was needed while it is not calibrated"
    PARTIAL = 15, "a pass has more steps than there is room for partial sums"
