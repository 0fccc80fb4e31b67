"""The baselines against their authors' formulas, written out for one neuron, with every derivative
carried forward by hand; the integer LIF against SpikingJelly's too."""

from __future__ import annotations

import importlib
import math

import numpy as np
import pytest
import torch
from torch import nn

from lbq_hw.train import neurons
from lbq_hw.train.data import InputSpec
from lbq_hw.train.export import integer_network
from lbq_hw.train.graph import GraphError
from lbq_hw.train.kernels.fuse import fuse
from lbq_hw.train.layers import Repeat, TimeMean
from lbq_hw.train.neurons.baselines import Baseline
from lbq_hw.train.preparation import prepare

T = 4
GAMMA = 0.75
SPEC = InputSpec(shape=(1, 6, 6), static=True, bits=8)


def i_lif(currents, capacity):
    """Levels, and their derivatives by each current."""
    u = v = 0.0
    du = np.zeros(T)
    levels, slopes = [], []
    for t, current in enumerate(currents):
        u, du = 0.25 * v + current, 0.25 * du + np.eye(T)[t]  # the reset passes no derivative
        level = float(np.rint(min(max(u / GAMMA, 0.0), capacity)))
        levels.append(level)
        slopes.append(du / GAMMA * (0 <= u / GAMMA <= capacity))
        v = u - GAMMA * level
    return levels, slopes


def mlf(currents, capacity):
    levels, slopes = np.zeros(T), np.zeros((T, T))
    for k in range(capacity):
        threshold = (0.6 + k) * GAMMA
        u, s, du, ds = 0.0, 0.0, np.zeros(T), np.zeros(T)
        for t, current in enumerate(currents):
            du = 0.25 * (du * (1 - s) - u * ds) + np.eye(T)[t]
            u = 0.25 * u * (1 - s) + current
            s = float(u > threshold)
            ds = du / GAMMA * (abs(u - threshold) < GAMMA / 2)
            levels[t] += s
            slopes[t] += ds
    return levels, slopes


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def lm_ht(currents, capacity, leak, mixing):
    v = 0.0
    levels, slopes, by_leak, by_mixing = [], [], [], []
    for t in range(T):
        share = np.array([2 / T * sigmoid(m) for m in mixing[t]])
        u = (sigmoid(leak) + 0.5) * v + share @ currents
        inside = (0.5 * GAMMA <= u <= (capacity + 0.5) * GAMMA) / GAMMA
        levels.append(float(np.clip(np.floor(u / GAMMA), 0, capacity)))
        slopes.append(inside * share)
        by_leak.append(inside * v * sigmoid(leak) * (1 - sigmoid(leak)))
        own = np.zeros((T, T))
        own[t] = inside * 2 / T * currents * [sigmoid(m) * (1 - sigmoid(m)) for m in mixing[t]]
        by_mixing.append(own)
        v = u - GAMMA * levels[-1]
    return levels, slopes, by_leak, by_mixing


def many(seed, count=200):
    """Currents from far below the first threshold to far above the last."""
    return np.random.default_rng(seed).normal(0.8, 2.0, (T, count))


def jacobian(neuron, currents):
    """Levels ``(T, count)``, and their derivatives by the currents ``(T, T, count)``."""
    x = torch.from_numpy(currents).requires_grad_()
    out = neuron(x.reshape(-1)).reshape(x.shape)
    rows = [torch.autograd.grad(out[t].sum(), x, retain_graph=True)[0] for t in range(T)]
    return out.detach().numpy(), torch.stack(rows).numpy()


