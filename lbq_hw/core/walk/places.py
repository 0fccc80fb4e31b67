"""Where windows and runs are: what passes from windows to segments, and on to requests."""

from typing import NamedTuple

from amaranth import Const, Value, signed
from amaranth.lib import data

from lbq_hw import isa
from lbq_hw.config import CoreConfig, address_bits
from lbq_hw.core.walk import records
from lbq_hw.core.walk.paths import SCAN_FIELDS

__all__ = ["FetchedSegment", "PathKind", "PathState", "PlacedRun", "further", "offset_bits"]


def offset_bits(config: CoreConfig) -> int:
    """Bits of an offset in words that can tell that it has left the plane memory."""
    return config.plane_address_bits + 2


def further(offset, words):
    """An offset in words plus some more, which stays beyond the plane memory once it is there."""
    return (offset + words)[: len(offset)] | (offset & (1 << (len(offset) - 1)))


class PathKind(NamedTuple):
    """What the runs of a path are: values of these fields of its record."""

    identity: Value
    stacked: Value
    increment: Value
    lanes: Value

    @classmethod
    def of(cls, config: CoreConfig, path: data.View) -> "PathKind":
        """Those of `path`, and constants where the core has one case."""
        return cls(
            identity=path.identity if config.identities else Const(0),
            stacked=path.stacked if config.stacks else Const(0),
            increment=path.increment if config.stacks else Const(config.word_log2),
            lanes=path.lanes,
        )


class PathState(data.StructLayout):
    """Where the window of one path is in one step, in the words of `lbq_hw.isa`.

    Members
    -------
    row, col : signed
    frame, tile : unsigned
    number : unsigned
        Number of the tile.
    """

    def __init__(self, config: CoreConfig):
        super().__init__(
            {
                "row": signed(config.row_offset_bits),
                "col": signed(config.column_bits),
                "frame": offset_bits(config),
                "tile": config.weight_address_bits,
                "number": address_bits(config.param_tiles),
            }
        )


class FetchedSegment(data.StructLayout):
    """A segment of a step with what its runs need to know; or, with ``end``, the end of the step.

    Members
    -------
    end : bit
        Nothing else has a meaning.
    base, weight, exponent : unsigned
        Of the SEGMENT record.
    path : `SCAN_FIELDS` of the PATH record
        The only path's, if `layer_paths` is 1, even where the stream is not valid.
    state : `PathState`
    """

    def __init__(self, config: CoreConfig):
        super().__init__(
            {
                "end": 1,
                "base": config.plane_address_bits,
                "weight": config.weight_address_bits,
                "exponent": config.exponent_bits,
                "path": records.layout(isa.PATH, config, SCAN_FIELDS),
                "state": PathState(config),
            }
        )


class PlacedRun(data.StructLayout):
    """A run at its place in a plane, not yet clipped; or, with ``end``, the end of a step.

    Members
    -------
    end : bit
        Nothing else has a meaning.
    base : unsigned
        First word of the plane, of this timestep.
    top, left, rows_last, length_last
        The run in its plane, as in `lbq_hw.isa`.
    row_low, row_high, column_low, column_high, identity, stacked, increment, lanes
        Of its path.
    number : unsigned
        Number of the tile.
    weight : unsigned
        Weight row of the run's first bit; of an identity: its weight row.
    exponent : unsigned
    """

    def __init__(self, config: CoreConfig):
        run, path = isa.RUN.slots(config), isa.PATH.slots(config)
        super().__init__(
            {
                "end": 1,
                "base": offset_bits(config) + 1,
                "top": signed(config.row_offset_bits + 1),
                "left": signed(config.column_bits + 1),
                "rows_last": run["rows_last"].width,
                "length_last": run["length_last"].width,
                "row_low": config.plane_address_bits,
                "row_high": config.plane_address_bits,
                "column_low": config.column_bits - 1,
                "column_high": config.column_bits - 1,
                "identity": 1,
                "stacked": 1,
                "increment": path["increment"].width,
                "lanes": path["lanes"].width,
                "number": address_bits(config.param_tiles),
                "weight": config.weight_address_bits,
                "exponent": config.exponent_bits,
            }
        )
