"""A small core, layers of it and their beats, for the blocks behind the sums and around them."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from itertools import product

from lbq_hw.core.streaming.layouts import Beat
from lbq_hw.streaming import records
from lbq_hw.streaming.config import StreamConfig

Fields = dict[str, int]
Rows = list[list[int]]
"""Columns that are visited, by row."""

SMALL = StreamConfig(
    lanes=8, units=2, weight_bits=4, acc_bits=10, membrane_bits=14, planes=3, input_planes=2,
    input_channels=2, shifts=2, decay_bits=3, fraction_low=1, fraction_high=3, side=6, columns=6,
    window=3, padding=1, reach=6, column_steps=2, tiles=3, layer_paths=3, level_words=1024,
    weight_rows=64, membrane_words=512, param_words=32, positions=60, map_rows=32, taps=16,
    record_words=64, identities=1, resets=1, zero_resets=1, floors=1,
)  # fmt: skip
CONFIGS = {
    "several groups": SMALL,
    "one group, no leaks": replace(SMALL, units=8, planes=1, positions=0),
    "more planes than groups": replace(SMALL, lanes=4, planes=5),
}


def layer_record(c: StreamConfig, **values: int) -> Fields:
    """A layer; what is not named is 0."""
    return dict.fromkeys((field.name for field in records.layer_fields(c)), 0) | values


def random_layer(c: StreamConfig, source: random.Random, **values: int) -> Fields:
    """A layer of random size, somewhere in the memories."""
    tiles, groups = source.randrange(1, c.tiles + 1), source.randrange(1, c.groups + 1)
    planes, columns = source.randrange(1, c.planes + 1), source.randrange(1, c.columns + 1)
    most = groups if tiles == 1 else c.groups
    sizes = {"membrane": (tiles - 1) * c.groups + groups, "level": tiles * planes}
    places = {
        name: value
        for kind, size in sizes.items()
        for name, value in {
            kind: source.randrange(64),
            f"{kind}_pixel": size,
            f"{kind}_row": size * columns,
        }.items()
    }
    return layer_record(
        c,
        tiles_last=tiles - 1,
        groups_last=groups - 1,
        planes_last=planes - 1,
        beats_last=max(most, planes) - 1,
        rows_last=source.randrange(3, c.side),
        columns_last=columns - 1,
        stamp=source.randrange(8) if c.leaks else 0,
        param=source.randrange(8),
        map=source.randrange(16),
        **places | values,
    )


def random_rows(layer: Fields, source: random.Random) -> Rows:
    """Every other row or so has no visit at all."""
    columns = range(layer["columns_last"] + 1)
    return [
        [x for x in columns if source.random() < chance]
        for chance in source.choices((0, 0.6), k=layer["rows_last"] + 1)
    ]


@dataclass(frozen=True)
class Tile:
    """The beats of one tile of a visit; of a row without visits, one beat and no number."""

    row: int
    column: int
    number: int | None
    beats: list[Fields]


def tiles_of(c: StreamConfig, layer: Fields, rows: Rows) -> list[Tile]:
    """All tiles of a layer in their order.

    The group and the membranes of a beat that has none are 0 here.
    """
    found = []
    for y, columns in enumerate(rows):
        layer_end = int(y == layer["rows_last"])
        if not columns:
            none = dict.fromkeys((name for name, _ in Beat(c)), 0)
            ends = none | {"row_end": 1, "layer_end": layer_end}
            found.append(Tile(y, 0, None, [ends]))
        for x, tile in product(columns, range(layer["tiles_last"] + 1)):
            first, level = (
                layer[kind] + y * layer[f"{kind}_row"] + x * layer[f"{kind}_pixel"]
                for kind in ("membrane", "level")
            )
            last_tile = tile == layer["tiles_last"]
            groups = layer["groups_last"] + 1 if last_tile else c.groups
            beats = []
            for number in range(layer["beats_last"] + 1):
                tile_end = number == layer["beats_last"]
                visit_end = tile_end and last_tile
                row_end = int(visit_end and x == columns[-1])
                valid = int(number < groups)
                beats.append(
                    {
                        "group": number * valid,
                        "valid": valid,
                        "owed": 0,
                        "membrane": (first + tile * c.groups + number) * valid,
                        "level": level + tile * (layer["planes_last"] + 1),
                        "column": x,
                        "tile_end": int(tile_end),
                        "visit_end": int(visit_end),
                        "row_end": row_end,
                        "layer_end": row_end * layer_end,
                    }
                )
            found.append(Tile(y, x, tile, beats))
    return found
