"""The plan of a network: how each layer is cut, where blocks lie, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from lbq_hw import isa
from lbq_hw.config import CoreConfig
from lbq_hw.isa import tape
from lbq_hw.external.demand import LayerDemand
from lbq_hw.external.reader import ReaderTiming
from lbq_hw.external.schedule import Item, Schedule
from lbq_hw.external.split import Choice, Pass, Room, choices, passes
from lbq_hw.isa import regions
from lbq_hw.isa.regions import Region

TABLE_PASSES = 4
"""Passes whose records the tables hold at once: those of a pass replace those four before."""


class PlanError(ValueError):
    """A layer that no pass can execute; one sentence that says what is short."""


@dataclass(frozen=True, kw_only=True)
class LayerPlan:
    """What a layer costs: `rows` of weights that it has and `fetched` ones, `slices` of the tape,
    and cycles: `compute`, `fetch` if nothing waits, `wait` for the tape, `end` of its last pass.
    """

    name: str
    choice: Choice
    passes: int
    rows: int
    fetched: int
    blocks: int
    slices: int
    compute: int
    fetch: int
    wait: int
    end: int

    def summary(self) -> dict[str, Any]:
        """A JSON-able object; `bytes` are those of the tape."""
        return {
            "name": self.name,
            "bands": self.choice.bands,
            "resident": self.choice.resident,
            "part": self.choice.part,
            "passes": self.passes,
            "rows": self.rows,
            "rows_fetched": self.fetched,
            "blocks": self.blocks,
            "bytes": 4 * self.slices,
            "compute_cycles": self.compute,
            "fetch_cycles": self.fetch,
            "wait_cycles": self.wait,
        }


@dataclass
class _State:
    """Slots of the weight memory, each with the pass that used it last, and the schedule."""

    schedule: Schedule
    last_use: list[int]
    where: dict[tuple[int, int], int] = field(default_factory=dict)

    def copy(self) -> _State:
        return _State(self.schedule.copy(), list(self.last_use), dict(self.where))


def plan(
    layers: Sequence[LayerDemand], config: CoreConfig, room: Room, timing: ReaderTiming
) -> tuple[LayerPlan, ...]:
    """Cut each layer in the way that ends first, given those before; PlanError if none does."""
    state = _State(Schedule(timing), [-1] * room.slots)
    state.schedule.write(Item(slices=len(tape.head(config, 0).payload)))
    found = []
    for demand in layers:
        options = choices(demand, room)
        if not options:
            need = int(demand.steps.max()) * room.groups
            raise PlanError(
                f"layer {demand.name!r}: {len(demand.blocks) + len(demand.resident)} blocks of "
                f"weight rows exceed the {room.slots} of the core, and partial sums of one output "
                f"row need {need} words of {demand.partial_bits} bits, the core has "
                f"{room.partial_words} of {room.partial_bits}"
            )
        best = None
        for choice in options:
            tried = state.copy()
            cut = passes(demand, choice, room)
            for made in cut:
                _add(tried, made, demand, config)
            key = (tried.schedule.ends[-1], tried.schedule.cycle, len(cut))
            if best is None or key < best[0]:
                best = key, choice, cut, tried
        assert best is not None
        _, choice, cut, tried = best
        found.append(_report(demand, choice, cut, state, tried, timing))
        state = tried
    return tuple(found)


def _report(
    demand: LayerDemand,
    choice: Choice,
    cut: list[Pass],
    before: _State,
    after: _State,
    timing: ReaderTiming,
) -> LayerPlan:
    slices = after.schedule.slices - before.schedule.slices
    fetched = [made.uses[number] for made in cut for number in made.fetch]
    return LayerPlan(
        name=demand.name,
        choice=choice,
        passes=len(cut),
        rows=demand.tiles * sum(block.rows for block in (*demand.blocks, *demand.resident)),
        fetched=sum(block.rows for block in fetched),
        blocks=len(fetched),
        slices=slices,
        compute=sum(made.cycles for made in cut),
        fetch=round(slices * timing.words_per_slice / timing.rate),
        wait=after.schedule.waited - before.schedule.waited,
        end=after.schedule.ends[-1],
    )


def _add(state: _State, made: Pass, demand: LayerDemand, config: CoreConfig) -> None:
    """The items of one pass: records, parameters, blocks, PASS."""
    schedule, number = state.schedule, len(state.schedule.ends)
    free = max(0, number - TABLE_PASSES + 1)
    for slices in _records(made, demand, config):
        schedule.write(Item(slices=slices, after=free))
    if not made.leaves:
        slices = config.lanes * isa.PARAM.slices(config)
        schedule.write(Item(slices=slices, after=free))
    row_slices = regions.slices(config)[Region.WEIGHTS]
    taken = set(state.where.values())
    for index in made.fetch:
        block = made.uses[index]
        slot = min(
            (slot for slot in range(len(state.last_use)) if slot not in taken),
            key=lambda slot: (state.last_use[slot], slot),
        )
        taken.add(slot)
        state.where[made.tile, id(block)] = slot
        schedule.write(Item(slices=block.rows * row_slices, after=state.last_use[slot] + 1))
    for block, kept in zip(made.uses, made.keep, strict=True):
        state.last_use[state.where[made.tile, id(block)]] = number
        if not kept:
            del state.where[made.tile, id(block)]
    schedule.run(made.cycles)


def _records(made: Pass, demand: LayerDemand, config: CoreConfig) -> list[int]:
    """Slices of the LAYER, PATH, SEGMENT and RUN records of a pass."""
    paths = {block.path for block in made.uses}
    return [
        isa.LAYER.slices(config),
        len(paths) * isa.PATH.slices(config),
        sum(demand.segments[path] for path in paths) * isa.SEGMENT.slices(config),
        sum(block.runs for block in made.uses) * isa.RUN.slices(config),
    ]
