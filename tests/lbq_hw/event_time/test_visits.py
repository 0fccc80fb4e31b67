"""What is visited: exactly where something other than a leak happens, whatever the network."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from lbq_hw import golden
from lbq_hw.compiler import compile_network, smallest_for
from lbq_hw.cycles import predict
from lbq_hw.event_time.visits import LayerVisits, rests, visits
from lbq_hw.network import Network
from lbq_hw.network.neuron import RULES
from lbq_hw.sim.drawn.networks import random_images, random_network


def recording(seed: int) -> tuple[Network, np.ndarray]:
    """A network without biases and max-pools, and frames of which most pixels are black."""
    for drawn in range(seed * 100, seed * 100 + 100):
        network = random_network(drawn, static=False, timesteps=12)
        if any(layer.pool for layer in network.layers) or network.input.border:
            continue
        quiet = [replace(layer, bias=np.zeros_like(layer.bias)) for layer in network.layers]
        network = replace(network, layers=tuple(quiet))
        raw = random_images(network, 1, seed)[0]
        kept = np.random.default_rng(seed).random(raw.shape) < 0.05
        return network, np.where(kept, raw, np.uint8(0))
    raise AssertionError("no such network among 100")


@pytest.mark.parametrize("seed", range(12))
def test_executing_visits_alone_and_the_leaks_they_are_owed_gives_every_membrane(seed: int) -> None:
    network, raw = recording(seed)
    found = visits(network, raw)
    traces = golden.run(network, raw[None], keep="all").traces
    for layer, here in zip(network.layers[:-1], found, strict=False):
        neuron, trace = layer.neuron, traces[layer.name]
        assert neuron is not None
        acc, levels, after = (np.asarray(x)[:, 0] for x in (trace.acc, trace.levels, trace.v))
        v = np.zeros(layer.shape, np.int64)
        for t in range(network.timesteps):
            for y, x in np.argwhere(here.visited[t]):
                old = v[:, y, x]
                for _ in range(here.owed[t, y, x] + 1):
                    old = (old * neuron.decay) >> neuron.decay_bits
                u = old + (acc[t, :, y, x].astype(np.int64) << layer.fraction_bits)
                level = np.clip(u // neuron.theta, 0, neuron.capacity)
                for rule in RULES:
                    if rule.per_channel or getattr(neuron, rule.name):
                        numbers = getattr(neuron, rule.name) if rule.per_channel else None
                        u = (
                            u
                            if rule.per_channel and numbers is None
                            else rule.apply(u, level, numbers)
                        )
                v[:, y, x] = u
                assert u.tolist() == after[t, :, y, x].tolist()
                assert level.tolist() == levels[t, :, y, x].tolist()
            assert not levels[t][:, ~here.visited[t]].any()


@pytest.mark.parametrize("seed", range(6))
def test_events_are_those_of_the_cycle_model(seed: int) -> None:
    network, raw = recording(seed)
    program = compile_network(network, smallest_for(network, lanes=4))
    levels = golden.run(network, raw[None], keep="levels").emitted(0)
    for here, layer in zip(visits(network, raw), predict(program, raw, levels), strict=True):
        tiles = -(-here.layer.shape[0] // 4)
        if not any(path.is_identity for path in here.layer.paths):
            assert here.events.sum() * tiles == layer.events


def test_neurons_with_a_bias_never_rest_and_a_readout_always_does() -> None:
    network, raw = recording(0)
    first, *_, readout = network.layers
    biased = replace(first, bias=first.bias + 1)
    assert (rests(first), rests(biased)) == (True, False)
    assert rests(replace(readout, bias=readout.bias + 1))
    found = visits(replace(network, layers=(biased, *network.layers[1:])), raw)
    assert found[0].visited.all()
    assert not found[0].owed.any()


def test_a_position_is_owed_the_leaks_between_two_visits() -> None:
    network, raw = recording(0)
    silent = np.zeros_like(raw)
    silent[[2, 7]] = 255
    (layer, *_) = network.layers
    assert layer.neuron is not None
    still = replace(
        layer,
        neuron=replace(layer.neuron, theta=np.full(layer.shape[0], 2**20), decay=1, decay_bits=1),
    )
    found = visits(replace(network, layers=(still, *network.layers[1:])), silent)[0]
    assert np.flatnonzero(found.visited.any(axis=(1, 2))).tolist() == [2, 7]
    assert found.owed[7].max() == 4
    assert not np.delete(found.owed, 7, axis=0).any()


def test_words_of_a_visit_are_those_of_pixels_that_are_not_empty() -> None:
    taps = np.zeros((2, 1, 1, 1, 4), np.int64)
    taps[0, 0, 0, 0] = 3, 0, 1, 0
    taps[1, 0, 0, 0] = 0, 0, 2, 0
    network, raw = recording(0)
    made = replace(visits(network, raw)[0], taps=taps)
    assert isinstance(made, LayerVisits)
    assert made.words(0, 0, 0).tolist() == [[3, 1], [0, 2]]


def test_static_inputs_and_max_pools_are_refused() -> None:
    static = random_network(0, static=True)
    text = "network 'random' has a static input: give one for recordings"
    with pytest.raises(ValueError, match=f"^{text}$"):
        visits(static, random_images(static, 1)[0])
    pooled = next(
        network
        for network in (random_network(seed, static=False) for seed in range(99))
        if network.layers[0].pool
    )
    names = [layer.name for layer in pooled.layers if layer.pool]
    text = f"layers {names} have max-pools: give a network without"
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        visits(pooled, random_images(pooled, 1)[0])
