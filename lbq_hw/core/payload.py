"""Layouts of the streams between the blocks of the core, and of the values that hold for a layer.

Layouts take their sizes as keywords, so that a block can be built and tested for any mix of sizes.
The accelerator takes all sizes from one `CoreConfig`.
"""

from collections.abc import Sequence

from amaranth import Cat, unsigned
from amaranth.lib import data, enum
from amaranth.utils import ceil_log2

from lbq_hw.config import granule_bits

__all__ = [
    "Event",
    "LayerInfo",
    "LevelPlanes",
    "LevelWrite",
    "PairEvent",
    "PassInfo",
    "PlaneWrite",
    "ScanKind",
    "ScanRequest",
    "StepInfo",
    "WriteInfo",
]


class ScanKind(enum.Enum, shape=2):
    """What the scanner does with a request."""

    CONV = 0  # each set bit is an event with its own weight row
    IDENTITY = 1  # the set bits of one word are the lanes of one event
    END = 2  # no bits: only ends the step


class ScanRequest(data.StructLayout):
    """Up to `summary` consecutive plane words, all under one summary word, to turn into events.

    Members
    -------
    kind : `ScanKind`
        END has ``end`` and uses no other member.
    end : bit
        The step has no more requests.
    span : unsigned
        Address of the summary word; the words of the span start at ``span * summary``.
    want : ``summary`` bits
        Words of the span to read. IDENTITY: exactly one.
    lo, hi : unsigned
        Bit numbers in a word, both inclusive. IDENTITY: the bits of lane 0 and of the last lane in
        use.
    lo_en, lo_at
        Bits below ``lo`` are dropped from the word ``lo_at`` of the span, if ``lo_en``.
    hi_en, hi_at
        Bits above ``hi`` are dropped from the word ``hi_at`` of the span, if ``hi_en``.
        IDENTITY: ``lo`` and ``hi`` always apply.
    row : unsigned
        Bit b of word i of the span has the weight row ``row + i * word + b``, which wraps
        around: ``row`` may stand for a negative number. IDENTITY: the weight row is ``row``.
    exponent : unsigned
        The events count ``2 ** exponent`` times. Never rises within a step.
    """

    def __init__(
        self,
        *,
        word: int,
        summary: int,
        span_bits: int,
        row_bits: int,
        exponent_bits: int,
    ):
        super().__init__(
            {
                "kind": ScanKind,
                "end": 1,
                "span": span_bits,
                "want": summary,
                "lo": ceil_log2(word),
                "hi": ceil_log2(word),
                "lo_en": 1,
                "lo_at": ceil_log2(summary),
                "hi_en": 1,
                "hi_at": ceil_log2(summary),
                "row": row_bits,
                "exponent": exponent_bits,
            }
        )


class Event(data.StructLayout):
    """One cycle of the lanes: ``acc = (clear ? 0 : double ? 2*acc : acc) + (mask ? weight : 0)``.

    Without `masks`, there is one bit for all lanes.

    Members
    -------
    row : unsigned
        Weight row. Any value where ``mask`` is 0.
    mask : ``lanes`` bits, or 1
        Lanes that add their weight.
    clear, double : bit
        The accumulators are cleared or doubled before the addition; never both.
    end : bit
        The sums are complete after this event.
    """

    def __init__(self, *, lanes: int, row_bits: int, masks: bool):
        mask = lanes if masks else 1
        super().__init__(self._rows(row_bits) | {"mask": mask, "clear": 1, "double": 1, "end": 1})

    def _rows(self, row_bits):
        """The members that name weight rows."""
        return {"row": row_bits}

    @staticmethod
    def beyond(event, rows: int):
        """Whether an event has a weight row that does not exist."""
        return event.row >= rows


