"""The demand of a layer on a core with external memory: blocks of weight rows, steps, events.

A *block* is a group of weight rows of one tile that is fetched at once: the rows of one tap of a
path and some of its channels, or of several taps with few channels, or the limbs of an identity.
`lbq_hw.compiler.passes.blocks` finds them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

ASSUMED = 0.11
"""Share of set bits that is assumed without a sample. The zoo's busiest network for a camera has
0.105; spoken digits, which see each frame eight times, have 0.176."""


class Piece(NamedTuple):
    """The start of a RUN record that reads a block: the number of its PATH record in the layer, its
    row (in words) and column (in bits) in the field of view, and its `offset` in the block's rows.
    """

    record: int
    row: int
    column: int
    offset: int = 0


@dataclass(frozen=True, kw_only=True, eq=False)
class Block:
    """Weight rows of one tile that are fetched at once.

    `pieces`: the RUN records that read the block, of `length` bits each. `requests`: number per
    step. `events`: number per row of the output, over all timesteps. `weights`: the block's rows
    within the layer, for tile 0; they lie `tile_rows` further for each tile. `limb`: for an
    identity, the numbers of its PATH record and of its first limb; all limbs share the runs of limb
    0. `bits`: per weight on the tape; None for as many as the core has.
    """

    pieces: tuple[Piece, ...]
    length: int
    requests: int
    events: NDArray[np.float64]
    weights: range
    tile_rows: int = 0
    limb: tuple[int, int] | None = None
    bits: int | None = None

    @property
    def rows(self) -> int:
        return len(self.weights)

    def of_tile(self, tile: int) -> range:
        """The block's rows within the layer, for a tile."""
        first, rows = tile * self.tile_rows, self.weights
        return range(rows.start + first, rows.stop + first, rows.step)


@dataclass(frozen=True, kw_only=True, eq=False)
class LayerDemand:
    """One layer: `steps` per output row of a tile; `segments` by PATH record; `blocks` of a tile;
    `partial_bits`, a signed width that is proven to hold the sums of its convolutions.
    """

    name: str
    tiles: int
    rows: int
    steps: NDArray[np.int64]
    segments: tuple[int, ...]
    nulls: float
    partial_bits: int
    blocks: tuple[Block, ...]
    resident: tuple[Block, ...]
    """Blocks that stay in memory while their layer runs: the small blocks of identities."""

    @property
    def events(self) -> float:
        """Number of events of all tiles."""
        return self.tiles * sum(float(b.events.sum()) for b in (*self.blocks, *self.resident))
