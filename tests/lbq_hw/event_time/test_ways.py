"""Cycles, memory and tables of ways to execute a recording."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lbq_hw import golden
from lbq_hw.compiler import compile_network, smallest_for
from lbq_hw.cycles import predict
from lbq_hw.cycles.stages import NeuronTiming
from lbq_hw.event_time.measured import measure
from lbq_hw.event_time.memory import memory_bits
from lbq_hw.event_time.visits import visits
from lbq_hw.event_time.ways import START, Wiring, map_cycles, walker_cycles
from lbq_hw.network import Network
from lbq_hw.sim.drawn.networks import random_images, random_network


def temporal(*, bias: bool) -> Network:
    """Without max-pools and borders; all layers of neurons with a bias, or none."""
    drawn = (random_network(seed, static=False, timesteps=6) for seed in range(99))
    plain = (n for n in drawn if not (n.input.border or any(x.pool for x in n.layers)))
    network = next(n for n in plain if len(n.layers) > 2)
    ones = [np.full_like(layer.bias, bias) for layer in network.layers]
    layers = [replace(layer, bias=one) for layer, one in zip(network.layers, ones, strict=True)]
    return replace(network, layers=tuple(layers))


def test_todays_walker_that_skips_nothing_takes_the_cycles_of_the_model() -> None:
    network = temporal(bias=True)
    raw = np.maximum(random_images(network, 1)[0], 255)  # the readout has events everywhere, too
    program = compile_network(network, smallest_for(network, lanes=8))
    found = [replace(one, visited=np.ones_like(one.visited)) for one in visits(network, raw)]
    levels = golden.run(network, raw[None], keep="levels").emitted(0)
    expected = [layer.cycles for layer in predict(program, raw, levels)]
    assert walker_cycles(program, raw, found, block=6).tolist() == [expected]


@pytest.mark.parametrize("block", [1, 4])
def test_silence_takes_the_start_of_each_pass(block: int) -> None:
    network = temporal(bias=False)
    silent = np.zeros_like(random_images(network, 1)[0])
    config = smallest_for(network, lanes=8)
    found = visits(network, silent)
    cycles = map_cycles(config, found, block=block, wiring=Wiring())
    assert cycles.tolist() == [[START] * len(network.layers)] * -(-6 // block)


def test_slower_memories_take_more_cycles_and_no_fewer_than_their_own() -> None:
    network = temporal(bias=True)
    raw = random_images(network, 1)[0]
    config = smallest_for(network, lanes=8)
    found = visits(network, raw)
    fast, slow = (
        map_cycles(config, found, block=1, wiring=wiring).sum(axis=0)
        for wiring in (Wiring(), Wiring(event_cycles=2, membranes=2))
    )
    for layer, (one, other, here) in enumerate(zip(fast, slow, found, strict=True)):
        tiles = -(-here.layer.shape[0] // 8)
        assert one >= here.events.sum() * tiles
        assert other >= max(2 * here.events.sum(), 8 * here.visited.sum()) * tiles
        assert other > one, layer


def test_membranes_that_take_turns_take_a_cycle_for_some_of_them_each_way() -> None:
    config = smallest_for(temporal(bias=True), lanes=16)
    assert Wiring().timing(config) == NeuronTiming.of(config)
    assert Wiring(membranes=2).timing(config).groups == 16
    assert Wiring(membranes=4).timing(config).groups == 8


def test_memory_is_counted_by_kind() -> None:
    network = temporal(bias=False)
    whole = memory_bits(network, lanes=8, block=6, membrane_bits=20)
    one = memory_bits(network, lanes=8, block=1, membrane_bits=20)
    config = smallest_for(network, lanes=8)
    assert whole.levels == config.plane_words * config.word > one.levels
    assert (whole.membranes, whole.stamps) == (0, 0)
    spiking = network.layers[:-1]
    assert one.membranes == 20 * sum(int(np.prod(layer.shape)) for layer in spiking)
    assert whole.maps == 6 * one.maps
    assert one.weights == whole.weights == config.weight_rows * 8 * network.weight_bits


def test_several_recordings_are_means_and_maxima() -> None:
    network = temporal(bias=False)
    raw = random_images(network, 2)
    both, (one, other) = measure(network, raw), (measure(network, x[None]) for x in raw)
    assert both["recordings"] == 2
    for way, a, b in zip(both["ways"], one["ways"], other["ways"], strict=True):
        means = [x["cycles"]["mean"] for x in (a, b)]
        assert way["cycles"] == {"mean": sum(means) / 2, "most": max(means)}
        assert way["pass"]["most"] == max(a["pass"]["most"], b["pass"]["most"])
    for layer, a, b in zip(both["layers"], one["layers"], other["layers"], strict=True):
        events = [round(x["events"]["mean"] * 6) for x in (a, b)]
        assert round(layer["events"]["mean"] * 12) == sum(events)
        assert layer["visited"]["most"] == max(a["visited"]["most"], b["visited"]["most"])
    fewer = measure(network, raw, others=1)
    assert [way["recordings"] for way in fewer["ways"]] == [1, 1, 2, 1, 2]
    assert fewer["ways"][0] == one["ways"][0]
