"""The walker, and with it the cycles of each layer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from lbq_hw import isa
from lbq_hw.cycles.stages import Lanes, Neurons, NeuronTiming, Scanner, lane_way
from lbq_hw.cycles.work import Block, LayerWork
from lbq_hw.isa.regions import COUNTERS, Counters

STEPS_AHEAD = 17
"""Steps that can wait for their sums; one of them is in a register behind the queue's memory."""
SLOTS = 2
"""Steps whose fields of view the walker stores."""
SEGMENTS_AHEAD = 2
"""Pipeline stages of segments, up to the read of their runs."""
RUNS_AHEAD = 4
"""Pipeline stages of runs, from their read to their requests."""
BOUNDS = ("events", "scanner", "walker", "neurons")


@dataclass(frozen=True, kw_only=True)
class LayerCycles(Counters):
    """One layer of one image: the core's counters, as if the layer ran alone.

    `cycles` include the start of the layer and the wait for its last write, so that the cycles of a
    program are the sum over its layers. With external memory they also include `wait_cycles`, in
    which no pass ran because the tape was not read far enough; these count as scanner stalls, too.
    `acs`: bit-sparse accumulations. Each counts once, even if max-pool windows share a pixel or an
    identity has weights of several limbs. Pixels that no window covers are not executed and not
    counted. `bounds`: cycles that one part of the core would need if it never waited for the others
    (see `BOUNDS`).
    """

    name: str
    acs: int
    bounds: dict[str, int]
    wait_cycles: int = 0

    @property
    def overhead(self) -> int:
        """Cycles beyond the largest bound: start, end, and parts that wait for each other."""
        return self.cycles - self.wait_cycles - max(self.bounds.values())

    @property
    def costs(self) -> dict[str, int]:
        """Cycles by cause: `BOUNDS`, overhead, and memory if there were waits for it."""
        waits = {"memory": self.wait_cycles} if self.wait_cycles else {}
        return self.bounds | {"overhead": self.overhead} | waits

    @property
    def limit(self) -> str:
        """The largest of `costs`, by its name."""
        costs = self.costs
        return max(costs, key=costs.__getitem__)

    def later(self, cycles: int) -> LayerCycles:
        """The same layer, with additional cycles in which the lanes have no event."""
        assert self.scanner_stalls is not None
        return replace(
            self, cycles=self.cycles + cycles, scanner_stalls=self.scanner_stalls + cycles
        )

    def __add__(self, other: LayerCycles) -> LayerCycles:
        """The same layer of several images, or several passes of one layer."""
        names = (*COUNTERS, "acs", "wait_cycles")
        counts = {name: getattr(self, name) + getattr(other, name) for name in names}
        bounds = {name: self.bounds[name] + other.bounds[name] for name in BOUNDS}
        return LayerCycles(name=self.name, bounds=bounds, **counts)

    def summary(self, adders: int, *, images: int = 1) -> dict[str, Any]:
        """A JSON-able object by the names of ``python -m sim --json``: means, if of `images`."""
        return {
            "name": self.name,
            **{name: getattr(self, name) / images for name in COUNTERS},
            "acs_bit_sparse": self.acs / images,
            "utilisation": self.acs / (adders * self.cycles),
            "bounds": {name: cycles / images for name, cycles in self.costs.items()},
            "limit": self.limit,
        }


def layer_cycles(name: str, work: LayerWork, *, timing: NeuronTiming | None = None) -> LayerCycles:
    """The cycles of one layer or pass; `timing` replaces the timing of the core's neuron units."""
    walk = _Walk(work, timing or NeuronTiming.of(work.config))
    totals = dict.fromkeys(("events", "nulls", "words", "ends", "asked", "empty", "acs"), 0)
    for block in work.blocks():
        walk.run(block)
        for total in totals:
            totals[total] += getattr(block, total)
    # A core with external memory counts as idle once it has been idle for three cycles.
    cycles = walk.neurons.idle() + (3 if work.config.external else 0)
    lane_cycles = totals["events"] + totals["nulls"]
    return LayerCycles(
        name=name,
        cycles=cycles,
        events=totals["events"],
        null_events=totals["nulls"],
        scanner_stalls=cycles - lane_cycles - walk.lanes.stalls,
        neuron_stalls=walk.lanes.stalls,
        words=totals["words"],
        empty_requests=totals["empty"],
        acs=totals["acs"],
        bounds={
            "events": lane_cycles,
            "scanner": max(totals["asked"], totals["words"] + totals["ends"]),
            "walker": walk.least,
            "neurons": walk.neurons.least,
        },
    )


