"""Random legal tables for the walker."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from lbq_hw import isa
from lbq_hw.config import CoreConfig
from lbq_hw.core.payload import ScanKind
from lbq_hw.core.walk.tables import Table
from lbq_hw.isa.record import SLICE
from lbq_hw.network.neuron import FLAGS, RULES
from lbq_hw.sim.models.walks import walk

Tables = dict[str, list[int]]

SMALL = CoreConfig(
    lanes=8,
    word=16,
    summary=4,
    units=2,
    timesteps=5,
    side=6,
    window=6,
    row_words=4,
    plane_words=200,
    weight_rows=100,
    channels=40,
    logits=24,
    layers=4,
    paths=6,
    segments=12,
    runs=13,
    layer_paths=3,
)

SHAPES = [
    SMALL,
    SMALL.with_(lanes=4, word=8, summary=1, units=4, layer_paths=4, decay_bits=0, fraction_bits=0),
    SMALL.with_(word=32, summary=8, plane_words=256, weight_rows=120, channels=8, layer_paths=1),
    SMALL.with_(timesteps=1, window=1, layer_paths=1),
    SMALL.with_(exponents=5, identities=0, resets=0),
    SMALL.with_(layer_paths=1, exponents=2, identities=0, resets=0),
    SMALL.with_(**{rule.ability: 1 for rule in RULES}),
]


class Draw:
    """Random legal records with small loops; all their words are within the memory."""

    def __init__(self, config: CoreConfig, seed: int) -> None:
        self.config, self.random = config, random.Random(seed)
        self.tables: Tables = {name: [] for name in isa.TABLES}

    def add(self, table: str, values: Mapping[str, int]) -> int:
        """Append a record; a field that the core does not have is 0, whatever was drawn."""
        record = isa.TABLES[table]
        slots = record.slots(self.config)
        there = {name: value if slots[name].width else 0 for name, value in values.items()}
        self.tables[table].append(record.encode(self.config, there))
        return len(self.tables[table]) - 1

    def most(self, table: str, name: str, limit: int) -> int:
        return self.random.randint(
            0, min(limit, isa.TABLES[table].slots(self.config)[name].field.largest(self.config))
        )

    def layer(self, *, last: bool) -> None:
        config, draw = self.config, self.random
        paths = [self.path() for _ in range(draw.randint(1, min(2, config.layer_paths)))]
        exponents = sorted(
            (draw.randint(0, config.exponents) for _ in range(draw.randint(1, 3))), reverse=True
        )
        segments = [self.segment(len(paths), exponent) for exponent in exponents]
        planes, plane = draw.randint(1, config.planes), draw.randint(0, 4)
        window = min(draw.choice((0, 0, 1, 2)), config.window - 1)
        tiles = self.most("layers", "tiles_last", 2)
        readout = int(last and draw.random() < 0.5)
        self.add(
            "layers",
            {
                "last": last,
                "readout": readout,
                "static": int(draw.random() < 0.3),
                "rows_last": draw.randint(0, 1 if readout else 2),
                "columns_last": draw.randint(0, 0 if readout else 2),
                "tiles_last": 0 if readout else tiles,
                "time_last": self.most("layers", "time_last", 3 - window),
                "window_rows_last": window,
                "window_columns_last": draw.randint(0, window),
                "window_row_init": -draw.randint(0, window),
                "window_column_init": -draw.randint(0, 1),
                "window_row_step": draw.randint(0, 2),
                "window_column_step": draw.randint(0, 2),
                "conv_rows_last": draw.randint(2, 5),
                "conv_columns_last": draw.randint(2, 5),
                "capacity": self.most("layers", "capacity", 99),
                "planes_last": planes - 1,
                "decay": self.most("layers", "decay", 999),
                "fraction": self.most("layers", "fraction", 99),
                "param": self.most("layers", "param", 99) // (tiles + 1) // 2,
                "out_base": draw.randint(0, 60),
                "out_row": draw.randint(0, 4),
                "out_plane": plane,
                "out_frame": planes * plane,
                "out_pitch": draw.choice((8, 16, 24)),
                "out_chunk": self.most("layers", "out_chunk", 9),
                "path_first": paths[0],
                "path_last": paths[-1],
                "segment_first": segments[0],
                "segment_last": segments[-1],
                "partial_in": draw.randint(0, 1) if config.external else 0,
                "partial_out": draw.randint(0, 1) if config.external else 0,
                "reserved": 0,
            }
            | {rule.name: getattr(config, rule.ability) and draw.randint(0, 1) for rule in FLAGS},
        )

    def path(self) -> int:
        config, draw = self.config, self.random
        runs = [self.run() for _ in range(draw.randint(1, 3))]
        low, left = draw.randint(0, 4), draw.randint(0, 20)
        return self.add(
            "paths",
            {
                "identity": int(draw.random() < 0.3) * config.identities,
                "row_init": draw.randint(-9, 9),
                "row_window": draw.randint(-3, 9),
                "row_step": draw.randint(-3, 9),
                "row_low": low,
                "row_high": max(0, low + draw.randint(-1, 30)),
                "column_init": draw.randint(-20, 20),
                "column_window": draw.randint(-9, 20),
                "column_step": draw.randint(-9, 20),
                "column_low": left,
                "column_high": max(0, left + draw.randint(-1, 60)),
                "frame_words": draw.randint(0, 12),
                "tile_rows": self.most("paths", "tile_rows", 99),
                "lanes": self.most("paths", "lanes", 99),
                "run_first": runs[0],
                "run_last": runs[-1],
            },
        )

    def run(self) -> int:
        draw = self.random
        return self.add(
            "runs",
            {
                "row": draw.randint(-5, 9),
                "column": draw.randint(-9, 30),
                "length_last": draw.choice((0, draw.randint(0, 100))),
                "weight": self.most("runs", "weight", 99),
            },
        )

    def segment(self, paths: int, exponent: int) -> int:
        draw = self.random
        return self.add(
            "segments",
            {
                "path": draw.randrange(paths),
                "exponent": exponent,
                "base": draw.randint(0, 90),
                "weight": self.most("segments", "weight", 99),
            },
        )


def draw_tables(config: CoreConfig, seed: int, layers: int = 2, most: int = 900) -> Tables:
    """The first draw, from `seed` upward, that is legal and short and has at least one request."""
    while True:
        draw = Draw(config, seed)
        for index in range(layers):
            draw.layer(last=index == layers - 1)
        found = walk(config, draw.tables)
        if found.error == isa.Error.NONE and 10 < sum(found.costs) + sum(found.moves) < most:
            return draw.tables
        seed += 1000


def slices(config: CoreConfig, tables: Mapping[str, Sequence[int]]) -> list[dict]:
    """Tables as the walker's `RecordSlice`s."""
    mask = (1 << SLICE) - 1
    return [
        {
            "table": table,
            "address": entry << table.part_bits(config) | part,
            "data": word >> SLICE * part & mask,
        }
        for table in Table
        for entry, word in enumerate(tables[table.kind])
        for part in range(table.record.slices(config))
    ]


def without_rest(requests: list[dict]) -> list[dict]:
    """The requests; each END with only its kind and ``end``, since the rest has no meaning."""
    end = {"kind": ScanKind.END, "end": 1}
    return [end if request["kind"] == ScanKind.END else request for request in requests]
