"""A tape cut at its layers: the same items, and nothing refused."""

from __future__ import annotations

import pytest
from tapes import compiled, drawn

from lbq_hw import isa
from lbq_hw.isa import regions, tape
from lbq_hw.isa.regions import Region
from lbq_hw.sim.layer_tapes import layer_tapes


@pytest.mark.parametrize("seed", [1, 3, 9])
def test_every_layer_has_a_tape_with_its_passes_and_their_writes(seed: int) -> None:
    network, config = drawn(seed)
    program = compiled(network, config)
    parts = [list(tape.decode(config, data)) for data in layer_tapes(program)]
    assert len(parts) == len(program.info)
    passes = [sum(item.address == tape.PASS for item in part) for part in parts]
    layers = [cut.layer for cut in program.passes]
    assert passes == [layers.count(number) for number in range(len(parts))]
    whole = list(tape.decode(config, program.tape))
    others = [item for part in parts for item in part]
    assert len(others) == len(whole)
    for item, other in zip(whole, others, strict=True):
        if item.address >> regions.SHIFT != Region.LAYERS:
            assert (item.address, item.payload) == (other.address, other.payload)
    for part in parts:
        records = [item for item in part if item.address >> regions.SHIFT == Region.LAYERS]
        entries = [tape.entry(config, item)[1] for item in records]
        assert entries == [number % config.layers for number in range(len(records))]
        words = [sum(v << 32 * i for i, v in enumerate(item.payload)) for item in records]
        marks = [isa.LAYER.decode(config, word)["last"] for word in words]
        assert marks == [0] * (len(marks) - 1) + [1]
