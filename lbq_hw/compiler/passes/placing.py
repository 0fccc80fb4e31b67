"""Allocates memory for the blocks, records and parameters of passes, and schedules their writes.

A slot of the weight memory, a table entry or a parameter tile is overwritten only when the last
pass that reads it is done. Contents that are still in memory from an earlier pass are not written
again.
"""

from __future__ import annotations

from collections.abc import Sequence

from lbq_hw.compiler.passes.demand import Block, LayerDemand
from lbq_hw.compiler.passes.placed import PlacedPass, Write, shared
from lbq_hw.compiler.passes.ring import Ring
from lbq_hw.compiler.passes.split import Pass, Room
from lbq_hw.compiler.windows import Run
from lbq_hw.config import CoreConfig
from lbq_hw.cycles.schedule import Item, Schedule
from lbq_hw.isa import regions
from lbq_hw.isa.regions import Region

RINGS = (Region.PATHS, Region.SEGMENTS, Region.RUNS)


class Places:
    """The state of all memories after some passes, and the schedule of their items."""

    def __init__(self, config: CoreConfig, room: Room, schedule: Schedule) -> None:
        self._config, self._room = config, room
        self._slices = regions.slices(config)
        self.schedule = schedule
        self.last_use = [-1] * room.slots
        self._where: dict[tuple[int, int], int] = {}
        self._rings = {
            region: Ring(regions.TABLES[region], getattr(config, regions.TABLES[region]))
            for region in RINGS
        }
        self._params = Ring("channels", config.param_tiles)

    def copy(self) -> Places:
        other = Places(self._config, self._room, self.schedule.copy())
        other.last_use, other._where = list(self.last_use), dict(self._where)
        other._rings = {region: ring.copy() for region, ring in self._rings.items()}
        other._params = self._params.copy()
        return other

    def add(self, made: Pass, demand: LayerDemand) -> PlacedPass:
        """Place a pass and schedule its items; FullError if a table is too small for it."""
        config, number = self._config, len(self.schedule.ends)
        rows, fetched = self._fetch(made)
        records, runs = _runs(made.uses, rows)
        firsts, entries = shared(runs)
        if len(entries) > config.runs:
            rows, fetched = self._fetch(made, side_by_side=True)
            records, runs = _runs(made.uses, rows)
            firsts, entries = shared(runs)
        limbs = _limbs(made.uses, rows)
        identity = tuple(
            row for row, block in zip(rows, made.uses, strict=True) if block.limb is not None
        )
        place = demand.name, made.band[0], made.tile if identity else 0
        segments = sum(demand.segments[record] for record in records)

        layer = number % config.layers
        writes = [Write(Region.LAYERS, layer, 1, max(0, number - config.layers + 1))]
        run_first, runs_after = self._rings[Region.RUNS].put(
            tuple(dict.fromkeys(runs)), len(entries), number
        )
        run_firsts = tuple(run_first + first for first in firsts)
        path_first, paths_after = self._rings[Region.PATHS].put(
            (*place, records, tuple(zip(run_firsts, map(len, runs), strict=True))),
            len(records),
            number,
        )
        segment_first, segments_after = self._rings[Region.SEGMENTS].put(
            (demand.name, records, identity), segments, number
        )
        for region, first, count, after in (
            (Region.PATHS, path_first, len(records), paths_after),
            (Region.SEGMENTS, segment_first, segments, segments_after),
            (Region.RUNS, run_first, len(entries), runs_after),
        ):
            if after is not None:
                writes.append(Write(region, first, count, after))
        param = 0
        if not made.leaves:
            param, after = self._params.put((demand.name, made.tile), 1, number)
            if after is not None:
                lanes = config.lanes
                writes.append(Write(Region.PARAMS, param * lanes, lanes, after))
        writes += fetched
        for index, (row, kept) in enumerate(zip(rows, made.keep, strict=True)):
            slot = row // self._room.block_rows
            self.last_use[slot] = number
            if kept:
                self._where[made.tile, id(made.uses[index])] = slot
            else:
                self._where.pop((made.tile, id(made.uses[index])), None)
        self._schedule(writes, made.cycles)
        return PlacedPass(
            layer=demand.name,
            tiles=range(made.tile, made.tile + 1),
            band=made.band,
            takes=made.takes,
            leaves=made.leaves,
            records=records,
            runs=runs,
            entries=entries,
            run_firsts=run_firsts,
            limbs=limbs,
            path_first=path_first,
            segment_first=segment_first,
            segments=segments,
            param=param,
            writes=tuple(writes),
            cycles=made.cycles,
        )

    def _fetch(
        self, made: Pass, *, side_by_side: bool = False
    ) -> tuple[tuple[int, ...], list[Write]]:
        """The first rows of all blocks of a pass, and the writes of the blocks that it fetches."""
        taken = set(self._where.values())
        free = [slot for slot in range(self._room.slots) if slot not in taken]
        chosen = sorted(free, key=lambda slot: (self.last_use[slot], slot))[: len(made.fetch)]
        if side_by_side:
            chosen = self._neighbours(free, len(made.fetch)) or chosen
        size, slots, writes = self._room.block_rows, dict(zip(made.fetch, chosen, strict=True)), []
        rows = tuple(
            size * (slots[index] if index in slots else self._where[made.tile, id(block)])
            for index, block in enumerate(made.uses)
        )
        for index, slot in slots.items():
            block, after = made.uses[index], self.last_use[slot] + 1
            own = block.of_tile(made.tile)
            writes.append(Write(Region.WEIGHTS, rows[index], len(own), after, own, block.bits))
        return rows, writes

    def _neighbours(self, free: Sequence[int], count: int) -> list[int]:
        """Consecutive slots that become free earliest; none if there are not enough."""
        windows = [
            list(range(first, first + count))
            for first in free
            if set(range(first, first + count)) <= set(free)
        ]
        return min(windows, key=lambda slots: max(self.last_use[s] for s in slots), default=[])

    def _schedule(self, writes: Sequence[Write], cycles: int) -> None:
        for write in writes:
            size = self._slices[write.region]
            if write.bits is not None:
                size = regions.row_slices(self._config, write.bits)
            self.schedule.write(Item(slices=write.entries * size, after=write.after))
        self.schedule.run(cycles)


