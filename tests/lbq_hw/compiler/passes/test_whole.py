"""Programs of cores that hold the whole network: all writes, then one pass per layer."""

from __future__ import annotations

from collections import Counter

import pytest
from tapes import items_of

from lbq_hw.compiler import compile_network
from lbq_hw.isa import regions, tape
from lbq_hw.sim.drawn.cores import random_core
from lbq_hw.sim.drawn.networks import random_network


@pytest.mark.parametrize("seed", range(8))
def test_every_entry_is_written_once_and_every_layer_is_a_pass(seed: int) -> None:
    network = random_network(seed, channels=(None, 12, 20)[seed % 3])
    program = compile_network(network, random_core(network, seed))
    config, written = program.config, Counter[tuple[regions.Region, int]]()
    items = items_of(program)
    assert {item.after for item in items} == {0}
    assert sum(item.address == tape.PASS for item in items) == len(network.layers)
    for item in items:
        if item.address != tape.PASS:
            region, first, part = tape.entry(config, item)
            count, rest = divmod(len(item.payload), regions.slices(config)[region])
            assert (part, rest) == (0, 0)
            written.update((region, first + entry) for entry in range(count))
    used = program.contents.used
    assert set(written) == {(region, i) for region in tape.WRITTEN for i in range(used[region])}
    assert set(written.values()) == {1}
    assert [(one.layer, one.tile, one.first, one.end) for one in program.passes] == [
        (number, 0, 0, layer.output_shape[1]) for number, layer in enumerate(network.layers)
    ]
    assert program.budget == ()
