"""Counts against an event-by-event reference, and against closed forms."""

from __future__ import annotations

from collections import Counter as Tally

import numpy as np
import pytest
from reference import execute

from lbq_hw import golden
from lbq_hw.golden import counts
from lbq_hw.golden.counts import Counts, Work
from lbq_hw.network import INPUT, Input, Layer, Network, Neuron, Path, Window
from lbq_hw.sim.drawn.networks import random_images, random_network


def count(network: Network, raw: np.ndarray, batch: int | None = None) -> Counts:
    counter = counts.Counter(network)
    golden.run(network, raw, batch=batch, observe=counter)
    return counter.counts()


@pytest.mark.parametrize("seed", range(40))
def test_counts_of_a_random_network_equal_the_reference(seed: int) -> None:
    network = random_network(seed)
    raw = random_images(network, 2, seed=3)
    result = count(network, raw)
    executions = [execute(network, image) for image in raw]
    for layer in result.layers:
        tally = sum((done.operations[layer.name] for done in executions), Tally())
        assert layer.work.unary == tally["unary"] / 2
        assert layer.work.bit_sparse == tally["bit_sparse"] / 2
        assert layer.work.shifts == tally["shifts"] / 2
        assert layer.formation_ops == tally["formation"] / 2
        levels = [
            level
            for done in executions
            for step in done.levels[layer.name]
            for level in step.values()
        ]
        if levels:
            assert layer.active == sum(level > 0 for level in levels) / len(levels)
            assert layer.mean_level == sum(levels) / len(levels)
        else:
            assert layer.active is layer.mean_level is None
    assert result.images == 2
    assert result.work.bit_sparse == sum(layer.work.bit_sparse for layer in result.layers)
    assert result.formation_ops == sum(layer.formation_ops for layer in result.layers)


@pytest.mark.parametrize("seed", range(5))
def test_counts_do_not_depend_on_the_batch_size(seed: int) -> None:
    network = random_network(seed)
    raw = random_images(network, 4)
    assert count(network, raw, batch=1) == count(network, raw)


def white(*, padding: int, stride: int, pool: Window | None = None, bits: int = 1) -> Network:
    """A 3x3 convolution of 2 -> 4 channels on 6x8 pixels, one neuron layer, T = 3."""
    conv = Path(
        source=INPUT,
        weight=np.ones((4, 2, 3, 3), np.int64),
        stride=(stride, stride),
        padding=(padding, padding),
        pool=pool,
    )
    shape = conv.output_shape((2, 6, 8))
    hidden = Layer(
        name="hidden",
        shape=shape,
        paths=(conv,),
        bias=np.zeros(4, np.int64),
        fraction_bits=0,
        neuron=Neuron(
            capacity=5,
            theta=np.ones(4, np.int64),
            reset=np.zeros(4, np.int64),
            decay=0,
            decay_bits=0,
        ),
    )
    logits = Layer(
        name="logits",
        shape=(10, 1, 1),
        paths=(Path(source="hidden", weight=np.ones((10, *shape), np.int64)),),
        bias=np.zeros(10, np.int64),
        fraction_bits=0,
        neuron=None,
    )
    return Network(
        name="white",
        input=Input(shape=(2, 6, 8), static=True, bits=bits),
        timesteps=3,
        weight_bits=4,
        layers=(hidden, logits),
    )


WHITE = np.full((1, 2, 6, 8), 255, np.uint8)


def test_padding_taps_make_the_difference_between_the_two_fan_outs() -> None:
    network = white(padding=1, stride=1)
    stem = count(network, WHITE).layers[0]
    assert stem.macs == stem.padded.unary == 9 * 6 * 8 * 2 * 4  # every level 1, every tap read
    assert stem.work.unary == (3 * 6 - 2) * (3 * 8 - 2) * 2 * 4


