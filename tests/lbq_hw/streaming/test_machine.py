"""The interpreter of streaming programs against golden, at every step."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from streams import counting_network

from lbq_hw.golden.streaming import Stream
from lbq_hw.network import INPUT, Path
from lbq_hw.sim.drawn.networks import random_network
from lbq_hw.sim.drawn.streams import recording, stream_network
from lbq_hw.streaming.compiler import StreamCompileError, compile_stream
from lbq_hw.streaming.machine import Machine, MembraneError


def check(seed: int, *, lanes: int, units: int, steps: int, channels: int | None = None) -> Machine:
    """Compare every level and logit of a random network."""
    network = stream_network(seed, channels=channels)
    program = compile_stream(network, lanes=lanes, units=units, horizon=256)
    machine, golden = Machine(program), Stream(network)
    for frame in recording(network, steps, seed):
        machine.step(program.events(frame))
        expected = golden.step(frame)
        assert machine.logits().tolist() == expected.logits.tolist()
        for name, levels in expected.levels.items():
            tensor = program.tensors[name]
            maps, words = machine.maps[tensor.map :], machine.levels[tensor.base :]
            assert np.array_equal(program.read_levels(name, maps, words), levels), name
    return machine


@pytest.mark.parametrize("seed", range(40))
def test_every_step_of_a_random_network_equals_golden(seed: int) -> None:
    check(seed, lanes=4, units=2, steps=12)


@pytest.mark.parametrize("seed", range(40, 46))
def test_channels_of_one_tile_with_one_group(seed: int) -> None:
    check(seed, lanes=16, units=16, steps=8, channels=9)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1050))
def test_long_streams_equal_golden(seed: int) -> None:
    check(seed, lanes=4, units=1, steps=150)


def test_a_reset_begins_anew() -> None:
    network = stream_network(3)
    program = compile_stream(network, lanes=4, units=2)
    machine = Machine(program)
    events = [program.events(frame) for frame in recording(network, 6)]
    runs = []
    for _ in range(2):
        machine.reset()
        runs.append([(machine.step(words), machine.logits().tolist()) for words in events])
    assert runs[0] == runs[1]


def test_a_membrane_beyond_its_width_is_an_error() -> None:
    network = counting_network()
    program = compile_stream(network, lanes=4, units=2, horizon=4)
    assert program.proven == 4
    machine, full = Machine(program), np.full(network.input.shape, 1, np.uint8)
    assert program.config.membrane_bits == 4
    for _ in range(7):
        machine.step(program.events(full))
    with pytest.raises(
        MembraneError, match="a membrane overflowed its width in step 8: reset the core"
    ):
        machine.step(program.events(full))


def test_what_a_stream_cannot_have_is_refused() -> None:
    network = counting_network()
    static = replace(network, input=replace(network.input, static=True))
    with pytest.raises(StreamCompileError, match="has a static input: a stream needs one frame"):
        compile_stream(static, lanes=4, units=2)
    wide = replace(network.input, shape=(5, 1, 1))
    layer = replace(
        network.layers[0], paths=(Path(source=INPUT, weight=np.ones((1, 5, 1, 1), np.int8)),)
    )
    with pytest.raises(StreamCompileError, match="5 channels: an event word has room for 4"):
        compile_stream(replace(network, input=wide, layers=(layer,)), lanes=4, units=2)
    pooled = next(
        found
        for found in (random_network(seed, static=False) for seed in range(20))
        if any(layer.pool for layer in found.layers)
    )
    with pytest.raises(StreamCompileError, match="has a max-pool, which needs the levels"):
        compile_stream(pooled, lanes=4, units=2)
