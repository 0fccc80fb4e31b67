"""Where fields of view and runs are: what passes from paths to segments, and on to requests.

Of the only path of a layer the fields stay, so nobody needs to take them along. Where a layer may
have several paths, they ride along: what is made of a path has a member ``path``. `path_of` and
`carry` treat both cases alike.
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
    """What the runs of a path are: values of `KIND_FIELDS` of its record."""

    identity: Value
    lanes: Value

    @classmethod
    def of(cls, config: CoreConfig, path: data.View) -> "PathKind":
        """Those of `path`, and constants where the core has one case."""
        return cls(
            identity=path.identity if config.identities else Const(0),
            lanes=path.lanes,
        )


KIND_FIELDS = PathKind._fields
"""The fields of a path that a run needs to the end."""
RUN_FIELDS = ("row_low", "row_high", "column_low", "column_high", *KIND_FIELDS)
"""Those that a run needs until it is clipped to its bounds."""
SCAN_FIELDS = ("run_first", "run_last", *RUN_FIELDS)
"""Those that say which runs there are, too."""
MOVE_FIELDS = tuple(field.name for field in isa.PATH.fields if field.name not in SCAN_FIELDS)
"""All others, which say how the field of view moves."""
SEEN = ("row", "col", "frame", "tile")
"""Where a field of view is in one step."""


def offset_bits(config: CoreConfig) -> int:
    """Bits of an offset in words that can tell that it has left the plane memory."""
    return config.plane_address_bits + 2


def further(offset, words):
    """An offset in words plus some more, which stays beyond the plane memory once it is there."""
    return (offset + words)[: len(offset)] | (offset & (1 << (len(offset) - 1)))


def paths_ride(config: CoreConfig) -> bool:
    """Whether a layer may have several paths, so that their fields ride along."""
    return config.layer_paths > 1


def item_members(
    config: CoreConfig, members: dict[str, ShapeLike], names: Iterable[str]
) -> dict[str, ShapeLike]:
    """Members of what is made of a path: these, and these fields of the path if they ride along."""
    if not paths_ride(config):
        return members
    return members | {"path": records.layout(isa.PATH, config, names)}


def path_of(item: data.View, only: data.View) -> data.View:
    """Fields of the path of which an item was made: its own, or those of the layer's only path."""
    return item.path if "path" in item.shape().members else only


def carry(item: data.View, path: data.View) -> list:
    """Assignments of a path's fields to an item that has them."""
    if "path" not in item.shape().members:
        return []
    return [item.path[name].eq(path[name]) for name, _ in item.path.shape()]


class FieldOfView(data.StructLayout):
    """Where a path looks, and where it looked at the first position of the pool window.

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
    """Where the field of view of one path is in one step, in the words of `lbq_hw.isa`.

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
    """A segment of a step with what its runs need to know.

    Members
    -------
    end : bit
        The step has no more segments.
    none : bit, never without ``end``
        Nor has it this one: nothing else has a meaning.
    base, weight, exponent : unsigned
        Of the SEGMENT record.
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
        Nor has it this one: nothing else has a meaning.
    base : unsigned
        First word of the plane, of this timestep.
    top, left, length_last
        The run in its plane, as in `lbq_hw.isa`.
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
