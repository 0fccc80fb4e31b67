"""Weight codes, their straight-through gradients, and the tie between two paths of one neuron."""

import numpy as np
import pytest
import torch

from lbq_hw import numeric
from train.quantize import codes, fake_quantize, initial_step


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


def test_the_first_step_of_a_zero_channel_is_positive():
    assert (initial_step(torch.zeros(3, 4), 4, per_tensor=False) > 0).all()


@pytest.mark.parametrize(("bits", "error"), [(1, ValueError), (17, ValueError), (4.0, TypeError)])
def test_impossible_bits_are_refused(bits, error):
    with pytest.raises(error, match=r"^weight bits must be "):
        codes(torch.ones(1), torch.ones(1), bits)
