"""The plan of a core whose memories hold the whole network: one pass per layer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lbq_hw.compiler.lower import LoweredLayer
from lbq_hw.compiler.passes.placed import PlacedPass, Plan, Write, shared
from lbq_hw.config import CoreConfig
from lbq_hw.isa.regions import Region

FILLED = (Region.PATHS, Region.SEGMENTS, Region.RUNS, Region.PARAMS, Region.WEIGHTS)


def whole(layers: Sequence[LoweredLayer], config: CoreConfig) -> Plan:
    """The passes of a core that has room for all layers."""
    return Plan(passes=tuple(_passes(layers, config)))


def _passes(layers: Sequence[LoweredLayer], config: CoreConfig) -> Iterator[PlacedPass]:
    used = dict.fromkeys(FILLED, 0)
    for number, lowered in enumerate(layers):
        runs = tuple(path.runs for path in lowered.paths)
        run_firsts, entries = shared(runs)
        counts = {
            Region.PATHS: len(lowered.paths),
            Region.SEGMENTS: len(lowered.segments),
            Region.RUNS: len(entries),
            Region.PARAMS: lowered.tiles * config.lanes,
            Region.WEIGHTS: len(lowered.weights),
        }
        rows = range(len(lowered.weights))
        writes = [Write(Region.LAYERS, number, 1)]
        writes += [Write(region, used[region], counts[region], rows=rows) for region in FILLED]
        weight_first = used[Region.WEIGHTS]
        yield PlacedPass(
            layer=lowered.layer.name,
            tiles=range(lowered.tiles),
            band=(0, lowered.layer.output_shape[1]),
            records=tuple(range(len(lowered.paths))),
            runs=runs,
            entries=entries,
            run_firsts=tuple(used[Region.RUNS] + first for first in run_firsts),
            limbs={(one.path, one.limb): weight_first + one.weight for one in lowered.segments},
            path_first=used[Region.PATHS],
            segment_first=used[Region.SEGMENTS],
            segments=len(lowered.segments),
            param=used[Region.PARAMS] // config.lanes,
            writes=tuple(writes),
        )
        used = {region: used[region] + counts[region] for region in FILLED}