def side_by_side(blocks: Sequence[Block], block_rows: int) -> int:
    """Number of RUN records of a pass with these blocks, if they lie in neighbouring slots."""
    _, runs = _runs(blocks, range(0, block_rows * len(blocks), block_rows))
    return len(shared(runs)[1])


def _runs(
    blocks: Sequence[Block], rows: Sequence[int]
) -> tuple[tuple[int, ...], tuple[tuple[Run, ...], ...]]:
    """PATH records of a pass with these blocks at these weight rows, and the runs of each."""
    found: dict[int, list[Run]] = {}
    for block, weight in zip(blocks, rows, strict=True):
        for record, row, column, offset in block.pieces:
            # All limbs of an identity share their runs; the segment has the row of a limb.
            first = weight + offset if block.limb is None else 0
            found.setdefault(record, []).append(Run(row, column, block.length, first))
    records = tuple(sorted(found))
    identities = _identities(blocks)
    return records, tuple(
        tuple(found[record] if record in identities else _merged(found[record]))
        for record in records
    )


def _limbs(blocks: Sequence[Block], rows: Sequence[int]) -> dict[tuple[int, int], int]:
    """Weight rows of the limbs of identities, by PATH record and number."""
    found: dict[tuple[int, int], int] = {}
    for block, row in zip(blocks, rows, strict=True):
        if block.limb is not None:
            record, first = block.limb
            found |= {(record, first + i): row + i for i in range(block.rows)}
    return found


def _identities(blocks: Sequence[Block]) -> set[int]:
    return {piece.record for b in blocks if b.limb is not None for piece in b.pieces}


def _merged(runs: list[Run]) -> list[Run]:
    """The runs in order, with runs that adjoin in plane and weight memory merged into one."""
    found: list[Run] = []
    for run in sorted(runs):
        if found:
            last = found[-1]
            ends = last.row, last.column + last.length, last.weight + last.length
            if ends == (run.row, run.column, run.weight):
                found[-1] = last._replace(length=last.length + run.length)
                continue
        found.append(run)
    return found