def test_strided_windows_read_some_positions_more_often() -> None:
    network = white(padding=1, stride=2)
    path = network.layers[0].paths[0]
    rows, columns = np.array([1, 2, 1, 2, 1, 1]), np.array([1, 2, 1, 2, 1, 2, 1, 1])
    assert counts.fan_out((2, 6, 8), path).tolist() == (4 * np.outer(rows, columns)).tolist()
    assert counts.fan_out_with_padding((2, 6, 8), path) == 4 * 9 * (3 * 4) / (6 * 8)


def test_a_pool_multiplies_into_the_fan_out() -> None:
    pool = Window(kernel=(2, 2), stride=(2, 2))
    path = white(padding=1, stride=1, pool=pool).layers[0].paths[0]
    rows = np.repeat([2, 3, 2], 2)
    columns = np.repeat([2, 3, 3, 2], 2)
    assert counts.fan_out((2, 6, 8), path).tolist() == (4 * np.outer(rows, columns)).tolist()
    assert counts.fan_out_with_padding((2, 6, 8), path) == 4 * 9


def test_an_identity_costs_one_accumulation_a_set_bit() -> None:
    path = Path(source="a", weight=np.ones(2, np.int64))
    assert counts.fan_out((2, 3, 3), path).tolist() == np.ones((3, 3)).tolist()
    assert counts.fan_out_with_padding((2, 3, 3), path) == 1


def test_a_static_input_executes_once_and_is_not_formed() -> None:
    result = count(white(padding=0, stride=1, bits=8), WHITE)
    stem, readout = result.layers
    assert stem.paths[0].executions == 1
    taps = 4 * 6 * 9 * 2 * 4
    assert stem.work == Work(unary=255 * taps, bit_sparse=8 * taps, shifts=7 * taps, nonzero=taps)
    neurons = 4 * 4 * 6
    assert stem.active == 1.0
    assert stem.mean_level == 5.0
    assert stem.plane_bits == (3 * neurons, 0, 3 * neurons)  # level 5 = 0b101 in all 3 timesteps
    assert result.formation_ops == stem.formation_ops == 6 * neurons
    assert readout.paths[0].executions == 3
    assert readout.work.bit_sparse == 10 * result.formation_ops
    assert result.input_plane_bits == (96,) * 8
    assert result.input_macs == stem.macs == taps
    assert result.paper_work() == readout.work
    assert result.macs == counts.macs(white(padding=0, stride=1)) == taps + 10 * neurons


def test_the_papers_convention_leaves_out_pixels_and_identities() -> None:
    network = next(
        network
        for network in map(random_network, range(100))
        if any(p.is_identity and p.source != INPUT for la in network.layers for p in la.paths)
    )
    result = count(network, random_images(network, 2))
    kept = [path for path in result.paths if path.source != INPUT and not path.identity]
    assert len(kept) < len(result.paths)
    assert result.paper_work() == sum((path.work for path in kept), Work())
    assert result.paper_work(padded=True) == sum((path.padded for path in kept), Work())


def test_a_layer_summary_names_both_conventions() -> None:
    summary = count(white(padding=1, stride=1), WHITE).layers[0].summary()
    assert summary["acs_bit_sparse"] < summary["acs_bit_sparse_with_padding"] == summary["macs"]
    assert summary["shape"] == [4, 6, 8]
    assert summary["sources"] == ["input"]


def test_nothing_saved_where_nothing_is_spent() -> None:
    assert counts.saved_percent(0, 0) == 0.0


def test_no_image_no_counts() -> None:
    with pytest.raises(ValueError, match=r"^counts need at least one image$"):
        counts.Counter(white(padding=0, stride=1)).counts()


def test_resnet20_has_the_papers_macs() -> None:
    network = pytest.importorskip("tools.bench").resnet20()
    assert counts.macs(network) == 2_587_235_328
    stem = network.layers[0]
    assert counts.path_macs(stem, stem.paths[0]) == 3_538_944
    weights = sum(
        path.weight.size for la in network.layers for path in la.paths if path.weight.ndim > 1
    )
    assert weights == 17_289_866 - 10 - 2 * sum(
        la.shape[0] * (sum(path.weight.ndim > 1 for path in la.paths)) for la in network.layers[:-1]
    )  # a norm of gain and bias behind each convolution, and the readout's bias
