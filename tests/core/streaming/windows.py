"""Layers and maps for the blocks that find positions and fetch what their windows see."""

from __future__ import annotations

import random

from lbq_hw.sim.drawn.streams import stream_network
from lbq_hw.sim.models.traffic import Stall, never, stalls
from lbq_hw.streaming import records
from lbq_hw.streaming.compiler import compile_stream
from lbq_hw.streaming.config import StreamConfig
from lbq_hw.streaming.machine import layers_of
from lbq_hw.streaming.program import StreamProgram

Fields = dict[str, int]
SEEDS = (2, 5, 11)


def drawn(seed: int) -> tuple[StreamProgram, Fields, list[Fields], list[int]]:
    """A program, the records of its layer with most windows, and maps with a few bits."""
    program = compile_stream(stream_network(seed), lanes=4, units=2, horizon=16)
    layer, paths = max(layers_of(program), key=lambda found: found[0]["rows_last"])
    source, c = random.Random(seed), program.config
    width = 1 << c.columns
    maps = [source.randrange(width) & source.randrange(width) for _ in range(c.map_rows)]
    return program, layer, paths, [m * (source.random() < 0.6) for m in maps]


def layer_and_paths(c: StreamConfig, paths: list[Fields]) -> list[Fields]:
    missing = c.layer_paths - len(paths)
    return [*paths, *[dict.fromkeys((f.name for f in records.path_fields(c)), 0)] * missing]


def late(seed: int, rate: float) -> Stall:
    return stalls(seed, rate) if rate else never
