"""Whole networks on the RTL: every layer, timestep and logit as golden has them."""

from __future__ import annotations

import pytest
from simulators import (
    NARROW,
    SHAPES,
    WIDE,
    Shape,
    bench,
    digits,
    drawn,
    needs_verilator,
    shape_seeds,
    shared_core,
    spread_core,
)

from lbq_hw import datasets, golden
from lbq_hw.compiler import compile_network
from lbq_hw.config import CoreConfig, Profile
from lbq_hw.cycles import predict
from lbq_hw.sim import verilog
from lbq_hw.sim.check import check
from lbq_hw.sim.drawn.cores import common_core
from lbq_hw.sim.drawn.networks import random_images
from lbq_hw.sim.verilator import Verilated, build, rtl

pytestmark = needs_verilator


def assert_exact(config: CoreConfig, seeds: range) -> None:
    """All on one core that is never reset, so that each finds what the one before it left."""
    with Verilated(bench(config)) as core:
        for seed in seeds:
            network = drawn(seed, config.lanes)
            images = random_images(network, 1 + seed % 2, seed)
            outcome = check(network, compile_network(network, config), core, images)
            assert outcome.difference is None, f"seed {seed}: {outcome.difference}"
            assert outcome.images == len(images)


@pytest.mark.parametrize("first", range(0, 25, 5))
@pytest.mark.parametrize("shape", [NARROW, WIDE], ids=str)
def test_random_networks_are_bit_exact(shape: Shape, first: int) -> None:
    assert_exact(shared_core(shape), range(first, first + 5))


@pytest.mark.slow
@pytest.mark.parametrize("shape", [NARROW, WIDE], ids=str)
def test_random_networks_are_bit_exact_where_weights_fill_a_chip(shape: Shape) -> None:
    assert_exact(spread_core(shape), range(10))


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_random_networks_are_bit_exact_on_cores_of_every_shape(shape: Shape) -> None:
    seeds = shape_seeds(shape)
    assert_exact(shared_core(shape, seeds), seeds)


def test_a_core_for_one_path_that_counts_cycles_alone_is_bit_exact_and_on_time() -> None:
    """What small chips get: registers for the only path, the fewest counters, and few registers of
    neurons.
    """
    drawn_networks = (drawn(seed, 8) for seed in range(200))
    single = [n for n in drawn_networks if all(len(layer.paths) == 1 for layer in n.layers)][:8]
    small = common_core(single, lanes=8, word=16, summary=8, units=1)
    config = small.with_(counters=1, counter_bits=32, profile=Profile.COMPACT)
    assert config.layer_paths == 1
    with Verilated(bench(config)) as core:
        for network in single:
            images = random_images(network, 2, seed=1)
            program = compile_network(network, config)
            outcome = check(network, program, core, images)
            assert outcome.difference is None, outcome.difference
            traces = golden.run(network, images, keep="levels").traces
            for number, image in enumerate(images):
                levels = {n: t.output[:, number] for n, t in traces.items() if t.output is not None}
                outcome.cycles -= sum(layer.cycles for layer in predict(program, image, levels))
            assert outcome.cycles == 0


@pytest.mark.slow
def test_a_core_whose_memories_are_instances_is_the_same_core(monkeypatch) -> None:
    config, network = shared_core(WIDE), digits()
    images = datasets.load("digits", split="test").images[:2]
    monkeypatch.setattr(verilog, "LARGE", 1)
    assert rtl(config).count("large_memory #(") > 5
    reports = []
    for _ in range(2):
        with Verilated(build(config)) as core:
            report = check(network, compile_network(network, config), core, images).report()
        reports.append({key: report[key] for key in ("bit_exact", "cycles", "layers")})
        monkeypatch.undo()
    assert reports[0] == reports[1]
    assert reports[0]["bit_exact"]


@pytest.mark.parametrize("shape", [NARROW, WIDE], ids=str)
def test_the_digits_are_bit_exact(shape: Shape) -> None:
    config = shared_core(shape)
    images = datasets.load("digits", split="test").images[:2]
    with Verilated(bench(config)) as core:
        outcome = check(digits(), compile_network(digits(), config), core, images)
    report = outcome.report()
    assert (report["bit_exact"], report["difference"], report["images"]) == (True, None, 2)
    assert 0 < report["utilisation"] <= 1
