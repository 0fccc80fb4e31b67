# amaranth: UnusedElaboratable=no
"""A record loader against the records of random programs, cycle by cycle."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from core.harness import Bench, ones
from core.streaming.layers import SMALL

from lbq_hw.core.streaming.loader import RecordLoader
from lbq_hw.isa.record import SLICE
from lbq_hw.streaming import records
from lbq_hw.streaming.config import StreamConfig

TINY = StreamConfig(
    lanes=4, units=2, weight_bits=2, acc_bits=4, membrane_bits=5, planes=1, input_planes=1,
    input_channels=1, shifts=0, decay_bits=0, fraction_low=0, fraction_high=0, side=1, columns=1,
    window=1, padding=0, reach=1, column_steps=2, tiles=1, layer_paths=2, level_words=2,
    weight_rows=3, membrane_words=2, param_words=2, positions=0, map_rows=2, taps=3,
    record_words=64, identities=0, resets=0, zero_resets=0, floors=0,
)  # fmt: skip
CONFIGS = {
    "small": SMALL,
    "one path": replace(SMALL, layer_paths=1),
    "records of few bits": TINY,
    "wide": replace(SMALL, side=200, columns=200, record_words=256),
}
Words = list[int]
Layers = list[tuple[Words, list[Words]]]
"""The words of the records of each layer and its paths."""


def random_record(fields: records.Fields, source: random.Random, **values: int) -> Words:
    drawn = {f.name: source.getrandbits(f.bits) - (f.signed << f.bits >> 1) for f in fields}
    return records.encode(fields, drawn | values)


def random_program(c: StreamConfig, source: random.Random) -> Layers:
    """Layers with one path, with all that there can be, and others."""
    counts = [1, c.layer_paths, 1, source.randrange(c.layer_paths) + 1]
    return [
        (
            random_record(
                records.layer_fields(c),
                source,
                paths_last=count - 1,
                last=int(number == len(counts) - 1),
                input_last=input_rows(c) - 1,
            ),
            [random_record(records.path_fields(c), source) for _ in range(count)],
        )
        for number, count in enumerate(counts)
    ]


def input_rows(c: StreamConfig) -> int:
    return min(4, c.side)


def joined(words: list[int]) -> int:
    return sum(word << SLICE * i for i, word in enumerate(words))


class Steps:
    """Starts a step, says that its layers are done, each after a while, and starts the next."""

    def __init__(self, block: Any, steps: int, source: random.Random) -> None:
        self.block, self.source = block, source
        self.left, self.wait = steps, 2
        self.acts = ["start"]
        self.samples = [block.starts, block.finished]
        self.cycles: dict[str, list[int]] = {"start": [], "done": []}
        self.now = 0

    @property
    def done(self) -> bool:
        return not self.left

    def set(self, ctx: Any) -> None:
        self.wait -= 1
        acts = bool(self.acts) and self.wait < 0 and not self.done
        for name in ("start", "done"):
            ctx.set(getattr(self.block, name), acts and self.acts == [name])
        if acts:
            self.cycles[self.acts.pop()].append(self.now)

    def see(self, cycle: int, starts: int, finished: int) -> None:
        self.now = cycle + 1
        self.left -= finished
        if starts or finished:
            self.acts, self.wait = ["done" if starts else "start"], self.source.randrange(5)


@pytest.mark.parametrize("name", CONFIGS)
def test_each_layer_is_loaded_and_started_once_the_one_before_is_done(name: str) -> None:
    c, source = CONFIGS[name], random.Random(name)
    program = random_program(c, source)
    bench = Bench(RecordLoader(c))
    block: Any = bench.block
    steps = bench.add(Steps(block, 2, source))
    words = [word for layer, paths in program for one in (layer, *paths) for word in one]
    store = bench.store(block.words, words)
    seen = bench.probe(
        starts=block.starts, number=block.number, clear=block.clear, row=block.clear_addr,
        finished=block.finished, layer=block.layer,
        **{f"path_{i}": block.paths[i] for i in range(c.layer_paths)},
    )  # fmt: skip
    bench.run(extra=3)
    reads, starts, cleared, finished = [], [], [], []
    done = iter(steps.cycles["done"])
    for begins in steps.cycles["start"]:
        for number, (layer, paths) in enumerate(program):
            count = len(layer) + sum(map(len, paths))
            reads += range(begins + 1, begins + 1 + count)
            starts.append(begins + count + 2)
            begins = next(done)
            records_held = {"layer": joined(layer), "number": number}
            records_held |= {f"path_{i}": joined(path) for i, path in enumerate(paths)}
            for name, value in records_held.items():
                assert set(seen[name][starts[-1] : begins + 1]) == {value}
        cleared += [(begins + 1 + row, row) for row in range(input_rows(c))]
        finished.append(cleared[-1][0])
    assert store.reads == list(zip(reads, [*range(len(words))] * 2, strict=True))
    assert ones(seen["starts"]) == starts
    assert [(cycle, seen["row"][cycle]) for cycle in ones(seen["clear"])] == cleared
    assert ones(seen["finished"]) == finished
