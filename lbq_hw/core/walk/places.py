"""Layouts for the places of fields of view and runs, passed from paths to segments to requests.

In a core whose layers have a single path, the path's fields are constant during a layer, and every
block reads them from the path store. Where a layer may have several paths, each item carries the
fields of its own path in a member ``path``. `path_of` and `carry` hide the difference.
"""

from collections.abc import Iterable
from typing import NamedTuple

from amaranth import Const, ShapeLike, Value, signed
from amaranth.lib import data

from lbq_hw import isa
from lbq_hw.config import CoreConfig, address_bits
from lbq_hw.core.walk import records

__all__ = [
    "KIND_FIELDS",
    "MOVE_FIELDS",
    "RUN_FIELDS",
    "SCAN_FIELDS",
    "SEEN",
    "FetchedSegment",
    "FieldOfView",
    "PathKind",
    "PathState",
    "PlacedRun",
    "carry",
    "further",
    "item_members",
    "offset_bits",
    "path_of",
    "paths_ride",
]


class PathKind(NamedTuple):
    """The kind of a path's runs: the values of the record's `KIND_FIELDS`."""

    identity: Value
    lanes: Value

    @classmethod
    def of(cls, config: CoreConfig, path: data.View) -> "PathKind":
        """The values of `path`; a constant where the core supports only one value."""
        return cls(
            identity=path.identity if config.identities else Const(0),
            lanes=path.lanes,
        )


KIND_FIELDS = PathKind._fields
"""The fields of a path that a run needs to the end."""
RUN_FIELDS = ("row_low", "row_high", "column_low", "column_high", *KIND_FIELDS)
"""The fields that a run needs until it is clipped to its bounds."""
SCAN_FIELDS = ("run_first", "run_last", *RUN_FIELDS)
"""The fields above, and those that find a segment's runs."""
MOVE_FIELDS = tuple(field.name for field in isa.PATH.fields if field.name not in SCAN_FIELDS)
"""The other fields, which say how the field of view moves."""
SEEN = ("row", "col", "frame", "tile")
"""Members that locate a field of view in one step."""


def offset_bits(config: CoreConfig) -> int:
    """Bits of an offset in words, enough to show that it has left the plane memory."""
    return config.plane_address_bits + 2


def further(offset, words):
    """An offset plus some words; the top bit is sticky: past the plane memory, it stays there."""
    return (offset + words)[: len(offset)] | (offset & (1 << (len(offset) - 1)))


def paths_ride(config: CoreConfig) -> bool:
    """Whether a layer may have several paths, so that items carry the fields of their path."""
    return config.layer_paths > 1


def item_members(
    config: CoreConfig, members: dict[str, ShapeLike], names: Iterable[str]
) -> dict[str, ShapeLike]:
    """Members of an item made from a path: the given ones, and the path's fields if it has them."""
    if not paths_ride(config):
        return members
    return members | {"path": records.layout(isa.PATH, config, names)}


def path_of(item: data.View, only: data.View) -> data.View:
    """Fields of an item's path: carried by the item, or read from the layer's only path."""
    return item.path if "path" in item.shape().members else only


def carry(item: data.View, path: data.View) -> list:
    """Assignments of a path's fields to an item that has them."""
    if "path" not in item.shape().members:
        return []
    return [item.path[name].eq(path[name]) for name, _ in item.path.shape()]


class FieldOfView(data.StructLayout):
    """The field of view of a path, now and at the first position of the pool window.

    Members
    -------
    row, col, frame, tile : as in `PathState`
    row0, col0 : signed, if there are pool windows
        ``row`` and ``col`` at that position.
    """

    def __init__(self, config: CoreConfig):
        row, col = signed(config.row_offset_bits), signed(config.column_bits)
        members: dict[str, ShapeLike] = {"row": row, "col": col}
        members |= {"frame": offset_bits(config), "tile": config.weight_address_bits}
        super().__init__(members | ({"row0": row, "col0": col} if config.window > 1 else {}))


class PathState(data.StructLayout):
    """Place of the field of view of one path in one step, in the terms of `lbq_hw.isa`.

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
    """A segment of a step, with all that its runs are computed from.

    Members
    -------
    end : bit
        The step has no more segments.
    none : bit, never without ``end``
        There is no segment, only the end of the step; all other members are undefined.
    base, weight, exponent : unsigned
        As in the SEGMENT record.
    state : `PathState`
    path : `SCAN_FIELDS` of the PATH record, if `paths_ride`
    """

    def __init__(self, config: CoreConfig):
        members = {
            "end": 1,
            "none": 1,
            "base": config.plane_address_bits,
            "weight": config.weight_address_bits,
            "exponent": config.exponent_bits,
            "state": PathState(config),
        }
        super().__init__(item_members(config, members, SCAN_FIELDS))


class PlacedRun(data.StructLayout):
    """A run at its place in a plane, not yet clipped.

    Members
    -------
    end : bit
        The step has no more runs.
    none : bit, never without ``end``
        There is no run, only the end of the step; all other members are undefined.
    base : unsigned
        First word of the plane at this timestep.
    top, left, length_last
        Place and length of the run in its plane, as in `lbq_hw.isa`.
    number : unsigned
        Number of the tile.
    weight : unsigned
        Weight row of the run's first bit; of an identity: its weight row.
    exponent : unsigned
    path : `RUN_FIELDS` of the PATH record, if `paths_ride`
    """

    def __init__(self, config: CoreConfig):
        run = isa.RUN.slots(config)
        members = {
            "end": 1,
            "none": 1,
            "base": offset_bits(config) + 1,
            "top": signed(config.row_offset_bits + 1),
            "left": signed(config.column_bits + 1),
            "length_last": run["length_last"].width,
            "number": address_bits(config.param_tiles),
            "weight": config.weight_address_bits,
            "exponent": config.exponent_bits,
        }
        super().__init__(item_members(config, members, RUN_FIELDS))
