"""The plan of a program: passes with a place for everything that they read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from lbq_hw.compiler.passes.split import Choice
from lbq_hw.compiler.windows import Run
from lbq_hw.isa.record import SLICE
from lbq_hw.isa.regions import Region


class Write(NamedTuple):
    """`entries` of a region from `first` on, written once `after` passes are done.

    `rows`: of WEIGHTS, which of the layer's weight rows; `bits` per weight on the tape, None for as
    many as the core has.
    """

    region: Region
    first: int
    entries: int
    after: int = 0
    rows: range = range(0)
    bits: int | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class PlacedPass:
    """One LAYER record, with the places of what it names, and what is written before it.

    `layer`; `tiles` and output rows (`band`, first and end) of it. `takes` and `leaves`: partial
    sums of the pass before, and for the next. `records`: numbers, in the layer, of the PATH records
    that it has; `runs` of each; `entries`: all RUN records; `run_firsts`: where those of each path
    begin in the table. `limbs`: the weight row that a SEGMENT record has, by PATH record and limb;
    0 where there is none. `param` counts in tiles. `cycles` are an estimate.
    """

    layer: str
    tiles: range
    band: tuple[int, int]
    takes: bool = False
    leaves: bool = False
    records: tuple[int, ...]
    runs: tuple[tuple[Run, ...], ...]
    entries: tuple[Run, ...]
    run_firsts: tuple[int, ...]
    limbs: dict[tuple[int, int], int]
    path_first: int
    segment_first: int
    segments: int
    param: int
    writes: tuple[Write, ...]
    cycles: int = 0


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


@dataclass(frozen=True, kw_only=True, eq=False)
class Plan:
    """`passes` with their places, in the order of the tape; `layers` with their budgets, if any.

    The tape fills whole pages of `page_bytes`.
    """

    passes: tuple[PlacedPass, ...]
    layers: tuple[LayerPlan, ...] = ()
    page_bytes: int = SLICE // 8


def shared(runs: tuple[tuple[Run, ...], ...]) -> tuple[tuple[int, ...], tuple[Run, ...]]:
    """Where the runs of each path begin, and all of them: paths with the same runs share them."""
    firsts: dict[tuple[Run, ...], int] = {}
    found: list[Run] = []
    for some in runs:
        if some not in firsts:
            firsts[some] = len(found)
            found += some
    return tuple(firsts[some] for some in runs), tuple(found)
