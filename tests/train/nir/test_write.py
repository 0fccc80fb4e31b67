"""Integer networks as NIR graphs: read back they emit the same spikes, or they are refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import nir
import numpy as np
import pytest
import torch
from foreign import seen

from lbq_hw import golden
from lbq_hw.network import Input, Layer, Network, Neuron, Window
from lbq_hw.network import Path as Synapses
from lbq_hw.sim.drawn.networks import random_images
from lbq_hw.train.graph import GraphError
from lbq_hw.train.nir import read, write


def network(*, to_zero: bool, decay: int = 1, bits: int = 0, **changes) -> Network:
    """A convolution, a sum pool, a linear layer and a readout that counts its spikes."""
    rng = np.random.default_rng(5)

    def neuron(channels: int, theta: int) -> Neuron:
        thetas = rng.integers(theta // 2, theta, channels)
        return Neuron(
            capacity=1,
            theta=thetas,
            reset=thetas * (not to_zero),
            decay=decay,
            decay_bits=bits,
            to_zero=to_zero,
        )

    conv = Layer(
        name="conv",
        shape=(3, 4, 4),
        paths=(
            Synapses(
                source="input",
                weight=rng.integers(-7, 8, (3, 2, 3, 3)),
                stride=(2, 2),
                padding=(1, 1),
            ),
        ),
        bias=rng.integers(-3, 4, 3),
        fraction_bits=1,
        neuron=neuron(3, 40),
    )
    pool = Window(kernel=(2, 2), stride=(2, 2))
    hidden = Layer(
        name="hidden",
        shape=(4, 1, 1),
        paths=(
            Synapses(
                source="conv", weight=rng.integers(-7, 8, (4, 3, 2, 2)), exponent=1, pool=pool
            ),
        ),
        bias=rng.integers(-3, 4, 4),
        fraction_bits=1,
        neuron=neuron(4, 60),
    )
    count = Layer(
        name="logits",
        shape=(4, 1, 1),
        paths=(Synapses(source="hidden", weight=np.ones(4, np.int64)),),
        bias=np.zeros(4, np.int64),
        fraction_bits=0,
        neuron=None,
    )
    fields = {
        "name": "n",
        "input": Input(shape=(2, 8, 8), static=False, bits=1),
        "timesteps": 9,
        "weight_bits": 4,
        "layers": (conv, hidden, count),
    }
    return Network(**fields | changes)


@pytest.mark.parametrize("decay", [(1, 0), (0, 0), (3, 2)], ids=["no leak", "all leaks", "3/4"])
@pytest.mark.parametrize("to_zero", [True, False], ids=["to zero", "by subtraction"])
def test_spikes_of_a_written_graph_are_those_of_the_network(
    tmp_path: Path, to_zero: bool, decay: tuple[int, int]
) -> None:
    net = network(to_zero=to_zero, decay=decay[0], bits=decay[1])
    nir.write(tmp_path / "net.nir", write.graph(net))
    graph, reading = read.load(tmp_path / "net.nir")
    model = read.module(graph, reading, timesteps=9, static=False)
    raw = random_images(net, 20)
    x = torch.from_numpy(net.input.quantize(raw)).double()
    traces = golden.run(net, raw, keep="levels").traces
    for name, spikes in seen(model, x, 9).items():
        levels = traces[name].levels
        assert levels is not None
        assert 0.02 < levels.mean() < 0.9
        different = np.mean(spikes.numpy().reshape(levels.shape) != levels)
        # A leak is rounded down in the network, and not in the graph.
        assert different == 0 if decay[1] == 0 else different < 0.1


def test_what_other_readers_must_be_told_is_noted() -> None:
    assert list(write.notes(network(to_zero=True))) == []
    assert list(write.notes(network(to_zero=False, decay=3, bits=2))) == [
        "the network resets by subtraction, which NIR cannot say: set other readers to "
        "subtract the threshold when a membrane reaches it",
        "the network rounds leaked membranes down; other readers do not",
    ]


def test_what_nir_cannot_say_is_refused_all_at_once() -> None:
    net = network(to_zero=False)
    conv, hidden, count = net.layers
    assert conv.neuron is not None
    assert hidden.neuron is not None
    pooled = Window(kernel=(1, 1), stride=(1, 1))
    bursts = replace(conv, neuron=replace(conv.neuron, capacity=3), pool=pooled)
    other = replace(hidden, neuron=replace(hidden.neuron, reset=hidden.neuron.theta + 1))
    with pytest.raises(GraphError) as caught:
        write.graph(replace(net, layers=(bursts, other, count)))
    assert [str(violation) for violation in caught.value.violations] == [
        "conv: NIR has no max-pool; use a sum pool",
        "conv: NIR has no bursts, but it emits up to 3 levels; train it with a capacity of 1",
        "hidden: its reset is not its threshold; reset by the threshold, or to zero",
    ]
