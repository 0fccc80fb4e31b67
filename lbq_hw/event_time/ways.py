"""Cycles of a recording in passes of some timesteps: estimates, since no core does this yet.

A pass is one layer at `block` timesteps. It executes only the visited positions, with timesteps
innermost, and keeps the membranes of a position in the neuron units from its first to its last
visit in the block. A block of 1 is streaming with time outermost; a block of all timesteps is the
order of the static core without the silent steps. Scanner, event FIFO, lanes and neuron units are
those of the static core, by the exact cycle model; only the walker in front of them differs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from lbq_hw.compiler import Program
from lbq_hw.config import CoreConfig
from lbq_hw.cycles.model import layer_cycles, layer_start
from lbq_hw.cycles.stages import Lanes, Neurons, NeuronTiming, Scanner, lane_way
from lbq_hw.cycles.work import LayerWork, Memory
from lbq_hw.event_time.visits import LayerVisits
from lbq_hw.isa.contents import Contents, replay
from lbq_hw.numeric import Integers

VISIT = 3
"""Cycles in which the map walker finds the next position and the addresses of its membranes."""
START = 8
"""Cycles from the end of a pass to the first position of the next, if its records are loaded."""


@dataclass(frozen=True, kw_only=True)
class Wiring:
    """The memories of a core, as far as cycles depend on them.

    `event_cycles`: cycles to read one weight row. `membranes`: membranes that are read or written
    per cycle if reads and writes take turns; None if a group is read and written in every cycle.
    """

    event_cycles: int = 1
    membranes: int | None = None

    def timing(self, config: CoreConfig) -> NeuronTiming:
        """Timing of the neuron units if each tile's membranes come from memory and go back."""
        timing = NeuronTiming.of(config)
        if self.membranes is None:
            return timing
        return replace(timing, groups=max(timing.groups, 2 * config.lanes // self.membranes))


def walker_cycles(
    program: Program, raw: NDArray[np.uint8], found: list[LayerVisits], *, block: int
) -> Integers:
    """Cycles of every pass, ``(blocks, layers)``, with the static core's walker: it reads records
    at the start of each pass, and requests every run of a visited position, even if it is empty.
    """
    config, timing = program.config, NeuronTiming.of(program.config)
    levels = {one.layer.name: one.emitted for one in found}
    tables = list(replay(program.tape, Contents(config)))
    cycles = np.zeros((-(-len(found[0].visited) // block), len(found)), np.int64)
    for number, (here, records) in enumerate(zip(found, tables, strict=True)):
        memory = Memory(program, raw, levels, number)
        work = LayerWork(config, records, memory, here.layer.shape[0])
        steps = work.steps
        visited = here.visited[steps.t, steps.row, steps.column]
        for index in range(len(cycles)):
            chosen = np.flatnonzero(visited & (steps.t // block == index))
            part = steps.at(chosen)
            place = (part.row * 1024 + part.column) * 1024 + part.tile
            first = np.diff(place, prepend=-1) != 0
            part = replace(part, first=first, skipped=np.zeros_like(chosen))
            cycles[index, number] = layer_start(work)
            if len(chosen):
                cycles[index, number] = layer_cycles("", work.only(part), timing=timing).cycles
    return cycles + _owed(found, block, timing)


def map_cycles(
    config: CoreConfig, found: list[LayerVisits], *, block: int, wiring: Wiring
) -> Integers:
    """The same with a walker that reads maps of non-empty pixels, one per plane, and requests only
    these pixels; the records of the next pass are already loaded when a pass ends.
    """
    timing = wiring.timing(config)
    cycles = np.zeros((-(-len(found[0].visited) // block), len(found)), np.int64)
    for number, here in enumerate(found):
        tiles = -(-here.layer.shape[0] // config.lanes)
        cycles[:, number] = START
        neurons = partial(
            Neurons,
            timing,
            updates=1,
            planes=max(1, here.layer.capacity.bit_length()),
            readout=here.layer.neuron is None,
        )
        for index, visits in groupby(_visits(here, block, wiring.event_cycles), itemgetter(0)):
            cycles[index, number] = _pass(config, neurons(), visits, tiles)
    return cycles + _owed(found, block, timing)


Visit = tuple[int, bool, list[int]]
"""The block of a visit, whether the position's membrane comes from memory, and the lanes' cycles
for each requested word."""


def _visits(here: LayerVisits, block: int, event_cycles: int) -> Iterator[Visit]:
    """The visits of a layer, block by block, a position's timesteps one after the other."""
    times, rows, columns = np.nonzero(here.visited)
    order = np.lexsort((times, columns, rows, times // block))
    before = None
    for t, y, x in np.stack((times, rows, columns), axis=1)[order].tolist():
        place = t // block, y, x
        yield t // block, place != before, _words(here.words(t, y, x) * event_cycles)
        before = place


def _words(planes: Integers) -> list[int]:
    """The lanes' cycles for each word of one visit, from events ``(planes, pixels)``, highest plane
    first. Doublings for planes without an event take place before the next event.
    """
    words: list[int] = []
    doublings = 0
    for row in planes[::-1].tolist():
        doublings += bool(words)
        for count in row:
            if count:
                words.append(count + max(0, doublings - 1))  # one doubling is part of the event
                doublings = 0
    if not words or doublings:  # the end of the step needs a null event
        words.append(max(1, doublings))
    return words


def _pass(config: CoreConfig, neurons: Neurons, visits: Iterable[Visit], tiles: int) -> int:
    lanes = Lanes(config.fifo_depth, neurons, way=lane_way(config))
    scanner = Scanner(lanes, far=config.spread)
    found, asked = START, START
    for _, first, words in visits:
        for _ in range(tiles):
            found += VISIT
            asked = max(asked, found - 1)
            for count in words:
                asked = scanner.take(asked + 1, [count])
            found = max(found, asked - VISIT)  # one position ahead
            lanes.end(first=first, emits=True)
    return neurons.idle()


def _owed(found: list[LayerVisits], block: int, timing: NeuronTiming) -> Integers:
    """Cycles of owed leaks: applied one by one, and overlapped by nothing else."""
    owed = np.stack([one.owed.sum(axis=(1, 2)) for one in found], axis=1) * timing.loop
    return np.add.reduceat(owed, np.arange(0, len(owed), block), axis=0)
