"""Torch in integer mode equals the golden model: every layer, every timestep, every bit."""

import numpy as np
import pytest
import torch
from small_models import raw_images, small_model

from lbq_hw import golden
from lbq_hw.network import INPUT, Network
from lbq_hw.sim.drawn.networks import random_images, random_network
from lbq_hw.train.deploy.integer import IntegerNetwork
from lbq_hw.train.export import integer_network
from lbq_hw.train.preparation import prepare


def assert_twin_equals_golden(network: Network, raw: np.ndarray) -> None:
    levels: dict[str, np.ndarray] = {}
    logits = IntegerNetwork(network)(
        torch.from_numpy(raw), lambda layer, seen: levels.update({layer.name: seen.numpy()})
    )
    expected = golden.run(network, raw, keep="levels")
    np.testing.assert_array_equal(logits.numpy(), expected.logits)
    assert [*levels] == [layer.name for layer in network.layers[:-1]]
    for name, found in levels.items():
        np.testing.assert_array_equal(found, expected.traces[name].levels, err_msg=name)
    assert expected.traces[INPUT].levels is not None


@pytest.mark.parametrize("seed", range(200))
def test_torch_equals_golden_on_a_random_network(seed):
    network = random_network(seed)
    assert_twin_equals_golden(network, random_images(network, 2, seed))


@pytest.mark.parametrize(
    "name", ["digits", "mnist", "nmnist", "vgg", "resnet18", "resnet19", "resnet20", "resnet34"]
)
@pytest.mark.parametrize("bits", [8, 4])
def test_torch_equals_golden_on_a_shipped_model(name, bits):
    torch.manual_seed(0)
    plain, spec = small_model(name, gamma0=0.3)
    model = plain if bits == 8 else prepare(plain, spec, weight_bits=bits)
    network = integer_network(model, spec)
    assert network.weight_bits == bits
    assert_twin_equals_golden(network, raw_images(spec, 2).numpy())