class PairEvent(Event):
    """An `Event` that adds up to two weight rows, an even and an odd one.

    Members
    -------
    rows : two unsigned
        Numbers of the even and of the odd row, each divided by 2 and rounded down.
    adds : two bits
        Whether each of the two rows is added.
    """

    def _rows(self, row_bits):
        return {"rows": data.ArrayLayout(row_bits - 1, 2), "adds": 2}

    @staticmethod
    def beyond(event, rows: int):
        named = zip(event.rows, event.adds, strict=True)
        return Cat(adds & (row >= rows // 2) for row, adds in named).any()


class PlaneWrite(data.StructLayout):
    """A write of part of a plane word.

    Members
    -------
    addr : unsigned
        Address of the word.
    data : ``word`` bits
    enable : one bit for each `granule` bits of the word
        Bits that are not enabled keep their value.
    first : bit
        The first write when the word is rewritten: the word's flag becomes 1 if this write has a
        set bit, otherwise 0. Without ``first``, a set flag stays set.
    """

    def __init__(self, *, word: int, granule: int, address_bits: int):
        super().__init__(
            {"addr": address_bits, "data": word, "enable": word // granule, "first": 1}
        )


class WriteInfo(data.StructLayout):
    """Where the level planes of a step go.

    Members
    -------
    addr : unsigned
        Word of plane 0. Has no meaning in a readout, whose logits are stored in order of arrival.
    place : unsigned
        Granule of the word where the chunk starts.
    first : bit
        The chunk is the lowest of its word.
    """

    def __init__(self, *, lanes: int, word: int, address_bits: int):
        places = word // granule_bits(lanes)
        super().__init__({"addr": address_bits, "place": ceil_log2(places), "first": 1})


class LayerInfo(data.StructLayout):
    """The constants of a layer for the blocks behind the walker; stable while the layer runs.

    Members
    -------
    updates : unsigned
        Timesteps that one sum serves: 1, or all of them if the input current is static.
    readout : bit
        The membranes only accumulate and leave as logits after the last timestep.
    capacity : unsigned
        Largest level N.
    decay : unsigned
        Factor m of the membrane, at most ``2 ** decay_bits``, which stands for 1.
    shift : unsigned
        Left shift F of the sum.
    stride : unsigned
        Words from one plane to the next. A static layer writes several frames per step; the planes
        of consecutive frames have the same stride.
    planes : unsigned
        Planes to write.
    granules : unsigned
        Granules of a chunk, which is what a tile writes into one plane word.
    flags : bit each
        The flag of each rule that the layer's neurons follow, see `lbq_hw.network.neuron`.
    """

    def __init__(
        self,
        *,
        lanes: int,
        planes: int,
        address_bits: int,
        update_bits: int,
        decay_bits: int,
        shift_bits: int,
        flags: Sequence[str] = (),
    ):
        self._flags = tuple(flags)
        super().__init__(
            {
                "updates": update_bits,
                "readout": 1,
                "capacity": planes,
                "decay": decay_bits + 1,
                "shift": shift_bits,
                "stride": address_bits,
                "planes": unsigned(planes.bit_length()),
                "granules": unsigned((lanes // granule_bits(lanes)).bit_length()),
            }
            | self._of_passes()
            | dict.fromkeys(self._flags, 1)
        )

    def _of_passes(self):
        return {}

    @property
    def flags(self) -> tuple[str, ...]:
        """Names of the rules' flags."""
        return self._flags


class PassInfo(LayerInfo):
    """A `LayerInfo` of one pass of a layer.

    Members
    -------
    partial_in : bit
        The sums start from the partial sums of the previous pass.
    partial_out : bit
        The sums are stored as partial sums for the next pass; there are no levels and no logits.
    """

    def _of_passes(self):
        return {"partial_in": 1, "partial_out": 1}


class StepInfo(data.StructLayout):
    """A step, as the neuron units need it: one pixel, tile, pool position and timestep.

    Members
    -------
    group : unsigned
        Word of the parameter memory for the first group of channels of the tile.
    first_t, last_t : bit
        The first update starts from a membrane of 0; the last update is the last timestep.
    pool_first, pool_last : bit
        First and last position of a max-pool window; both set without pooling.
    write : `WriteInfo`
    """

    def __init__(self, *, lanes: int, word: int, address_bits: int, group_bits: int):
        write = WriteInfo(lanes=lanes, word=word, address_bits=address_bits)
        super().__init__(
            {
                "group": group_bits,
                "first_t": 1,
                "last_t": 1,
                "pool_first": 1,
                "pool_last": 1,
                "write": write,
            }
        )


class LevelPlanes(data.StructLayout):
    """The levels of a tile at one timestep.

    Members
    -------
    planes : array of ``lanes`` bits each
        Bit planes, the least significant first; bit c is channel c of the tile.
    restart : bit
        The first timestep: the planes go where ``write`` says. Without it they follow the planes of
        the previous timestep, at the same stride.
    write : `WriteInfo`
    """

    def __init__(self, *, lanes: int, planes: int, write: WriteInfo):
        super().__init__({"planes": data.ArrayLayout(lanes, planes), "restart": 1, "write": write})


class LevelWrite(data.StructLayout):
    """Where the levels of a tile go at one timestep, in a compact core, whose planes follow one per
    cycle.

    Members
    -------
    restart, write : as in `LevelPlanes`
    """

    def __init__(self, *, write: WriteInfo):
        super().__init__({"restart": 1, "write": write})
