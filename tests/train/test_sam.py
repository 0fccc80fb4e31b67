"""Sharpness-aware steps: where the weights are meanwhile, and that nothing stays moved."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from lbq_hw.train import checkpoint
from lbq_hw.train.optim import scales
from lbq_hw.train.sam import uphill
from lbq_hw.train.settings import config


def network() -> nn.Module:
    torch.manual_seed(5)
    chosen = config.load("digits", ["train.weight_bits=4"])
    return checkpoint.build(chosen, chosen.data.spec((1, 8, 8), static=True), classes=10)


def backward(model: nn.Module) -> None:
    model.zero_grad()
    generator = torch.Generator().manual_seed(6)
    x = torch.rand(32, 1, 8, 8, generator=generator)
    F.cross_entropy(model(x), torch.arange(32) % 10).backward()


def copies(model: nn.Module) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in model.state_dict().items()}


def test_weights_lie_the_radius_along_their_gradients_and_scales_stay():
    model = network()
    backward(model)
    before = copies(model)
    weights = {n: p for n, p in model.named_parameters() if n not in scales(model)}
    gradients = {name: p.grad.double() for name, p in weights.items()}
    length = torch.stack([g.square().sum() for g in gradients.values()]).sum().sqrt()
    with uphill(model, 0.3):
        now = copies(model)
    assert {name.rpartition(".")[2] for name in scales(model)} == {"rho", "eta", "step"}
    for name, value in before.items():
        if name in weights:
            shift = now[name].double() - value.double()
            torch.testing.assert_close(shift, 0.3 * gradients[name] / length, rtol=0, atol=1e-7)
        else:
            assert torch.equal(now[name], value), name


def test_weights_and_statistics_come_back_and_the_gradients_are_those_of_the_hill():
    model = network()
    backward(model)
    before, here = copies(model), {n: p.grad.clone() for n, p in model.named_parameters()}
    with uphill(model, 0.3):
        backward(model)
        statistics = copies(model)
    after = copies(model)
    assert any("running" in n and not torch.equal(statistics[n], before[n]) for n in before)
    for name in before:
        assert torch.equal(after[name], before[name]), name
    assert any(not torch.equal(p.grad, here[n]) for n, p in model.named_parameters())


def test_weights_come_back_after_an_error():
    model = network()
    backward(model)
    before = copies(model)
    with pytest.raises(RuntimeError, match="within"), uphill(model, 0.3):
        raise RuntimeError("within")
    assert all(torch.equal(value, before[name]) for name, value in copies(model).items())


def test_where_the_loss_is_flat_nothing_moves():
    model = network()
    backward(model)
    for parameter in model.parameters():
        parameter.grad.zero_()
    before = copies(model)
    with uphill(model, 0.3):
        assert all(torch.equal(value, before[name]) for name, value in copies(model).items())
