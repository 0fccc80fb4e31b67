"""Outputs that are no classes: regressions, several heads, maps of values."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from lbq_hw import file, golden
from lbq_hw.network import Network
from lbq_hw.train import LBQ, InputSpec, integer_network
from lbq_hw.train.deploy import agreement

SPEC = InputSpec(shape=(1, 8, 8), static=True, bits=8)


def stem() -> list[nn.Module]:
    return [nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), LBQ(gamma0=0.25)]


class Heads(nn.Module):
    """A class of three and a box of four coordinates, one behind the other."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(*stem(), nn.AvgPool2d(4), nn.Flatten())
        self.kind, self.box = nn.Linear(32, 3), nn.Linear(32, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        return torch.cat([self.kind(x), self.box(x)], 1)


def regression() -> nn.Module:
    return nn.Sequential(*stem(), nn.AvgPool2d(4), nn.Flatten(), nn.Linear(32, 2))


def depths() -> nn.Module:
    """A value per pixel, two of them."""
    return nn.Sequential(*stem(), nn.Conv2d(8, 2, 1))


MODELS = {"regression": regression, "heads": Heads, "map": depths}
ROUNDED = {"regression": 0.0, "heads": 0.0, "map": 0.01}  # shares that rounded weights may change


def both(model: nn.Module, network: Network) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What model and network give, in the model's unit."""
    raw = agreement.samples(network)
    with torch.no_grad():
        mine = model.eval()(SPEC.normalize(torch.from_numpy(raw))).double().numpy()
    theirs = golden.outputs(network, golden.run(network, raw).logits)
    return mine, theirs.reshape(mine.shape)


@pytest.mark.parametrize("name", MODELS)
def test_values_are_those_of_the_model_in_its_unit(name: str) -> None:
    torch.manual_seed(0)
    model = MODELS[name]().eval()
    head = {} if name == "heads" else {"head": "values"}  # joined outputs are values untold
    network = integer_network(model, SPEC, weight_bits=12, **head)
    assert network.meta["head"] == "values"
    assert file.loads(file.dumps(network)).meta["head"] == "values"
    mine, theirs = both(model, network)
    assert agreement.differing(mine, theirs, values=True).mean() <= ROUNDED[name]


def test_without_being_told_several_outputs_are_classes() -> None:
    torch.manual_seed(0)
    network = integer_network(regression().eval(), SPEC)
    assert "head" not in network.meta
    assert not agreement.reads_values(network)


def test_each_value_is_compared_by_its_own_range() -> None:
    """One that is shifted differs, however large a constant the other has, and classes agree."""
    torch.manual_seed(0)
    model = regression().eval()
    readout = model[-1]
    assert isinstance(readout, nn.Linear)
    with torch.no_grad():
        readout.bias.copy_(torch.tensor([50.0, 0.0]))
    network = integer_network(model, SPEC, weight_bits=12, head="values")
    mine, theirs = both(model, network)
    assert not agreement.differing(mine, theirs, values=True).any()
    shifted = theirs + np.array([0.0, 0.2 * np.ptp(mine[:, 1])])
    assert agreement.differing(mine, shifted, values=True).mean(axis=0).tolist() == [0.0, 1.0]
    assert not agreement.differing(mine, shifted).any()


def test_a_readout_of_another_scale_differs() -> None:
    torch.manual_seed(0)
    model = Heads().eval()
    network = integer_network(model, SPEC, weight_bits=12)
    last = network.layers[-1]
    assert last.scale is not None
    half = dataclasses.replace(last, scale=0.5 * last.scale)
    wrong = dataclasses.replace(network, layers=(*network.layers[:-1], half))
    mine, theirs = both(model, wrong)
    assert agreement.differing(mine, theirs, values=True).mean() > 0.5