@pytest.mark.parametrize(("kind", "reference"), [("i-lif", i_lif), ("mlf", mlf)])
@pytest.mark.parametrize("capacity", [1, 3, 5])
def test_levels_and_derivatives_are_the_authors(kind, reference, capacity):
    neuron = neurons.build(kind, timesteps=T, capacity=capacity, gamma0=GAMMA).double()
    neuron.emit_levels = True
    currents = many(capacity)
    levels, slopes = jacobian(neuron, currents)
    assert len(np.unique(levels)) == capacity + 1
    for i in range(currents.shape[1]):
        want, wanted = reference(currents[:, i], capacity)
        assert np.array_equal(levels[:, i], want)
        np.testing.assert_allclose(slopes[:, :, i], wanted, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("capacity", [2, 4])
def test_lm_ht_mixes_timesteps_and_learns_how(capacity):
    neuron = neurons.LMHT(timesteps=T, capacity=capacity, gamma0=GAMMA).double()
    neuron.emit_levels = True
    rng = np.random.default_rng(capacity)
    with torch.no_grad():
        neuron.leak.fill_(0.3)
        neuron.mixing.copy_(torch.from_numpy(rng.normal(size=(T, T))))
    currents = many(capacity)
    levels, slopes = jacobian(neuron, currents)
    for i in range(currents.shape[1]):
        column = torch.from_numpy(currents[:, i])
        out = neuron(column)
        want, wanted, by_leak, by_mixing = lm_ht(
            currents[:, i], capacity, 0.3, neuron.mixing.detach().numpy()
        )
        assert np.array_equal(levels[:, i], want)
        np.testing.assert_allclose(slopes[:, :, i], wanted, rtol=1e-12, atol=1e-15)
        for t in range(T):
            learned = [neuron.leak, neuron.mixing]
            found = torch.autograd.grad(out[t], learned, retain_graph=True)
            np.testing.assert_allclose(found[0], by_leak[t], rtol=1e-12, atol=1e-15)
            np.testing.assert_allclose(found[1], by_mixing[t], rtol=1e-12, atol=1e-15)


def test_an_lm_ht_neuron_begins_as_a_quantized_relu_of_the_mean_current():
    """With a constant current, levels over all timesteps add up to that of the ReLU."""
    neuron = neurons.LMHT(timesteps=T, capacity=2)
    current = torch.linspace(-1.0, 1.9, 59)  # below the last level: no timestep clips
    sent = neuron(current.repeat(T)).reshape(T, -1).sum(0)
    assert torch.equal(sent, (T * current).clamp(min=0).floor())


def test_the_integer_lif_is_spikingjellys():
    package = "spikingjelly.activation_based"
    node = pytest.importorskip(f"{package}.neuron").ILIFNode(
        v_threshold=GAMMA,
        surrogate_function=importlib.import_module(f"{package}.surrogate").MultiLevelSpikeCount(5),
        detach_reset=True,
        step_mode="m",
    )
    ours = neurons.ILIF(timesteps=T, capacity=5, gamma0=GAMMA)
    ours.emit_levels = True
    currents = torch.from_numpy(many(0)).float()
    weights = torch.randn(currents.shape, generator=torch.Generator().manual_seed(0))
    grads = []
    for neuron in (node, lambda x: ours(x.flatten(0, 1)).reshape(x.shape)):
        x = currents.clone().unsqueeze(-1).requires_grad_()
        out = neuron(x)
        (out.squeeze(-1) * weights).sum().backward()
        grads.append((out.detach(), x.grad))
    (levels, slopes), (own, own_slopes) = grads
    assert torch.equal(levels, own)
    assert own.unique().numel() == 6
    torch.testing.assert_close(slopes, own_slopes, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", ["i-lif", "mlf", "lm-ht"])
def test_gamma_times_levels_is_what_is_sent(kind):
    neuron = neurons.build(kind, timesteps=T, capacity=3, gamma0=GAMMA)
    current = torch.from_numpy(many(1)).float().reshape(-1)
    sent = neuron(current)
    neuron.emit_levels = True
    assert torch.equal(sent, GAMMA * neuron(current))


class Small(nn.Module):
    def __init__(self, kind: str) -> None:
        super().__init__()
        self.repeat = Repeat(2)
        self.conv = nn.Conv2d(1, 3, 3, bias=False)
        self.norm = nn.BatchNorm2d(3)
        self.neuron = neurons.build(kind, timesteps=2, capacity=3)
        self.flat = nn.Flatten()
        self.fc = nn.Linear(3 * 4 * 4, 5)
        self.mean = TimeMean(2)

    def forward(self, x):
        return self.mean(self.fc(self.flat(self.neuron(self.norm(self.conv(self.repeat(x)))))))


@pytest.mark.parametrize("kind", ["i-lif", "mlf", "lm-ht"])
def test_a_baseline_is_trained_and_not_deployed(kind):
    model = Small(kind)
    model(torch.rand(2, 1, 6, 6)).sum().backward()
    assert model.conv.weight.grad.abs().sum() > 0
    assert fuse(prepare(model, SPEC, trained_only=True)) == 0
    with pytest.raises(GraphError, match=r"neuron(.|\n)*can only be trained: .*use an LBQ neuron"):
        integer_network(model.eval(), SPEC)


def test_what_they_share_is_no_neuron_without_levels():
    options = {"timesteps": 2, "capacity": 3, "low": 0.0, "high": 3.0, "gamma0": 1.0, "beta": 0.5}
    with pytest.raises(TypeError, match="abstract method"):
        Baseline(**options)
