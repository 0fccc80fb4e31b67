"""The program: records, parameters and weight rows of every pass, in the order of use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from lbq_hw import isa
from lbq_hw.compiler import neurons, records, weights
from lbq_hw.compiler.draft import Draft
from lbq_hw.compiler.lower import LoweredLayer
from lbq_hw.compiler.passes.placed import PlacedPass, Plan, Write
from lbq_hw.compiler.program import PassInfo, Program
from lbq_hw.compiler.records import Values
from lbq_hw.config import CoreConfig
from lbq_hw.isa import tape
from lbq_hw.isa.record import Record
from lbq_hw.isa.regions import Region
from lbq_hw.isa.tape import PASS, TapeItem


def emit(drafted: Draft, planned: Plan, config: CoreConfig) -> Program:
    """The program of a plan."""
    numbers = {lowered.layer.name: index for index, lowered in enumerate(drafted.layers)}
    passes = tuple(
        PassInfo(
            layer=numbers[placed.layer],
            tile=placed.tiles.start,
            first=placed.band[0],
            end=placed.band[1],
        )
        for placed in planned.passes
    )
    items = list(_items(drafted, planned, config))
    made = tape.encode(config, items, page_bytes=planned.page_bytes)
    return Program.of(drafted, config, made, passes=passes, budget=planned.layers)


def _items(drafted: Draft, planned: Plan, config: CoreConfig) -> Iterator[TapeItem]:
    """All items between HEAD and END."""
    by_name = {lowered.layer.name: lowered for lowered in drafted.layers}
    for name, group in groupby(planned.passes, key=lambda placed: placed.layer):
        made = _LayerPasses(by_name[name], drafted, config)
        for placed in group:
            yield from made.items(placed, last=placed is planned.passes[-1])


class _LayerPasses:
    """Makes the items of the passes of one layer."""

    def __init__(self, lowered: LoweredLayer, drafted: Draft, config: CoreConfig) -> None:
        self._config, self._lowered = config, lowered
        output = drafted.tensors.get(lowered.layer.name)
        self._layer = records.layer_record(config, lowered, output, drafted.network.timesteps)
        self._paths = [records.path_record(config, path) for path in lowered.paths]
        self._params = neurons.params(lowered.layer, lowered.tiles, config)
        self._weights: dict[int, NDArray[np.uint32]] = {}  # slices of all rows, by weight bits

    def items(self, placed: PlacedPass, *, last: bool) -> Iterator[TapeItem]:
        """Writes of one pass, then PASS; `last`: the program ends after it."""
        for write in placed.writes:
            payload = self._payload(placed, write, last=last)
            yield from tape.writes(
                self._config,
                write.region,
                write.first,
                payload,
                after=write.after,
                bits=write.bits,
            )
        yield TapeItem(address=PASS)

    def _payload(self, placed: PlacedPass, write: Write, *, last: bool) -> list[int]:
        match write.region:
            case Region.LAYERS:
                return self._records(isa.LAYER, [self._layer_of(placed, last=last)])
            case Region.PATHS:
                return self._records(isa.PATH, self._paths_of(placed))
            case Region.SEGMENTS:
                return self._records(isa.SEGMENT, self._segments_of(placed))
            case Region.RUNS:
                runs = [records.run_record(run) for run in placed.entries]
                return self._records(isa.RUN, runs)
            case Region.PARAMS:
                lanes, tiles = self._config.lanes, placed.tiles
                words = self._params[tiles.start * lanes : tiles.stop * lanes]
                return _sliced(words, isa.PARAM.slices(self._config))
            case _:
                bits = self._config.weight_bits if write.bits is None else write.bits
                if bits not in self._weights:
                    rows = self._lowered.weights
                    self._weights[bits] = weights.slices(rows, self._config, bits)
                return self._weights[bits][np.asarray(write.rows)].ravel().tolist()

    def _records(self, record: Record, values: Sequence[Values]) -> list[int]:
        words = [record.encode(self._config, one) for one in values]
        return _sliced(words, record.slices(self._config))

    def _layer_of(self, placed: PlacedPass, *, last: bool) -> Values:
        whole, tiles, (first, end) = self._layer, placed.tiles, placed.band
        changes = {
            "last": int(last),
            "rows_last": end - first - 1,
            "tiles_last": len(tiles) - 1,
            "window_row_init": whole["window_row_init"] + first * whole["window_row_step"],
            "param": placed.param,
            "path_first": placed.path_first,
            "path_last": placed.path_first + len(placed.records) - 1,
            "segment_first": placed.segment_first,
            "segment_last": placed.segment_first + placed.segments - 1,
            "partial_in": int(placed.takes),
            "partial_out": int(placed.leaves),
        }
        if not whole["readout"]:
            changes["out_base"] = whole["out_base"] + first * whole["out_row"] + tiles.start
        return whole | changes

    def _paths_of(self, placed: PlacedPass) -> list[Values]:
        found, tiles = [], placed.tiles
        for record, runs, first in zip(placed.records, placed.runs, placed.run_firsts, strict=True):
            whole = self._paths[record]
            tile = tiles.start * self._config.lanes if whole["identity"] else 0
            changes = {
                "row_init": whole["row_init"] + placed.band[0] * whole["row_step"],
                "column_init": whole["column_init"] + tile,
                "tile_rows": whole["tile_rows"] if len(tiles) > 1 else 0,
                "run_first": first,
                "run_last": first + len(runs) - 1,
            }
            found.append(whole | changes)
        return found

    def _segments_of(self, placed: PlacedPass) -> list[Values]:
        """The segments of the pass's paths."""
        return [
            {
                "path": placed.records.index(segment.path),
                "exponent": segment.exponent,
                "base": segment.source.base + segment.plane * segment.source.plane_words,
                "weight": placed.limbs.get((segment.path, segment.limb), 0),
            }
            for segment in self._lowered.segments
            if segment.path in placed.records
        ]


def _sliced(words: Sequence[int], slices: int) -> list[int]:
    return [word >> 32 * part & 0xFFFFFFFF for word in words for part in range(slices)]
