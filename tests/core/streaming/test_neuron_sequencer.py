# amaranth: UnusedElaboratable=no
"""A sequencer against the beats of whole layers, step by step."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import pytest
from core.harness import Bench
from core.streaming.layers import CONFIGS, Fields, Rows, random_layer, random_rows, tiles_of

from lbq_hw.core.streaming.neuron_sequencer import NeuronSequencer
from lbq_hw.sim.models.traffic import Stall, never, stalls
from lbq_hw.streaming.config import StreamConfig


@dataclass
class Run:
    """One step of one layer; stamps of `clears` become 0 before it."""

    layer: Fields
    now: int
    rows: Rows
    sums: list[list[int]]
    clears: list[int] = field(default_factory=list)

    def marks(self) -> list[Fields]:
        found = []
        for y, columns in enumerate(self.rows):
            ends = {"row_end": 1, "layer_end": int(y == self.layer["rows_last"])}
            row = [{"column": x, "real": 1, "row_end": 0, "layer_end": 0} for x in columns]
            row = row or [{"column": 0, "real": 0}]
            found += [*row[:-1], row[-1] | ends]
        return found


class Layers:
    """Runs layers one after the other: each begins a while after the last beat of the one before.
    `marks` of those that began before this cycle may come.
    """

    def __init__(self, block: Any, runs: list[Run], source: random.Random) -> None:
        self.block, self.source = block, source
        self.samples = [block.o.valid & block.o.ready & block.o.payload.layer_end]
        self.left, self.idle = list(runs), True
        self.clears = list(runs[0].clears)
        self.starts: list[int] = []
        self.marks = self.coming = self.cycle = 0

    @property
    def done(self) -> bool:
        return self.idle and not self.left

    def set(self, ctx: Any) -> None:
        block, self.marks = self.block, self.coming
        begins = self.idle and bool(self.left) and not self.clears and self.source.random() < 0.5
        ctx.set(block.start, begins)
        ctx.set(block.clear, self.idle and bool(self.clears))
        if self.idle and self.clears:
            ctx.set(block.clear_addr, self.clears.pop())
        if begins:
            run = self.left.pop(0)
            ctx.set(block.layer, run.layer)
            ctx.set(block.now, run.now)
            self.clears = list(self.left[0].clears) if self.left else []
            self.starts.append(self.cycle)
            self.coming += len(run.marks())
            self.idle = False

    def see(self, cycle: int, ended: int) -> None:
        self.cycle = cycle + 1
        self.idle = self.idle or bool(ended)


def random_runs(c: StreamConfig, source: random.Random) -> list[Run]:
    """Steps of three layers whose stamps overlap, some far apart."""
    layers = [random_layer(c, source, leaks=int(c.leaks and n != 1)) for n in range(3)]
    runs, now = [], 0
    half = 1 << (c.acc_bits - 1)
    for step in range(4):
        now += source.choice((1, 1, 1 << (c.stamp_bits - 1)))
        for layer in layers:
            rows = random_rows(layer, source)
            tiles = sum(map(len, rows)) * (layer["tiles_last"] + 1)
            sums = [[source.randrange(-half, half) for _ in range(c.lanes)] for _ in range(tiles)]
            runs.append(Run(layer, now % (1 << c.stamp_bits), rows, sums))
        if c.leaks and step == 2:
            runs[-1].clears = source.sample(range(c.positions), c.positions // 2)
    return runs


ENDS = ("valid", "tile_end", "visit_end", "row_end", "layer_end")


def expected(c: StreamConfig, runs: list[Run]) -> list[dict[str, Any]]:
    """What each beat must have: a group with its parameters and sums, or nothing of that."""
    found, stamps = [], [0] * c.positions
    for run in runs:
        layer, sums = run.layer, iter(run.sums)
        for place in run.clears:
            stamps[place] = 0
        for tile in tiles_of(c, layer, run.rows):
            if tile.number is None:
                found.append({name: tile.beats[0][name] for name in ENDS})
                continue
            total, first = next(sums), layer["param"] + tile.number * c.groups
            place = layer["stamp"] + tile.row * (layer["columns_last"] + 1) + tile.column
            for beat in tile.beats:
                wanted: dict[str, Any] = {name: beat[name] for name in (*ENDS, "level", "column")}
                if beat["valid"]:
                    group = beat["group"]
                    wanted |= {"group": group, "membrane": beat["membrane"], "param": first + group}
                    wanted["sums"] = total[group * c.units : (group + 1) * c.units]
                if beat["valid"] and layer["leaks"]:
                    wanted["owed"] = (run.now - stamps[place]) % (1 << c.stamp_bits)
                found.append(wanted)
            if layer["leaks"] and tile.beats[-1]["visit_end"]:
                stamps[place] = run.now
    return found


def cycles_of(c: StreamConfig, run: Run, start: int) -> list[int]:
    """When the beats of a layer are taken if nothing else waits."""
    found, now = [], start + 1
    for tile in tiles_of(c, run.layer, run.rows):
        now += tile.number is not None  # sums are taken
        found += range(now, now + len(tile.beats))
        now += len(tile.beats)
    return found


@pytest.mark.parametrize("rate", [0, 0.5])
@pytest.mark.parametrize("name", CONFIGS)
def test_every_visit_has_its_groups_and_its_empty_beats(name: str, rate: float) -> None:
    c, source = CONFIGS[name], random.Random(name)
    runs = random_runs(c, source)
    bench = Bench(NeuronSequencer(c))
    block: Any = bench.block
    layers = bench.add(Layers(block, runs, source))

    def late(seed: int) -> Stall:
        return stalls(seed, rate) if rate else never

    stall = late(1)
    marks = bench.drive(
        block.i_mark,
        [mark for run in runs for mark in run.marks()],
        stall=lambda: len(marks.cycles) >= layers.marks or stall(),
    )
    bench.drive(block.i_sums, [total for run in runs for total in run.sums], stall=late(2))
    wanted = expected(c, runs)
    taken = bench.monitor(block.o, len(wanted), stall=late(3))
    groups = {f"sum_{i}": block.o_sums[i] for i in range(c.units)}
    seen = bench.probe(param=block.param, **groups)
    bench.run()
    for cycle, beat, want in zip(taken.cycles, taken.payloads, wanted, strict=True):
        sums = [seen[group][cycle] for group in groups]
        found = beat | {"param": seen["param"][cycle], "sums": sums}
        assert {name: found[name] for name in want} == want
    ends = [
        cycle
        for cycle, beat in zip(taken.cycles, wanted, strict=True)
        if beat["visit_end"] or beat["row_end"]
    ]
    assert marks.cycles == ends
    if not rate:
        starts = zip(runs, layers.starts, strict=True)
        assert taken.cycles == [at for run, start in starts for at in cycles_of(c, run, start)]
