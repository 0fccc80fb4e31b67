"""The tape of a network: records, parameters and weight rows of every pass in the order of use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from lbq_hw import isa
from lbq_hw.compiler import neurons, weights
from lbq_hw.compiler.lower import LoweredLayer
from lbq_hw.compiler.passes.placing import PlacedPass, Write
from lbq_hw.compiler.tables import layer_record, path_record
from lbq_hw.compiler.tensors import Tensor
from lbq_hw.config import CoreConfig
from lbq_hw.isa import regions
from lbq_hw.isa.record import Record
from lbq_hw.isa.regions import Region
from lbq_hw.isa.tape import PASS, TapeItem

Values = dict[str, int]


def items(
    passes: Sequence[PlacedPass],
    layers: Sequence[LoweredLayer],
    tensors: dict[str, Tensor],
    timesteps: int,
    config: CoreConfig,
) -> Iterator[TapeItem]:
    """All items between HEAD and END."""
    by_name = {lowered.layer.name: lowered for lowered in layers}
    for name, group in groupby(passes, key=lambda placed: placed.cut.layer):
        made = _LayerPasses(by_name[name], tensors, timesteps, config)
        for placed in group:
            yield from made.items(placed, last=placed is passes[-1])


class _LayerPasses:
    """Makes the items of the passes of one layer."""

    def __init__(
        self,
        lowered: LoweredLayer,
        tensors: dict[str, Tensor],
        timesteps: int,
        config: CoreConfig,
    ) -> None:
        self._config, self._lowered, self._tensors = config, lowered, tensors
        output = tensors.get(lowered.layer.name)
        self._layer = layer_record(config, lowered, output, timesteps)
        self._paths = [path_record(config, path) for path in lowered.paths]
        self._params = neurons.params(lowered.layer, lowered.tiles, config)
        self._weights: NDArray[np.uint32] = weights.slices(lowered.weights, config)

    def items(self, placed: PlacedPass, *, last: bool) -> Iterator[TapeItem]:
        """Writes of one pass, then PASS; `last`: the program ends after it."""
        made = {
            Region.LAYERS: lambda: self._records(isa.LAYER, [self._layer_of(placed, last=last)]),
            Region.PATHS: lambda: self._records(isa.PATH, self._paths_of(placed)),
            Region.SEGMENTS: lambda: self._records(isa.SEGMENT, self._segments_of(placed)),
            Region.RUNS: lambda: self._records(isa.RUN, _runs_of(placed)),
            Region.PARAMS: lambda: self._params_of(placed),
        }
        for write in placed.writes:
            weighs = write.region == Region.WEIGHTS
            payload = self._rows_of(placed, write) if weighs else made[write.region]()
            yield TapeItem(
                address=regions.address(self._config, write.region, write.first),
                payload=tuple(payload),
                after=write.after,
            )
        yield TapeItem(address=PASS)

    def _records(self, record: Record, values: Sequence[Values]) -> list[int]:
        words = [record.encode(self._config, one) for one in values]
        return _sliced(words, record.slices(self._config))

    def _layer_of(self, placed: PlacedPass, *, last: bool) -> Values:
        cut, whole = placed.cut, self._layer
        first, end = cut.band
        changes = {
            "last": int(last),
            "rows_last": end - first - 1,
            "tiles_last": 0,
            "window_row_init": whole["window_row_init"] + first * whole["window_row_step"],
            "param": placed.param,
            "path_first": placed.path_first,
            "path_last": placed.path_first + len(placed.records) - 1,
            "segment_first": placed.segment_first,
            "segment_last": placed.segment_first + placed.segments - 1,
            "partial_in": int(cut.takes),
            "partial_out": int(cut.leaves),
        }
        if not whole["readout"]:
            changes["out_base"] = whole["out_base"] + first * whole["out_row"] + cut.tile
        return whole | changes

    def _paths_of(self, placed: PlacedPass) -> list[Values]:
        found = []
        for record, runs, first in zip(placed.records, placed.runs, placed.run_firsts, strict=True):
            whole = self._paths[record]
            tile = placed.cut.tile * self._config.lanes if whole["identity"] else 0
            changes = {
                "row_init": whole["row_init"] + placed.cut.band[0] * whole["row_step"],
                "column_init": whole["column_init"] + tile,
                "tile_rows": 0,
                "run_first": first,
                "run_last": first + len(runs) - 1,
            }
            found.append(whole | changes)
        return found

    def _segments_of(self, placed: PlacedPass) -> list[Values]:
        """Segments of the paths that the pass has; those of an identity know the row of a limb."""
        limbs: dict[tuple[int, int], int] = {}
        for block, row in zip(placed.cut.uses, placed.rows, strict=True):
            if block.limb is not None:
                record, first = block.limb
                limbs |= {(record, first + i): row + i for i in range(block.rows)}
        return [
            {
                "path": placed.records.index(segment.path),
                "exponent": segment.exponent,
                "base": self._tensors[segment.source.name].base
                + segment.plane * segment.source.plane_words,
                "weight": limbs.get((segment.path, segment.limb), 0),
            }
            for segment in self._lowered.segments
            if segment.path in placed.records
        ]

    def _params_of(self, placed: PlacedPass) -> list[int]:
        lanes, tile = self._config.lanes, placed.cut.tile
        words = self._params[tile * lanes : (tile + 1) * lanes]
        return _sliced(words, isa.PARAM.slices(self._config))

    def _rows_of(self, placed: PlacedPass, write: Write) -> list[int]:
        block = placed.cut.uses[write.block]
        rows = np.asarray(block.weights) + placed.cut.tile * block.tile_rows
        return self._weights[rows].ravel().tolist()


def _runs_of(placed: PlacedPass) -> list[Values]:
    return [
        {
            "row": run.row,
            "column": run.column,
            "length_last": run.length - 1,
            "rows_last": 0,
            "weight": run.weight,
        }
        for runs in dict.fromkeys(placed.runs)
        for run in runs
    ]


def _sliced(words: Sequence[int], slices: int) -> list[int]:
    return [word >> 32 * part & 0xFFFFFFFF for word in words for part in range(slices)]
