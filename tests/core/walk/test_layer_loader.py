# amaranth: UnusedElaboratable=no
"""LayerLoader against `Record.violations` and the fields of the record, cycle by cycle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from core.harness import Bench, ones
from core.walk.positions import full_layer, random_layer

from lbq_hw import isa
from lbq_hw.config import CoreConfig
from lbq_hw.core.walk.layer_loader import LayerLoader, PassLoader, layer_layout, layer_loader
from lbq_hw.isa.record import SLICE
from lbq_hw.sim.models.programs import SHAPES, SMALL
from lbq_hw.sim.models.walks import walk

PARTS = isa.LAYER.slices(SMALL)
OUTSIDE = SMALL.with_external()
CONFIGS = [*SHAPES, OUTSIDE]


class Load:
    """Raises ``load`` in a cycle, and lowers it after ``ready`` or ``bad``, some cycles late."""

    def __init__(self, loader: LayerLoader, at: int, late: int) -> None:
        self.loader, self.left, self.late = loader, at, late
        self.samples = [loader.ready, loader.bad]
        self.done = False

    def set(self, ctx: Any) -> None:
        self.left -= 1
        ctx.set(self.loader.load, self.left < 0 and not self.done)

    def see(self, cycle: int, ready: int, bad: int) -> None:
        del cycle
        if bad or (ready and self.late == 0):
            self.done = True
        elif ready:
            self.late -= 1


def pack(config: CoreConfig, values: Mapping[str, int]) -> int:
    """As `Record.encode`, but of illegal values too."""
    return sum(
        (values[name] & (1 << slot.width) - 1) << slot.offset
        for name, slot in isa.LAYER.slots(config).items()
    )


def load(
    config: CoreConfig, word: int, *, number: int = 0, at: int = 2, late: int = 0
) -> dict[str, list[int]]:
    loader = layer_loader(config)(config)
    bench = Bench(loader)
    parts = isa.LAYER.slices(config)
    stride = 1 << (parts - 1).bit_length()
    slices = [word >> SLICE * i & (1 << SLICE) - 1 for i in range(parts)]
    bench.store(loader.table, [0] * stride * number + slices)
    bench.hold((loader.number, number))
    bench.add(Load(loader, at, late))
    names = ("layer_valid", "ready", "bad", "error", "readout", "paths_last", "reach")
    signals = {name: getattr(loader, name) for name in names}
    seen = bench.probe(**signals, layer=loader.layer.as_value(), info=loader.info.as_value())
    bench.run(extra=4)
    return seen


def reach(layer: Mapping[str, int]) -> int:
    frames = layer["time_last"] if layer["static"] else 0
    return layer["planes_last"] * layer["out_plane"] + frames * layer["out_frame"]


@pytest.mark.parametrize("shape", range(len(CONFIGS)))
@pytest.mark.parametrize("seed", range(5))
def test_a_legal_layer_is_there_and_ready_as_soon_as_stated(shape: int, seed: int) -> None:
    config = CONFIGS[shape]
    word, layer = random_layer(config, seed)
    at, late = 1 + seed, seed % 3
    seen = load(config, word, number=seed % 2, at=at, late=late)
    parts = isa.LAYER.slices(config) + (config.external > 0)
    assert ones(seen["layer_valid"]) == [at + parts + 1]
    ready = at + parts + layer["planes_last"] + 3
    ready += layer["time_last"] if layer["static"] else 0
    assert ones(seen["ready"]) == list(range(ready, ready + late + 2))
    assert ones(seen["bad"]) == []
    assert set(seen["layer"][at + parts + 1 :]) == {word}
    [info] = walk(config, {"layers": [word], "paths": [], "segments": [], "runs": []}).layers
    assert set(seen["info"][at + parts + 1 :]) == {layer_layout(config).const(info).as_bits()}
    assert set(seen["readout"][ready:]) == {layer["readout"]}
    assert set(seen["paths_last"][ready:]) == {layer["path_last"] - layer["path_first"]}
    assert set(seen["reach"][ready:]) == {reach(layer)}


ILLEGAL = [
    ({"rows_last": 6}, isa.Error.LAYER),
    ({"decay": 257}, isa.Error.LAYER),
    ({"reserved": 1}, isa.Error.LAYER),
    ({"path_first": 2, "path_last": 1}, isa.Error.LAYER),
    ({"segment_first": 2, "segment_last": 1}, isa.Error.LAYER),
    ({"path_first": 0, "path_last": 3}, isa.Error.LAYER),
    ({"param": 4}, isa.Error.PARAM),
    ({"param": 4, "reserved": 1}, isa.Error.LAYER),
]


@pytest.mark.parametrize("config", [SMALL, OUTSIDE], ids=["inside", "outside"])
@pytest.mark.parametrize(("change", "error"), ILLEGAL, ids=str)
def test_an_illegal_layer_is_refused_two_cycles_after_its_last_slice(
    change: dict, error: isa.Error, config: CoreConfig
) -> None:
    _, layer = full_layer(config)
    seen = load(config, pack(config, layer | change), at=2)
    assert ones(seen["ready"]) == []
    [bad] = ones(seen["bad"])
    later = int(config.external > 0)
    assert (bad, seen["error"][bad]) == (2 + isa.LAYER.slices(config) + 2 + later, error)


@pytest.mark.parametrize("frame", [5, 7])
def test_frames_that_do_not_follow_each_other_are_refused_in_place_of_ready(frame: int) -> None:
    _, layer = full_layer(SMALL)
    assert ones(load(SMALL, pack(SMALL, layer))["ready"])
    layer["out_frame"] = frame
    seen = load(SMALL, pack(SMALL, layer), at=2)
    [bad] = ones(seen["bad"])
    assert (bad, seen["error"][bad]) == (2 + PARTS + layer["planes_last"] + 3, isa.Error.LAYER)
    for change in ({"readout": 1}, {"time_last": 0}):
        assert ones(load(SMALL, pack(SMALL, layer | change))["bad"]) == []


def test_the_last_entry_of_the_table_must_be_the_last_layer() -> None:
    _, layer = full_layer(SMALL)
    word = pack(SMALL, layer | {"last": 0})
    assert ones(load(SMALL, word, number=SMALL.layers - 1)["bad"])
    assert not ones(load(SMALL, word, number=SMALL.layers - 2)["bad"])
    assert not ones(load(SMALL, pack(SMALL, layer), number=SMALL.layers - 1)["bad"])


def test_a_core_with_external_memory_loads_passes() -> None:
    assert [layer_loader(config) for config in (SMALL, OUTSIDE)] == [LayerLoader, PassLoader]
