"""What a layer asks of a core with external memory: blocks of weight rows, steps, events.

A *block* is what is fetched at once: the weight rows of one tap of one path and of some of its
channels, for one tile; or of several taps with few channels; or limbs of an identity.
`lbq_hw.compiler.passes.blocks` finds them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

ASSUMED = 0.11
"""Share of set bits that is assumed where nothing tells. The zoo's busiest network for a camera has
0.105; spoken digits, which see each frame eight times, have 0.176."""


class Piece(NamedTuple):
    """Where a RUN record that reads a block begins: number of its PATH record in the layer, row in
    words and column in bits of the field of view, `offset` in rows of the block.
    """

    record: int
    row: int
    column: int
    offset: int = 0


@dataclass(frozen=True, kw_only=True, eq=False)
class Block:
    """Weight rows of one tile that are fetched at once.

    `pieces`: the RUN records that read it, of `length` bits each; `requests` of one step; `events`
    of each row of the output, all timesteps together. `weights`: its rows in the layer's, for tile
    0; `tile_rows` further for each tile. `limb`: of an identity, the numbers of its PATH
    record and of its first limb; all limbs share the runs of limb 0. `bits` per weight on the tape,
    None for as many as the core has.
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
        """Its rows in the layer's, for a tile."""
        first, rows = tile * self.tile_rows, self.weights
        return range(rows.start + first, rows.stop + first, rows.step)


@dataclass(frozen=True, kw_only=True, eq=False)
class LayerDemand:
    """One layer: `steps` of each output row of one tile; `segments` by PATH record; `blocks` of a
    tile; `partial_bits`, signed, which the sums of its convolutions are proven to fit.
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
    """Blocks that stay while their layer runs: those of identities, which are small."""

    @property
    def events(self) -> float:
        """Of all tiles."""
        return self.tiles * sum(float(b.events.sum()) for b in (*self.blocks, *self.resident))
