"""Networks that use all bits and entries of a core are exact; each kind of difference is told."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from simulators import NARROW, WIDE, Shape, bench, drawn, needs_verilator, shared_core

from lbq_hw.compiler import CompileError, compile_network
from lbq_hw.sim.drawn.networks import random_images, random_network
from lbq_hw.sim.mutants.strong import deep_network, widened
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
