"""The plan of a program: passes, with addresses for everything that they read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from lbq_hw.compiler.passes.split import Choice
from lbq_hw.compiler.windows import Run
from lbq_hw.isa.record import SLICE
from lbq_hw.isa.regions import Region


class Write(NamedTuple):
    """`entries` of a region from `first` on, written once `after` passes are done.

    For WEIGHTS, `rows` are the layer's weight rows to be written, and `bits` the bits per weight on
    the tape (None: as many as the core has).
    """

    region: Region
    first: int
    entries: int
    after: int = 0
    rows: range = range(0)
    bits: int | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class PlacedPass:
    """One LAYER record, with the places of all that it refers to, and the writes before it.

    `layer`: its number; `tiles` and `band`: its tiles and output rows, first and end. `takes` and
    `leaves`: whether it reads the partial sums of the previous pass, and stores them for the next.
    `records`: numbers, within the layer, of its PATH records; `runs` of each; `entries`: all RUN
    records; `run_firsts`: where the runs of each path begin in the table. `limbs`: the weight row
    for each SEGMENT record, by PATH record and limb; 0 without a limb. `param`: in tiles. `cycles`:
    an estimate.
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
    """The cost of a layer: its weight `rows`, the number of `fetched` rows, `slices` of the tape,
    and cycles: `compute`, `fetch` without any wait, `wait` for the tape, `end` of its last pass.
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
        """A JSON-able object; `bytes` are bytes of the tape."""
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
    """`passes` with their places, in the order of the tape; `layers` with their costs, if known.

    The tape fills whole pages of `page_bytes`.
    """

    passes: tuple[PlacedPass, ...]
    layers: tuple[LayerPlan, ...] = ()
    page_bytes: int = SLICE // 8


def shared(runs: tuple[tuple[Run, ...], ...]) -> tuple[tuple[int, ...], tuple[Run, ...]]:
    """The index of each path's first run, and all runs; paths with equal runs share them."""
    firsts: dict[tuple[Run, ...], int] = {}
    found: list[Run] = []
    for some in runs:
        if some not in firsts:
            firsts[some] = len(found)
            found += some
    return tuple(firsts[some] for some in runs), tuple(found)