class _Walk:
    """The walker of one layer: it opens steps, fetches their segments, and cuts runs into requests.

    Segments and runs move in one pipeline, which moves as a whole: it stalls until the last request
    of the run in its last stage is taken. `_moves` has the cycle of each move; after move n, run n
    is in the last stage. `_starts` has, for each segment or bubble, the move of its first run.
    """

    def __init__(self, work: LayerWork, timing: NeuronTiming) -> None:
        layer, config = work.layer, work.config
        times = layer["time_last"] + 1
        self._sizes = work.sizes
        self.neurons = Neurons(
            timing,
            updates=times if layer["static"] else 1,
            planes=layer["planes_last"] + 1,
            readout=bool(layer["readout"]),
            leaves=bool(layer["partial_out"]),
        )
        self.lanes = Lanes(config.fifo_depth, self.neurons, way=lane_way(config))
        self._scanner = Scanner(self.lanes, far=config.spread)
        self._visit = len(work.paths) + 2  # cycles of a position
        self._visits = len(work.steps) + int(work.steps.skipped.sum())
        self._opened: list[int] = []
        self._left: list[int] = []  # cycles in which the slots of steps became free
        self._slot_free = 1 if config.external else 0  # until the walker sees it
        self._free = layer_start(work)
        self._moves: list[int] = []
        self._starts: list[int] = []

    @property
    def least(self) -> int:
        """Cycles of the walker without any wait."""
        runs = sum(self._sizes) * len(self._opened)
        return max(runs, self._visit * self._visits)

    def run(self, block: Block) -> None:
        """The steps of a block, which follow the steps of the previous block."""
        steps = block.steps
        requests = iter(block.requests)
        for skipped, first, last in zip(
            steps.skipped.tolist(), steps.first.tolist(), steps.last.tolist(), strict=True
        ):
            self._open(skipped)
            for size in self._sizes:
                self._starts.append(len(self._moves) - 1)
                for _ in range(size):
                    self._cut(next(requests))
            self.lanes.end(first=first, emits=last)
            # A slot becomes free when the last segment of its step has moved on.
            self._left.append(self._moves[self._starts[-1] - RUNS_AHEAD])

    def _open(self, skipped: int) -> None:
        """Move the fields of view to the next step; its segments may come in the next cycle."""
        step = len(self._opened)
        since = self._free
        if step >= SLOTS:
            since = max(since, self._left[step - SLOTS] + self._slot_free)
        if step >= STEPS_AHEAD - 1:
            since = max(since, self._opened[step - STEPS_AHEAD + 1] + 2)
        if step >= STEPS_AHEAD:
            since = max(since, self.lanes.sums[step - STEPS_AHEAD] + 1)
        opened = since + (skipped + 1) * self._visit - 1
        self._opened.append(opened)
        self._free = opened + 1
        if not step:
            bubbles = SEGMENTS_AHEAD + RUNS_AHEAD
            self._moves = list(range(opened + 1, opened + 2 + bubbles))
            self._starts = list(range(RUNS_AHEAD, bubbles))
        # The pipeline moves without content until there is a step.
        while self._moves[self._starts[-SEGMENTS_AHEAD] - RUNS_AHEAD] <= opened:
            self._starts.append(len(self._moves) - 1)
            self._cut([])

    def _cut(self, requests: list[list[int]]) -> None:
        """The next run in the last stage; it leaves with its last request."""
        cycle = self._moves[-1] + 1
        offered = cycle
        for words in requests:
            cycle = self._scanner.take(offered, words)
            offered = cycle + 1
        self._moves.append(cycle)


def layer_start(work: LayerWork) -> int:
    """Cycle in which the walker begins to move fields of view, after it has read the layer's
    records slice by slice, and added up planes and frames. With external memory each read takes one
    cycle more.
    """
    layer, config = work.layer, work.config
    frames = layer["time_last"] if layer["static"] else 0
    read = 1 if config.external else 0
    paths = len(work.paths) * isa.PATH.slices(config) + read
    return isa.LAYER.slices(config) + read + max(paths + 5, layer["planes_last"] + frames + 5)
