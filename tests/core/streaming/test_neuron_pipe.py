# amaranth: UnusedElaboratable=no
"""Membranes, levels and cycles of a neuron pipe against the rules of golden's neurons."""

from __future__ import annotations

import random
from bisect import bisect
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import pytest
from core.harness import Bench, Driver, ones
from core.streaming.layers import SMALL, Fields, layer_record
from core.streaming.neurons import WORDS, Given, Neurons, packed, random_beat, random_layers

from lbq_hw.core.streaming.neuron_pipe import NeuronPipe
from lbq_hw.numeric import Integers
from lbq_hw.sim.ends import Script
from lbq_hw.sim.models.traffic import Stall, never, stalls
from lbq_hw.streaming.config import StreamConfig

CONFIGS = {
    "every rule": SMALL,
    "thresholds are subtracted": replace(
        SMALL, units=4, planes=1, positions=0, resets=0, zero_resets=0, floors=0, fraction_high=1
    ),
    "resets": replace(SMALL, units=1, planes=5, zero_resets=0, floors=0, decay_bits=1),
    "to zero, with floors": replace(SMALL, resets=0, fraction_low=0, decay_bits=5),
}


class Rounds:
    """Holds the record of each layer until all of its beats have left."""

    def __init__(self, block: Any, layers: list[Fields], counts: list[int]) -> None:
        self.block, self.layers = block, layers
        self.ends = list(accumulate(counts))
        self.samples = [block.o.valid]
        self.left = 0

    @property
    def done(self) -> bool:
        return self.left == self.ends[-1]

    @property
    def at(self) -> int:
        return min(bisect(self.ends, self.left), len(self.layers) - 1)

    def set(self, ctx: Any) -> None:
        ctx.set(self.block.layer, self.layers[self.at])

    def see(self, cycle: int, left: int) -> None:
        del cycle
        self.left += left


class Beside:
    """Drives sums and the word of parameters with the next beat that is taken."""

    def __init__(self, block: Any, driver: Driver, given: list[Given]) -> None:
        self.block, self.driver, self.given = block, driver, given
        self.samples: list[Any] = []
        self.done = True

    def set(self, ctx: Any) -> None:
        at = min(len(self.driver.cycles), len(self.given) - 1)
        ctx.set(self.block.sums, self.given[at].sums)
        ctx.set(self.block.param, self.given[at].param)

    def see(self, cycle: int) -> None:
        """Watch nothing."""


class AtEnd(Script):
    """A script that begins once all beats have left, in the cycle `first`."""

    def __init__(self, rounds: Rounds, signals: Any, steps: list[Fields]) -> None:
        super().__init__(signals, steps)
        self.rounds, self.first = rounds, 0

    def set(self, ctx: Any) -> None:
        if self.rounds.done:
            super().set(ctx)
        else:
            for signal in self.signals.values():
                ctx.set(signal, 0)

    def see(self, cycle: int) -> None:
        self.first = self.first if self.at > 1 else cycle


@dataclass
class Seen:
    """What a run of a pipe has shown."""

    taken: list[int]
    left: list[int]
    beats: list[Fields]
    levels: list[list[int]]
    hot: list[int]
    overflow: list[int]
    membranes: list[int]
    """At the end, of every word; and again after every other one was cleared."""


def run(
    c: StreamConfig,
    params: list[Fields],
    layers: list[tuple[Fields, list[Given]]],
    stall: Stall = never,
    *,
    alone: bool = False,
) -> Seen:
    """Pass beats through a pipe; each `alone`, or as they come."""
    bench = Bench(NeuronPipe(c))
    block: Any = bench.block
    port, host = block.params, block.membranes
    script = bench.script({"addr": port.addr, "data": port.data, "en": port.en}, params)
    rounds = bench.add(Rounds(block, [one for one, _ in layers], [len(g) for _, g in layers]))
    given = [beat for _, beats in layers for beat in beats]

    def waits() -> bool:
        sent = len(driver.cycles)
        may = sent == rounds.left if alone else sent < rounds.ends[rounds.at]
        return not script.done or not may or stall()

    driver = bench.drive(block.i, [one.beat for one in given], stall=waits)
    bench.add(Beside(block, driver, given))
    reads = [{"addr": word, "en": 1} for word in range(WORDS)]
    clears = [{"clear": 1, "clear_addr": word} for word in range(0, WORDS, 2)]
    signals = {"addr": host.addr, "en": host.en, "clear": block.clear}
    steps = [*reads, *clears, *reads, {}]
    end = bench.add(AtEnd(rounds, signals | {"clear_addr": block.clear_addr}, steps))
    taken = bench.monitor(block.o, len(given))
    levels = {f"level_{i}": block.levels[i] for i in range(c.units)}
    seen = bench.probe(hot=block.hot, overflow=block.overflow, data=host.data, **levels)
    bench.run()
    answers = [end.first + 1 + at for at, step in enumerate(steps) if "en" in step]
    return Seen(
        taken=driver.cycles,
        left=taken.cycles,
        beats=taken.payloads,
        levels=[[seen[name][cycle] for name in levels] for cycle in taken.cycles],
        hot=[seen["hot"][cycle] for cycle in taken.cycles],
        overflow=ones(seen["overflow"]),
        membranes=[seen["data"][cycle] for cycle in answers],
    )


