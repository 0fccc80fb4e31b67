"""Plans: the choice that ends first, budgets that add up, and refusals."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lbq_hw import interpreter
from lbq_hw.chips.timing import default_timing
from lbq_hw.compiler import compile_network, smallest_for
from lbq_hw.compiler.draft import draft
from lbq_hw.compiler.passes import PlanError, Room, cut, planner
from lbq_hw.compiler.passes.blocks import demands
from lbq_hw.compiler.passes.demand import LayerDemand
from lbq_hw.config import CoreConfig
from lbq_hw.network import INPUT
from lbq_hw.sim.drawn.networks import random_images, random_network

TIMING = default_timing(16)


def asked(seed: int, *, channels: int) -> tuple[tuple[LayerDemand, ...], CoreConfig]:
    network = random_network(seed, channels=channels)
    config = smallest_for(network, lanes=8)
    (raw,) = random_images(network, 1, seed)
    done = interpreter.run(compile_network(network, config), raw)
    levels = {INPUT: network.input.quantize(raw[None])[:, 0], **done.levels}
    tables = {"layers": 8, "paths": 16, "segments": 64, "runs": 128}
    return demands(draft(network, config), config, levels, block_rows=8), config.with_(**tables)


def room(slots: int, words: int) -> Room:
    return Room(slots=slots, block_rows=8, partial_words=words, partial_bits=32, groups=4)


@pytest.mark.parametrize("seed", range(12))
def test_compute_and_waits_are_all_the_cycles_there_are(seed: int) -> None:
    layers, config = asked(seed, channels=20)
    planned = cut(layers, config, room(4, 4096), TIMING).layers
    assert planned[-1].end == sum(layer.compute + layer.wait for layer in planned)
    for layer, demand in zip(planned, layers, strict=True):
        assert layer.fetched >= layer.rows
        assert layer.rows == demand.tiles * sum(
            block.rows for block in (*demand.blocks, *demand.resident)
        )


def test_more_weight_rows_are_not_slower() -> None:
    layers, config = asked(5, channels=24)
    small, large = (cut(layers, config, room(slots, 4096), TIMING).layers for slots in (4, 64))
    assert large[-1].end <= small[-1].end


def test_a_layer_that_cannot_be_cut_is_refused_with_what_is_short() -> None:
    layers, config = asked(5, channels=24)
    most = max(layers, key=lambda demand: len(demand.blocks))
    with pytest.raises(PlanError) as caught:
        cut([most], config, room(2, 0), TIMING)
    count, steps = len(most.blocks) + len(most.resident), int(most.steps.max())
    assert str(caught.value) == (
        f"layer {most.name!r}: {count} blocks of weight rows exceed the 2 of the core, and "
        f"partial sums of one output row need {4 * steps} words of {most.partial_bits} bits, "
        f"the core has 0 of 32"
    )


def test_a_table_that_no_cut_fits_is_named() -> None:
    layers, config = asked(5, channels=24)
    most = max(layers, key=lambda demand: len(demand.blocks))
    with pytest.raises(PlanError) as caught:
        cut([most], config.with_(segments=1), room(8, 4096), TIMING)
    needed = min(most.segments)
    assert str(caught.value) == (
        f"layer {most.name!r}: a pass needs {needed} segments, the core has 1"
    )
    assert caught.value.changes == {"segments": needed}


def test_a_layer_of_too_many_passes_is_refused_before_they_are_made() -> None:
    layers, config = asked(5, channels=24)
    most = max(layers, key=lambda demand: len(demand.blocks))
    with pytest.raises(PlanError) as caught:
        cut([replace(most, tiles=10**9)], config, room(64, 4096), TIMING)
    assert str(caught.value) == (
        f"layer {most.name!r}: 1000000000 passes are more than the 65535 of a tape: a core with "
        "more weight rows or partial sums needs fewer"
    )


def test_of_too_many_choices_those_with_the_fewest_passes_are_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    layers, config = asked(5, channels=24)
    most = max(layers, key=lambda demand: len(demand.blocks))
    monkeypatch.setattr(planner, "MOST_TRIED", most.tiles)
    [layer] = cut([most], config, room(64, 4096), TIMING).layers
    assert layer.passes == most.tiles
