"""Weight codes, their straight-through gradients, and the tie between two paths of one neuron."""

import re

import numpy as np
import pytest
import torch
from torch import nn

from lbq_hw import numeric
from lbq_hw.train import neurons
from lbq_hw.train.data import InputSpec
from lbq_hw.train.preparation import prepare
from lbq_hw.train.quantize import bits_by_layer, codes, fake_quantize, initial_step, stand_in


@pytest.mark.parametrize("bits", [2, 3, 4, 6, 8])
def test_codes_are_symmetric_and_within_the_bits(bits):
    weight = torch.linspace(-3, 3, 101).reshape(1, -1)
    found = codes(weight, torch.tensor([[0.01]]), bits)
    limit = numeric.weight_limit(bits)
    assert (found.min().item(), found.max().item()) == (-limit, limit)
    assert torch.equal(found, -found.flip(1))


def test_fake_quantized_weights_are_step_times_codes_exactly():
    weight = torch.randn(5, 7, generator=torch.Generator().manual_seed(1))
    step = torch.full((5, 1), 0.125)
    assert torch.equal(fake_quantize(weight, step, 4), step * codes(weight, step, 4))


def test_gradients_are_straight_through_inside_and_lsq_for_the_step():
    weight = torch.tensor([[0.26, -0.9, 5.0]], dtype=torch.float64, requires_grad=True)
    step = torch.tensor([[0.25]], dtype=torch.float64, requires_grad=True)
    fake_quantize(weight, step, 3).sum().backward()
    assert weight.grad is not None
    assert step.grad is not None
    np.testing.assert_array_equal(weight.grad.numpy(), [[1.0, 0.0, 0.0]])
    # inside: round(w/s) - w/s; outside: the limit of that side
    inside = 1 - 0.26 / 0.25
    np.testing.assert_allclose(step.grad.item(), inside - 3 + 3, rtol=1e-12)


@pytest.mark.parametrize(("per_tensor", "per_step"), [(False, 3), (True, 6)])
def test_a_layers_step_gets_the_gradient_that_lsq_scales(per_tensor, per_step):
    layer = stand_in(nn.Linear(3, 2, dtype=torch.float64))
    layer.weight.data = torch.tensor([[0.26, -0.9, 5.0], [0.1, 0.2, -3.0]], dtype=torch.float64)
    layer.deploy(source=None, absorb=False, bits=3, per_tensor=per_tensor)
    nn.init.constant_(layer.step, 0.25)
    factors = torch.tensor([[1.0, 2.0, 4.0], [8.0, 16.0, 32.0]], dtype=torch.float64)
    (layer.effective_weight() * factors).sum().backward()
    step = layer.step.detach().clone().requires_grad_()
    (fake_quantize(layer.weight.detach(), step, 3) * factors).sum().backward()
    assert step.grad is not None
    assert step.grad.all()
    expected = step.grad / (per_step * 3) ** 0.5
    np.testing.assert_allclose(layer.step.grad.numpy(), expected.numpy(), rtol=1e-12)


class TwoPaths(nn.Module):
    """Two convolutions into one neuron, without norms: of the input, then of levels."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Conv2d(1, 2, 1), nn.Conv2d(1, 2, 1)
        self.c, self.d = nn.Conv2d(2, 2, 1), nn.Conv2d(2, 2, 1)
        self.n1, self.n2 = (neurons.build("lbq", timesteps=1, capacity=3) for _ in range(2))
        self.fc = nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.n1(self.a(x) + self.b(x))
        return self.fc(self.n2(self.c(x) + self.d(x)).flatten(1))


def test_tied_paths_without_norms_run_off_the_cpu():
    model = prepare(TwoPaths(), InputSpec(shape=(1, 2, 2), static=True, bits=8), weight_bits=4).to(
        "meta"
    )
    assert model(torch.zeros(5, 1, 2, 2, device="meta")).shape == (5, 3)


def test_the_first_step_of_a_zero_channel_is_positive():
    assert (initial_step(torch.zeros(3, 4), 4, per_tensor=False) > 0).all()


@pytest.mark.parametrize(("bits", "error"), [(1, ValueError), (17, ValueError), (4.0, TypeError)])
def test_impossible_bits_are_refused(bits, error):
    with pytest.raises(error, match=r"^weight bits must be "):
        codes(torch.ones(1), torch.ones(1), bits)


def test_the_last_pattern_that_fits_a_layer_says_its_bits():
    paths = ["stem", "layer1.0.conv", "layer3.0.conv", "fc"]
    found = bits_by_layer(paths, {"*": 4, "layer[12].*": 3, "layer3.*": 2})
    assert found == {"stem": 4, "layer1.0.conv": 3, "layer3.0.conv": 2, "fc": 4}
    assert bits_by_layer(paths, 8) == dict.fromkeys(paths, 8)
    message = "weight_bits must have a pattern that matches 'fc': add one, or '*'"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        bits_by_layer(paths, {"stem": 4, "layer*": 4})
    message = (
        "weight_bits has 'layer4.*', which matches no layer with weights; the layers are stem, "
        "layer1.0.conv, layer3.0.conv, fc"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        bits_by_layer(paths, {"*": 4, "layer4.*": 2})
