"""Networks that use all bits and entries of a core are exact; each kind of difference is told."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from simulators import NARROW, WIDE, Shape, bench, drawn, needs_verilator, shared_core

from lbq_hw import golden
from lbq_hw.compiler import CompileError, compile_network
from lbq_hw.network import Network
from lbq_hw.sim.drawn.networks import random_images, random_network
from lbq_hw.sim.mutants.made import deep_network, edge_network, large_network, lonely_network
from lbq_hw.sim.mutants.strong import scaled, sparse, widened
from lbq_hw.sim.mutants.trials import Rehearsed, rehearse
from lbq_hw.sim.sweep.stands import OnChip, Trial
from lbq_hw.sim.verilator import Verilated

SEEDS = range(4)


def rehearsed(shape: Shape, *, wide: bool, seed: int) -> Rehearsed:
    config = shared_core(shape)
    network = deep_network(config, seed)
    if wide:
        network = widened(drawn(seed, config.lanes), config, seed)
    trial = Trial(network=network, inputs=random_images(network, 1, seed))
    return rehearse(OnChip(config=config), trial)


@pytest.mark.parametrize("shape", [NARROW, WIDE], ids=["narrow", "wide"])
def test_widened_networks_use_all_bits_of_a_membrane(shape: Shape) -> None:
    config = shared_core(shape)
    for seed in SEEDS:
        plain = compile_network(drawn(seed, config.lanes), config)
        program = rehearsed(shape, wide=True, seed=seed).program
        assert max(info.membrane_bits for info in program.info) == config.membrane_bits
        assert max(info.acc_bits for info in plain.info) <= max(
            info.acc_bits for info in program.info
        )


@pytest.mark.parametrize("shape", [NARROW, WIDE], ids=["narrow", "wide"])
def test_a_deeper_network_would_not_fit(shape: Shape) -> None:
    config = shared_core(shape)
    for seed in SEEDS:
        layers = len(deep_network(config, seed).layers)
        compile_network(random_network(seed, layers=layers - 1), config)
        with pytest.raises(CompileError, match=r"^network 'random' does not fit the core"):
            compile_network(random_network(seed, layers=layers), config)


def levels_of(network: Network, seed: int = 0) -> list[np.ndarray]:
    """The levels of each layer for a random image."""
    image = random_images(network, 1, seed)
    return [*golden.run(network, image, keep="levels").emitted(0).values()]


@pytest.mark.parametrize("shape", [NARROW, WIDE], ids=["narrow", "wide"])
def test_neurons_at_their_thresholds_fire_and_neurons_just_below_do_not(shape: Shape) -> None:
    """With thresholds that are higher by 1, levels change, and with lower ones others do."""
    network = edge_network(shared_core(shape), 1)
    for number, layer in enumerate(network.layers[:-1]):
        assert layer.neuron is not None
        changes = []
        for more in (-1, 1):
            theta = np.maximum(1, layer.neuron.theta + more)
            changed = replace(layer, neuron=replace(layer.neuron, theta=theta))
            layers = (*network.layers[:number], changed, *network.layers[number + 1 :])
            other = replace(network, layers=layers)
            differing = levels_of(network)[number] != levels_of(other)[number]
            changes.append({*np.flatnonzero(differing.any(axis=(0, 2, 3))).tolist()})
        assert min(map(len, changes)) >= layer.shape[0] / 4
        assert changes[0] != changes[1]


@pytest.mark.parametrize("shape", [NARROW, WIDE], ids=["narrow", "wide"])
def test_each_channel_is_alone_in_a_plane(shape: Shape) -> None:
    config, seen = shared_core(shape), set[int]()
    for seed in SEEDS:
        for levels in levels_of(lonely_network(config, seed)):
            for plane in range(config.planes):
                bits = levels >> plane & 1
                assert np.all(bits.sum(axis=1) == 1)
                seen |= {*np.flatnonzero(bits.any(axis=(0, 2, 3))).tolist()}
    assert seen == {*range(2 * config.lanes)}


@pytest.mark.parametrize("shape", [NARROW, WIDE], ids=["narrow", "wide"])
def test_few_neurons_of_a_sparse_network_fire(shape: Shape) -> None:
    config = shared_core(shape)
    for seed in SEEDS:
        plain = drawn(seed, config.lanes)
        before, after = (
            np.concatenate([levels.ravel() for levels in levels_of(network, seed)])
            for network in (plain, sparse(plain, config, seed))
        )
        assert 0 < np.count_nonzero(after) <= np.count_nonzero(before)


@pytest.mark.parametrize("shape", [NARROW, WIDE], ids=["narrow", "wide"])
def test_scaled_neurons_count_in_steps_of_all_sizes(shape: Shape) -> None:
    config, sizes = shared_core(shape), set[int]()
    for seed in range(20):
        network = scaled(drawn(seed, config.lanes), config, seed)
        for layer in network.layers[:-1]:
            assert layer.neuron is not None
            sizes |= {int(theta).bit_length() for theta in layer.neuron.theta}
    assert {*range(1, config.membrane_bits - 4)} <= sizes


@pytest.mark.parametrize("shape", [NARROW, WIDE], ids=["narrow", "wide"])
def test_a_large_network_has_rows_as_long_as_the_core_allows(shape: Shape) -> None:
    config = shared_core(shape)
    networks = [large_network(config, seed) for seed in range(12)]
    assert max(max(layer.shape[1:]) for one in networks for layer in one.layers) == config.side
    assert any(layer.pool for one in networks for layer in one.layers)


@needs_verilator
@pytest.mark.parametrize("shape", [NARROW, WIDE], ids=["narrow", "wide"])
def test_networks_that_use_all_bits_and_entries_are_exact(shape: Shape) -> None:
    with Verilated(bench(shared_core(shape))) as core:
        for seed in SEEDS:
            for wide in (False, True):
                found = rehearsed(shape, wide=wide, seed=seed).difference(core)
                assert found is None, f"seed {seed}: {found}"


@needs_verilator
def test_each_kind_of_difference_is_told() -> None:
    right = rehearsed(NARROW, wide=True, seed=1)
    [answer] = right.answers
    layer, levels = answer.layers[0], answer.levels["layer0"]
    assert layer.words is not None
    counted = replace(layer, words=layer.words + 1)
    words = f"words {counted.words} predicted, {layer.words} counted"
    wrong = {
        r"image 0, layer 'layer0', level \[0, 0, 0, 0\]: golden \d+, core \d+": replace(
            answer, levels={**answer.levels, "layer0": levels ^ np.uint8(1)}
        ),
        r"image 0, logit \[0\]: golden -?\d+, core -?\d+": replace(
            answer, logits=answer.logits + 1
        ),
        f"image 0, layer 'layer0': {words}": replace(answer, layers=(counted, *answer.layers[1:])),
    }
    with Verilated(bench(shared_core(NARROW))) as core:
        for told, changed in wrong.items():
            found = replace(right, answers=(changed,)).difference(core)
            assert found is not None
            assert re.fullmatch(told, found), found
