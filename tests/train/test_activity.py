"""The activity of a network: its value, its gradients, and training with it."""

from __future__ import annotations

import re

import pytest
import torch
from small_models import model_input, raw_images, small_model
from small_runs import lines, small

from lbq_hw import golden
from lbq_hw.golden.counts import Counter
from lbq_hw.train import loop
from lbq_hw.train.activity import MeanLevel, find_shares, with_activity
from lbq_hw.train.export import integer_network
from lbq_hw.train.kernels.fuse import fuse
from lbq_hw.train.neurons import LBQ
from lbq_hw.train.optim import activity_weight
from lbq_hw.train.preparation import prepare
from lbq_hw.train.settings.config import ConfigError
from lbq_hw.train.settings.recipe import Recipe


@pytest.mark.parametrize("absorb", [True, False])
@pytest.mark.parametrize("name", ["resnet20", "digits", "vgg"])
def test_the_activity_is_the_unary_accumulations_over_the_dense_ones(name, absorb):
    """Padding taps counted; what differs is the rounding of the integer network."""
    model, spec = small_model(name, gamma0=0.5)
    prepared = prepare(model.eval(), spec, absorb=absorb)
    twin = with_activity(prepared, find_shares(prepared, spec)).eval()
    raw = raw_images(spec, 4)
    logits, activity = twin(model_input(spec, raw))
    assert torch.equal(logits, prepared.eval()(model_input(spec, raw)))
    network = integer_network(model, spec, most_different=1.0)
    counter = Counter(network)
    golden.run(network, raw.numpy(), observe=counter)
    paths = [path for layer in counter.counts().layers for path in layer.paths]
    paths = [path for path in paths if path.source != "input" and not path.identity]
    unary = sum(path.padded.unary for path in paths)
    dense = sum(path.macs * path.executions for path in paths)
    assert activity.item() == pytest.approx(unary / dense, rel=0.05)


def test_a_fused_model_has_the_same_activity():
    model, spec = small_model("resnet20", gamma0=0.5)
    prepared = prepare(model, spec)
    shares = find_shares(prepared, spec)
    _, expected = with_activity(prepared, shares).eval()(model_input(spec, raw_images(spec, 2)))
    assert fuse(prepared) == 19
    _, found = with_activity(prepared, shares).eval()(model_input(spec, raw_images(spec, 2)))
    assert torch.equal(found, expected)


@pytest.mark.parametrize("levels", [True, False])
def test_its_gradients_are_those_of_the_level_alone(levels):
    """d S/dU is B'(r) / gamma and d S/dgamma is -r * B'(r) / gamma, for what is sent either way."""
    neuron = LBQ(timesteps=1, capacity=5, surrogate="box", gamma0=0.5, eps=0.0)
    neuron.emit_levels = levels
    u = torch.tensor([0.2, 0.7, 1.6, 9.0], requires_grad=True)
    mean = MeanLevel(neuron, 3.0)(neuron(u))
    assert mean.item() == pytest.approx(3.0 * (0 + 1 + 3 + 5) / 4)
    mean.backward()
    inside = torch.tensor([0.0, 1.0, 1.0, 0.0])  # where 1 <= r <= N
    assert u.grad is not None
    assert torch.allclose(u.grad, 3.0 / 4 * inside / 0.5)
    by_gamma = (-(u.detach() / 0.5) * inside / 0.5).sum() * 3.0 / 4
    by_rho = by_gamma * neuron.rho.detach().sigmoid()
    assert neuron.rho.grad is not None
    assert torch.allclose(neuron.rho.grad, by_rho)


def test_its_weight_rises_after_its_start():
    train = Recipe(epochs=10, activity=0.4, activity_start=2, activity_ramp=4)
    assert [activity_weight(train, step, 10) for step in (0, 19)] == [0.0, 0.0]
    assert activity_weight(train, 39, 10) == pytest.approx(0.2)
    assert [activity_weight(train, step, 10) for step in (59, 99)] == [0.4, 0.4]
    at_once = Recipe(epochs=10, activity=0.4)
    assert activity_weight(at_once, 0, 10) == 0.4
    assert activity_weight(Recipe(epochs=10), 50, 10) == 0.0


def test_a_run_with_activity_in_its_loss_has_less_of_it(tmp_path):
    watched = small("train.activity=1e-9", "neuron.gamma0=0.25")
    sparse = small("train.activity=10.0", "train.activity_ramp=1", "neuron.gamma0=0.25")
    loop.train(watched, tmp_path / "watched")
    loop.train(sparse, tmp_path / "sparse")
    before, after = (lines(tmp_path / name)[-1] for name in ("watched", "sparse"))
    assert after["activity"] < 0.9 * before["activity"]
    loop.train(small(), tmp_path / "plain")
    assert "activity" not in lines(tmp_path / "plain")[-1]


def test_its_schedule_without_it_and_neurons_without_levels_are_errors():
    message = "train.activity_ramp must be 0 where train.activity is 0, not 2"
    with pytest.raises(ConfigError, match=f"^{re.escape(message)}$"):
        small("train.activity_ramp=2")
    message = "train.activity must be 0 with neuron.kind = 'relu', which has no levels, not 0.1"
    with pytest.raises(ConfigError, match=f"^{re.escape(message)}$"):
        small("train.activity=0.1", "neuron.kind=relu")


def test_the_layers_that_count_can_be_named():
    model, spec = small_model("resnet20", gamma0=0.5)
    prepared = prepare(model, spec)
    shares = find_shares(prepared, spec)
    some = find_shares(prepared, spec, ("blocks.1", "blocks.8.conv2"))
    assert some == {
        path: share
        for path, share in shares.items()
        if path.startswith("blocks.1.") or path == "blocks.8.conv2"
    }
    assert 2 < len(some) < len(shares)  # blocks.1, not blocks.10 and the like
    x = model_input(spec, raw_images(spec, 2))
    parts = [find_shares(prepared, spec, (f"blocks.{k}",)) for k in range(9)]
    rest = {path: shares[path] for path in shares.keys() - set().union(*parts)}
    activities = [with_activity(prepared, part).eval()(x)[1].item() for part in (*parts, rest)]
    whole = with_activity(prepared, shares).eval()(x)[1].item()
    assert sum(activities) == pytest.approx(whole, rel=1e-5)


def test_a_layer_that_is_not_there_is_an_error(tmp_path):
    message = "train.activity_layers: no layer that reads levels is or lies in 'stage3'; the layers"
    with pytest.raises(ConfigError, match=re.escape(message)):
        loop.train(small("train.activity=0.1", "train.activity_layers=['stage3']"), tmp_path)
    with pytest.raises(ConfigError, match="activity_layers must be"):
        small("train.activity_layers=['stem']")
