"""The cycle model against the RTL: every counter of every layer, and of whole programs."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
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
from lbq_hw.config import CoreConfig
from lbq_hw.cycles import predict
from lbq_hw.host import Device
from lbq_hw.isa.regions import COUNTERS
from lbq_hw.network import Network
from lbq_hw.sim.drawn.networks import random_images
from lbq_hw.sim.verilator import Verilated

pytestmark = needs_verilator


def differences(
    core: Verilated, network: Network, config: CoreConfig, image: NDArray[np.uint8]
) -> list[str]:
    """Where RTL and model differ: layers alone, and the program, which is the sum of them."""
    program = compile_network(network, config)
    levels = golden.run(network, image[None], keep="levels").emitted(0)
    predicted = predict(program, image, levels)
    device = Device(core, program)
    device.load()
    device.write_image(image)
    runs = []
    for index, layer in enumerate(predicted):
        device.run_layer(index)
        runs.append((layer.name, device.counters(), vars(layer)))
    device.run(image)
    total = {name: sum(getattr(layer, name) for layer in predicted) for name in COUNTERS}
    runs.append(("all layers", device.counters(), total))
    return [
        f"{where}: {name} {getattr(counted, name)} in the RTL, {found[name]} predicted"
        for where, counted, found in runs
        for name in COUNTERS
        if getattr(counted, name) != found[name]
    ]


def assert_equal(config: CoreConfig, seeds: range) -> None:
    with Verilated(bench(config)) as core:
        for seed in seeds:
            network = drawn(seed, config.lanes)
            for image in random_images(network, 1 + seed % 2, seed):
                found = differences(core, network, config, image)
                assert not found, "\n".join([f"seed {seed}", *found])


@pytest.mark.parametrize("first", range(0, 25, 5))
@pytest.mark.parametrize("shape", [NARROW, WIDE], ids=str)
def test_every_counter_of_random_networks_is_predicted(shape: Shape, first: int) -> None:
    assert_equal(shared_core(shape), range(first, first + 5))


@pytest.mark.parametrize("shape", [NARROW, pytest.param(WIDE, marks=pytest.mark.slow)], ids=str)
def test_every_counter_is_predicted_where_weights_fill_a_chip(shape: Shape) -> None:
    assert_equal(spread_core(shape), range(10))


@pytest.mark.parametrize("shape", [NARROW, WIDE], ids=str)
def test_every_counter_of_the_digits_is_predicted(shape: Shape) -> None:
    config = shared_core(shape)
    with Verilated(bench(config)) as core:
        for image in datasets.load("digits", split="test").images[:3]:
            assert differences(core, digits(), config, image) == []


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_counter_is_predicted_on_cores_of_every_shape(shape: Shape) -> None:
    seeds = shape_seeds(shape)
    assert_equal(shared_core(shape, seeds), seeds)