def passes(c: StreamConfig, given: list[Given], taken: list[int]) -> Iterator[tuple[int, int]]:
    """When each beat leaves, and when the next one can be taken at the earliest."""
    left = 0
    for one, at in zip(given, taken, strict=True):
        moved = max(at + 1, left)
        left = moved + one.leaks
        yield left + c.planes + 4, moved


def check(c: StreamConfig, seen: Seen, given: list[Given], membranes: Integers) -> None:
    def without_owed(beat: Fields) -> Fields:
        return {name: value for name, value in beat.items() if name != "owed"}

    assert [*map(without_owed, seen.beats)] == [without_owed(one.beat) for one in given]
    assert seen.left == [left for left, _ in passes(c, given, seen.taken)]
    real = [at for at, one in enumerate(given) if one.beat["valid"]]
    assert [seen.levels[at] for at in real] == [given[at].levels for at in real]
    assert [seen.hot[at] for at in real] == [given[at].hot for at in real]
    assert seen.overflow == []
    words = [packed(word, c.membrane_bits) for word in membranes]
    cleared = [word * (at % 2) for at, word in enumerate(words)]
    assert seen.membranes == words + cleared


@pytest.mark.parametrize("rate", [0, 0.4])
@pytest.mark.parametrize("name", CONFIGS)
def test_neurons_of_every_kind_are_updated_as_golden_updates_them(name: str, rate: float) -> None:
    c, source = CONFIGS[name], random.Random(name)
    neurons = Neurons(c, source)
    layers = []
    for layer in random_layers(c, source):
        given = [neurons.given(layer, word) for word in source.sample(range(WORDS), WORDS)]
        for _ in range(4):
            given.insert(
                source.randrange(len(given)),
                Given(random_beat(c, source), [0] * c.units, 0, [], 0, 1),
            )
        layers.append((layer, given))
    seen = run(c, neurons.params(), layers, stalls(3, rate) if rate else never)
    every = [one for _, given in layers for one in given]
    check(c, seen, every, neurons.v)
    if not rate:
        first = 0
        for _, given in layers:
            taken = seen.taken[first : first + len(given)]
            earliest = [at for _, at in passes(c, given, taken)]
            assert taken[1:] == earliest[:-1]
            first += len(given)


def test_membranes_are_written_in_the_cycle_in_which_their_beat_leaves() -> None:
    c, source = SMALL, random.Random(5)
    neurons = Neurons(c, source)
    layer = layer_record(c, capacity=7, leaks=1, decay=7)
    given = [neurons.given(layer, 3) for _ in range(20)]
    seen = run(c, neurons.params(), [(layer, given)], alone=True)
    check(c, seen, given, neurons.v)
    assert seen.taken[1:] == [left + 1 for left in seen.left[:-1]]


MOST = (1 << (SMALL.membrane_bits - 1)) - 1
# Bias, sum, reset, whether there are neurons (readouts come first); and what must be told.
BOUNDS = [
    (MOST, 0, 0, False, False),
    (MOST - 1, 1, 0, False, True),
    (-MOST - 1, 0, 0, False, False),
    (-MOST, -1, 0, False, True),
    (MOST, 511, 0, False, True),
    (-MOST - 1, -512, 0, False, True),
    (MOST - 1, 1, MOST, True, True),  # although no more than 1 would be left
    (MOST - 1, 0, -1, True, False),
    (MOST, 0, -1, True, True),
    (-MOST - 1, 0, -1, True, False),
]


@pytest.mark.parametrize("valid", [0, 1])
@pytest.mark.parametrize("unit", range(SMALL.units))
def test_a_membrane_beyond_its_width_is_told_when_its_beat_leaves(unit: int, valid: int) -> None:
    c, source = SMALL, random.Random(6)
    neurons = Neurons(c, source)
    neurons.bias[:], neurons.theta[:], neurons.reset[:], neurons.floor[:] = 0, 1, 0, -MOST - 1
    layers = []
    for readout in (1, 0):
        given = []
        for param, (bias, total, reset, fires, _) in enumerate(BOUNDS):
            if fires == readout:
                continue
            neurons.bias[param, unit], neurons.reset[param, unit] = bias, reset
            beat = random_beat(c, source) | {"membrane": param, "valid": valid}
            sums = [total * (i == unit) for i in range(c.units)]
            given.append(Given(beat, sums, param, [], 0, 1))
        layers.append((layer_record(c, readout=readout, capacity=1), given))
    seen = run(c, neurons.params(), layers)
    beyond = [bound[-1] for bound in BOUNDS]
    assert seen.overflow == [at for at, told in zip(seen.left, beyond, strict=True) if told * valid]
