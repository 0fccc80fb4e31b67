"""Level words and their events for the blocks between them and the sums."""

from __future__ import annotations

import random

from lbq_hw.sim.drawn.streams import stream_network
from lbq_hw.streaming.compiler import compile_stream
from lbq_hw.streaming.config import StreamConfig


def config(identities: int) -> StreamConfig:
    """A core with identities, or without."""
    for seed in range(40):
        found = compile_stream(stream_network(seed), lanes=4, units=2, horizon=16).config
        if found.identities == identities and found.shifts and found.weight_rows > 32:
            return found
    raise AssertionError("no such network")


def words(c: StreamConfig, count: int, seed: int) -> list[dict[str, int]]:
    source = random.Random(seed)
    return [
        {
            "word": source.choice((0, source.randrange(1 << c.lanes))),
            "row": source.randrange(c.weight_rows - c.lanes),
            "shift": source.randrange(c.shifts + 1),
            "identity": source.randrange(1 + c.identities),
            "end": int(source.random() < 0.3 or number == count - 1),
        }
        for number in range(count)
    ]


def events_of(c: StreamConfig, word: dict[str, int]) -> list[dict[str, int]]:
    """The events of one word."""
    lanes, every = c.lanes if c.identities else 1, (1 << (c.lanes if c.identities else 1)) - 1
    bits = [i for i in range(c.lanes) if word["word"] >> i & 1]
    rows = [(word["row"] + i, every) for i in bits]
    if word["identity"] and bits:
        rows = [(word["row"], word["word"] & (1 << lanes) - 1)]
    if not rows and word["end"]:
        rows = [(word["row"], 0)]
    last = len(rows) - 1
    return [
        {"row": row, "shift": word["shift"], "mask": mask, "end": int(word["end"] and i == last)}
        for i, (row, mask) in enumerate(rows)
    ]
