"""The spiking CNN of the NIR paper: 2x34x34 recordings of 300 steps, 39,584 weights."""

from __future__ import annotations

import warnings
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import nir
import numpy as np
import pytest
from simulators import bench, needs_verilator

from lbq_hw import golden
from lbq_hw.compiler import compile_network, smallest_for
from lbq_hw.cycles import predict
from lbq_hw.network import Network
from lbq_hw.sim.check import check
from lbq_hw.sim.verilator import Verilated
from lbq_hw.train.data import InputSpec
from lbq_hw.train.export import integer_network
from lbq_hw.train.nir import read

SPEC = InputSpec(shape=(2, 34, 34), static=False, bits=1)


def paper() -> nir.NIRGraph:
    """Conv 5x5 stride 2, Conv, SumPool, Conv, SumPool, Flatten, Affine, Affine, each with IF."""
    rng = np.random.default_rng(0)

    def weight(*shape: int) -> np.ndarray:
        return rng.normal(0.05, 1.0, shape) * 1.6 / np.sqrt(np.prod(shape[1:]))

    def conv(side: int, stride: int, *shape: int) -> nir.Conv2d:
        bias = np.zeros(shape[0])
        return nir.Conv2d((side, side), weight(*shape), stride, 1, 1, 1, bias)

    def spiking(*shape: int) -> nir.IF:
        return nir.IF(r=np.ones(shape), v_threshold=np.ones(shape))

    def pool() -> nir.SumPool2d:
        return nir.SumPool2d(np.array([2, 2]), np.array([2, 2]), np.array([0, 0]))

    nodes = [
        nir.Input(input_type={"input": np.array(SPEC.shape)}),
        *(conv(34, 2, 16, 2, 5, 5), spiking(16, 16, 16)),
        *(conv(16, 1, 16, 16, 3, 3), spiking(16, 16, 16), pool()),
        *(conv(8, 1, 8, 16, 3, 3), spiking(8, 8, 8), pool()),
        nir.Flatten({"input": np.array([8, 4, 4])}, 0, -1),
        *(nir.Affine(weight(256, 128), np.zeros(256)), spiking(256)),
        *(nir.Affine(weight(10, 256), np.zeros(10)), spiking(10)),
        nir.Output(output_type={"output": np.array([10])}),
    ]
    names = [f"n{number}" for number in range(len(nodes))]
    edges = list(pairwise(names))
    return nir.NIRGraph(dict(zip(names, nodes, strict=True)), edges, type_check=False)


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Network:
    """The graph, read from a file, over 300 timesteps; compared with its module over 12."""
    path: Path = tmp_path_factory.mktemp("paper") / "paper.nir"
    nir.write(path, paper())
    graph, reading = read.load(path, reset="subtract")
    model = read.module(graph, reading, timesteps=12, static=False)
    raw = (np.random.default_rng(1).random((2, 12, *SPEC.shape)) < 0.1).astype(np.uint8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = integer_network(model, SPEC, name="paper", samples=raw)
    return replace(made, timesteps=300)


def test_it_is_read_with_all_its_weights(network: Network) -> None:
    weights = [p.weight for layer in network.layers for p in layer.paths if not p.is_identity]
    assert sum(weight.size for weight in weights) == 39584
    assert [layer.shape for layer in network.layers] == [
        *((16, 16, 16), (16, 16, 16), (8, 8, 8), (256, 1, 1), (10, 1, 1), (10, 1, 1))
    ]
    pools = [layer.paths[0].pool for layer in network.layers]
    assert [pool is not None for pool in pools] == [False, False, True, True, False, False]


def test_its_activations_of_300_steps_fit_into_an_ecp5_85(network: Network) -> None:
    config = smallest_for(network, lanes=32)
    program = compile_network(network, config)
    bits = config.plane_words * config.word + program.usage["weight_rows"] * config.lanes * 8
    assert bits < 208 * (1 << 14)
    assert (config.planes, config.decay_bits, config.window) == (1, 0, 1)


@pytest.mark.slow
@needs_verilator
def test_it_is_bit_exact_on_the_rtl_over_300_steps(network: Network) -> None:
    config = smallest_for(network, lanes=32)
    raw = (np.random.default_rng(2).random((1, 300, *SPEC.shape)) < 0.01).astype(np.uint8)
    with Verilated(bench(config)) as core:
        outcome = check(network, compile_network(network, config), core, raw)
    assert outcome.difference is None, outcome.difference
    assert outcome.images == 1
    levels = golden.run(network, raw, keep="levels").emitted(0)
    predicted = predict(compile_network(network, config), raw[0], levels)
    assert outcome.layer_cycles.tolist() == [layer.cycles for layer in predicted]
