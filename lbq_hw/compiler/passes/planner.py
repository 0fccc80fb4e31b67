"""Plans a network: the cut of each layer, the places of its blocks, and its cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lbq_hw.chips.timing import ReaderTiming
from lbq_hw.compiler.passes.demand import LayerDemand
from lbq_hw.compiler.passes.placed import LayerPlan, PlacedPass, Plan
from lbq_hw.compiler.passes.placing import Places
from lbq_hw.compiler.passes.ring import FullError
from lbq_hw.compiler.passes.split import Choice, Room, choices, count, passes
from lbq_hw.config import CoreConfig
from lbq_hw.cycles.schedule import Item, Schedule
from lbq_hw.isa import tape
from lbq_hw.isa.regions import Region

MOST_TRIED = 200_000
"""Limit on the passes of all choices that are tried for a layer, to bound the planning time. The
choices with the fewest passes are tried first."""


class PlanError(ValueError):
    """A layer that no pass can execute; one sentence that says what is short.

    `changes`: fields of the core and values with which this layer fits; empty if not known.
    """

    def __init__(self, text: str, changes: dict[str, int] | None = None) -> None:
        super().__init__(text)
        self.changes = changes or {}


def cut(
    layers: Sequence[LayerDemand], config: CoreConfig, room: Room, timing: ReaderTiming
) -> Plan:
    """Cut the layers one by one, each in the way that ends first; PlanError if none is possible."""
    state = Places(config, room, Schedule(timing))
    state.schedule.write(Item(slices=len(tape.head(config, 0).payload)))
    found, placed = [], []
    for demand in layers:
        best = _best(state, demand, config, room)
        found.append(_report(demand, best, state, timing))
        placed += best.placed
        state = best.after
        if len(placed) > tape.MOST_PASSES:
            raise PlanError(f"{len(placed)} passes are more than the {tape.MOST_PASSES} of a tape")
    page_bytes = timing.page_words * timing.word_bits // 8
    return Plan(layers=tuple(found), passes=tuple(placed), page_bytes=page_bytes)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Cut:
    """A layer cut by `choice`, and the state of the memories `after` it."""

    choice: Choice
    placed: list[PlacedPass]
    after: Places

    @property
    def key(self) -> tuple[int, int, int]:
        """Sort key: smaller is better."""
        return self.after.schedule.ends[-1], self.after.schedule.cycle, len(self.placed)


def _best(state: Places, demand: LayerDemand, config: CoreConfig, room: Room) -> _Cut:
    options = choices(demand, room)
    if not options:
        need = int(demand.steps.max()) * room.groups
        raise PlanError(
            f"layer {demand.name!r}: {len(demand.blocks) + len(demand.resident)} blocks of "
            f"weight rows exceed the {room.slots} of the core, and partial sums of one output "
            f"row need {need} words of {demand.partial_bits} bits, the core has "
            f"{room.partial_words} of {room.partial_bits}"
        )
    best: _Cut | None = None
    short: FullError | None = None
    for choice in _affordable(options, demand):
        tried = state.copy()
        try:
            placed = [tried.add(made, demand) for made in passes(demand, choice, room)]
        except FullError as error:
            short = error if short is None or error.amount < short.amount else short
            continue
        cut = _Cut(choice=choice, placed=placed, after=tried)
        if best is None or cut.key < best.key:
            best = cut
    if best is None:
        assert short is not None
        raise PlanError(
            f"layer {demand.name!r}: a pass needs {short.amount} {short.field}, "
            f"the core has {getattr(config, short.field)}",
            {short.field: short.amount},
        )
    return best


def _affordable(options: Sequence[Choice], demand: LayerDemand) -> list[Choice]:
    """The choices that are tried, in their order."""
    counts = [count(demand, choice) for choice in options]
    if min(counts) > tape.MOST_PASSES:
        raise PlanError(
            f"layer {demand.name!r}: {min(counts)} passes are more than the {tape.MOST_PASSES} of "
            "a tape: a core with more weight rows or partial sums needs fewer"
        )
    chosen, tried = set(), 0
    for index in sorted(range(len(options)), key=counts.__getitem__):
        tried += counts[index]
        if tried <= MOST_TRIED:
            chosen.add(index)
    return [choice for index, choice in enumerate(options) if index in chosen]


def _report(demand: LayerDemand, cut: _Cut, before: Places, timing: ReaderTiming) -> LayerPlan:
    slices = cut.after.schedule.slices - before.schedule.slices
    fetched = [w for one in cut.placed for w in one.writes if w.region == Region.WEIGHTS]
    return LayerPlan(
        name=demand.name,
        choice=cut.choice,
        passes=len(cut.placed),
        rows=demand.tiles * sum(block.rows for block in (*demand.blocks, *demand.resident)),
        fetched=sum(write.entries for write in fetched),
        blocks=len(fetched),
        slices=slices,
        compute=sum(one.cycles for one in cut.placed),
        fetch=round(slices * timing.words_per_slice / timing.rate),
        wait=cut.after.schedule.waited - before.schedule.waited,
        end=cut.after.schedule.ends[-1],
    )
