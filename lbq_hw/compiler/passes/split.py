"""Layers as passes: bands of output rows, tiles, input parts; and which blocks stay in memory.

A pass is one LAYER record: one tile (or all tiles, if all blocks fit), one band, some blocks. The
passes of a band and tile follow each other, and all but the last store partial sums. Some blocks of
a tile stay in the weight memory while the tile runs (*resident*); the last pass of each band uses
them. The other blocks are fetched for every band, in forward and backward order in turn, so that a
band begins with the part that the previous band ended with.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from lbq_hw.compiler.passes.demand import Block, LayerDemand

PASS_CYCLES = 90
"""Estimated cycles from the start of a pass to its first event, and from its last event to its end.
"""

PAIRED = 0.62
"""Estimated cycles per event with pairs. A word takes as many cycles as it has even set bits or odd
set bits, whichever is more: 0.61 of its set bits in the zoo's 4-bit ResNet-20, 0.63 in the sparse
one.
"""


@dataclass(frozen=True, kw_only=True)
class Room:
    """The room of a core for passes.

    `slots` of `block_rows` weight rows, each for one block; `partial_words`, each with the partial
    sums, of `partial_bits`, of one group of channels; `groups` of a tile; `pairs`: two rows are
    added per cycle.
    """

    slots: int
    block_rows: int
    partial_words: int
    partial_bits: int
    groups: int
    pairs: bool = False

    def __post_init__(self) -> None:
        for name in ("slots", "block_rows", "groups"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)!r}")


@dataclass(frozen=True, kw_only=True, eq=False)
class Pass:
    """One LAYER record. `fetch`: the blocks that come before it on the tape, as indices of `uses`.
    `keep`: one flag per block in `uses`, set if a later pass needs the block, too.
    """

    layer: str
    tile: int
    band: tuple[int, int]
    uses: tuple[Block, ...]
    fetch: tuple[int, ...]
    keep: tuple[bool, ...]
    takes: bool
    leaves: bool
    cycles: int


@dataclass(frozen=True, kw_only=True)
class Choice:
    """A way to cut a layer: number of `bands`, of `resident` blocks, and of blocks of a `part` (0:
    one pass per tile).
    """

    bands: int
    resident: int
    part: int


def choices(demand: LayerDemand, room: Room) -> list[Choice]:
    """Every way to cut a layer that the core has room for; empty if there is none."""
    few, many = len(demand.resident), len(demand.blocks)
    found = []
    if few + many <= room.slots:
        found.append(Choice(bands=1, resident=few + many, part=0))
    band_rows = room.partial_words // (int(demand.steps.max()) * room.groups)
    if not band_rows or demand.partial_bits > room.partial_bits:
        return found
    bands = -(-demand.rows // min(band_rows, demand.rows))
    for part in _sizes((room.slots - few) // 2):
        # With one band no block is used twice, so none need be resident.
        most = room.slots - 2 * part if bands > 1 else few
        most = min(most, few + many - part)
        for resident in sorted({few, (few + most) // 2, most}):
            if few <= resident <= most:
                found.append(Choice(bands=bands, resident=resident, part=part))
    return found


def _sizes(most: int) -> list[int]:
    """Blocks of a part that are tried: 1, 2, 3, 4, 6, 8, 12, ... and the most."""
    tried = {1 << log for log in range(most.bit_length())}
    tried |= {3 << log for log in range(most.bit_length())}
    return [size for size in sorted(tried | {most}) if 0 < size <= most]


def count(demand: LayerDemand, choice: Choice) -> int:
    """How many passes a layer has, without making them."""
    streamed = len(demand.blocks) + len(demand.resident) - choice.resident
    parts = -(-streamed // choice.part) if choice.part else 0
    return demand.tiles * choice.bands * max(1, parts)


def passes(demand: LayerDemand, choice: Choice, room: Room) -> list[Pass]:
    """The passes of a layer in their order."""
    found: list[Pass] = []
    for tile in range(demand.tiles):
        found += _tile(demand, choice, room, tile)
    return found


def _tile(demand: LayerDemand, choice: Choice, room: Room, tile: int) -> Iterator[Pass]:
    stays = (*demand.resident, *demand.blocks[: choice.resident - len(demand.resident)])
    streamed = demand.blocks[choice.resident - len(demand.resident) :]
    count = -(-len(streamed) // choice.part) if choice.part else 0
    parts = [streamed[i * len(streamed) // count : (i + 1) * len(streamed) // count]
             for i in range(count)]  # fmt: skip
    there: set[int] = set()
    for band in range(choice.bands):
        rows = band * demand.rows // choice.bands, (band + 1) * demand.rows // choice.bands
        ordered = parts[::-1] if band % 2 else parts
        final = band == choice.bands - 1
        for number, part in enumerate(ordered or [()]):
            last = number == max(0, len(ordered) - 1)
            uses = (*part, *stays) if last else tuple(part)
            keep = tuple(not final and last for _ in uses)
            fetch = tuple(i for i, block in enumerate(uses) if id(block) not in there)
            there |= {id(block) for block in uses}
            there -= {id(b) for b, kept in zip(uses, keep, strict=True) if not kept}
            made = Pass(
                layer=demand.name,
                tile=tile,
                band=rows,
                uses=uses,
                fetch=fetch,
                keep=keep,
                takes=number > 0,
                leaves=not last,
                cycles=0,
            )
            yield replace(made, cycles=estimate(demand, made, room))


def estimate(demand: LayerDemand, made: Pass, room: Room) -> int:
    """Estimated cycles of a pass: the slowest of its lanes, scanner, walker and neurons alone."""
    first, end = made.band
    steps = int(demand.steps[first:end].sum())
    events = sum(float(block.events[first:end].sum()) for block in made.uses)
    nulls = demand.nulls if any(block in demand.resident for block in made.uses) else 1.0
    paths = len({piece.record for block in made.uses for piece in block.pieces})
    requests = sum(block.requests for block in made.uses)
    least = steps * max(requests + 1, paths + 2, room.groups)
    cycles = events * (PAIRED if room.pairs else 1)
    return PASS_CYCLES + round(max(cycles + nulls * steps, least))
