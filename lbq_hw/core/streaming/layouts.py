"""Layouts of the streams between the blocks of the streaming core."""

from amaranth import signed
from amaranth.lib import data

from lbq_hw.config import address_bits
from lbq_hw.streaming import records
from lbq_hw.streaming.config import StreamConfig

__all__ = [
    "Beat",
    "Mark",
    "Place",
    "RowItem",
    "StreamEvent",
    "Visit",
    "WordItem",
    "layer_of",
    "paths_of",
]


def _layout(fields) -> data.StructLayout:
    return data.StructLayout(
        {field.name: signed(field.bits) if field.signed else field.bits for field in fields}
    )


def layer_of(config: StreamConfig) -> data.StructLayout:
    """The fields of a LAYER record."""
    return _layout(records.layer_fields(config))


def paths_of(config: StreamConfig) -> data.ArrayLayout:
    """The fields of a layer's PATH records."""
    return data.ArrayLayout(_layout(records.path_fields(config)), config.layer_paths)


class Place(data.StructLayout):
    """An output position to visit: `row`, `column`."""

    def __init__(self, config: StreamConfig):
        super().__init__({"row": config.side_bits, "column": config.side_bits})


class Mark(data.StructLayout):
    """A visit, as the neurons need it.

    Members
    -------
    column : unsigned
    real : bit
        A position is visited; otherwise the row has no visit.
    row_end, layer_end : bit
        The last mark of the row; of the layer.
    """

    def __init__(self, config: StreamConfig):
        super().__init__({"column": config.side_bits, "real": 1, "row_end": 1, "layer_end": 1})


class Visit(data.StructLayout):
    """A `Mark` and its row."""

    def __init__(self, config: StreamConfig):
        super().__init__({"row": config.side_bits, "mark": Mark(config)})


class RowItem(data.StructLayout):
    """One row of a window.

    Members
    -------
    bits : a bit per column of the window
        Pixels with any event.
    base : unsigned
        Level word of the source row's first pixel.
    left : signed
        Source column of the first bit.
    tap : unsigned
        Tap of the first bit.
    path, tile : unsigned
    tile_row : unsigned
        Number of weight rows of all earlier tiles.
    end : bit
        The last row of the tile.
    """

    def __init__(self, config: StreamConfig):
        c = config
        super().__init__(
            {
                "bits": c.window,
                "base": address_bits(c.level_words),
                "left": signed(c.side_bits + 2),
                "tap": address_bits(c.taps),
                "path": address_bits(c.layer_paths),
                "tile": address_bits(c.tiles),
                "tile_row": address_bits(c.weight_rows),
                "end": 1,
            }
        )


class WordItem(data.StructLayout):
    """A level word.

    Members
    -------
    word : a bit per channel
    row : unsigned
        Weight row of its first channel.
    shift : unsigned
        The weights count ``2**shift`` times.
    identity : bit
        The word is the lane mask of a single weight row.
    end : bit
        The last word of the tile.
    """

    def __init__(self, config: StreamConfig):
        c = config
        super().__init__(
            {
                "word": c.lanes,
                "row": address_bits(c.weight_rows),
                "shift": c.shifts.bit_length(),
                "identity": c.identities,
                "end": 1,
            }
        )


class StreamEvent(data.StructLayout):
    """One cycle of the lanes.

    Members
    -------
    row, shift : unsigned
        Weight row, and the left shift of its weights.
    mask : a bit per lane, or one for all
        Lanes that add.
    end : bit
        The sums are complete with this event.
    """

    def __init__(self, config: StreamConfig):
        c = config
        super().__init__(
            {
                "row": address_bits(c.weight_rows),
                "shift": c.shifts.bit_length(),
                "mask": c.lanes if c.identities else 1,
                "end": 1,
            }
        )


class Beat(data.StructLayout):
    """One cycle of the neuron units: a group of L channels, or none.

    Members
    -------
    group : unsigned
    valid : bit
        There is a group; otherwise the beat is empty.
    owed : unsigned
        Number of leaks since the last visit, up to this step.
    membrane, level : unsigned
        Words of the group's membranes and of the tile's first level plane.
    column : unsigned
    tile_end, visit_end, row_end, layer_end : bit
        The last beat of a tile, of a position, of a row, of the layer.
    """

    def __init__(self, config: StreamConfig):
        c = config
        super().__init__(
            {
                "group": address_bits(c.groups),
                "valid": 1,
                "owed": c.stamp_bits if c.leaks else 0,
                "membrane": address_bits(c.membrane_words),
                "level": address_bits(c.level_words),
                "column": c.side_bits,
                "tile_end": 1,
                "visit_end": 1,
                "row_end": 1,
                "layer_end": 1,
            }
        )
