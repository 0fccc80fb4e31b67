"""Levels, states and every derivative of the neurons, against closed forms written out by hand."""

import math
import re

import numpy as np
import pytest
import torch

from train import neurons

T, N = 4, 5
BETA, ALPHA = 0.7, 0.9


def closed_form(current, gamma, lam, curve, level, beta=BETA, alpha=ALPHA):
    """What a stateful neuron sends, and all derivatives of it, from the written-out recurrence.

    ``current`` is (T, n). Since sign(S) is not differentiated, U[t] is linear in each current:
    dU[t]/dI[s] = beta^(t-s), and in gamma: dU[t]/dgamma = -alpha * sum of beta^(t-s) * sign(S[s])
    over s < t. ``curve(r, lam)`` gives B' and dB/dlam, ``level(r)`` the level.
    """
    steps = len(current)
    u, s = np.zeros_like(current), np.zeros_like(current)
    u_gamma = np.zeros_like(current)
    for t in range(steps):
        for past in range(t):
            u[t] += beta ** (t - past) * (current[past] - alpha * gamma * np.sign(s[past]))
            u_gamma[t] -= beta ** (t - past) * alpha * np.sign(s[past])
        u[t] += current[t]
        s[t] = level(u[t] / gamma)
    r = u / gamma
    slope, tail = curve(r, lam)
    by_current = np.zeros((steps, *current.shape))
    for t in range(steps):
        for past in range(t + 1):
            by_current[t, past] = slope[t] * beta ** (t - past)
    return {
        "out": gamma * s,
        "levels": s,
        "r": r,
        "by_current": by_current,
        "by_gamma": s - r * slope + slope * u_gamma,
        "by_lam": gamma * tail,
        "levels_by_gamma": (slope * u_gamma - r * slope) / gamma,
    }


def relsg(r, lam):
    below, above = r < 1, r > N
    slope, tail = np.ones_like(r), np.zeros_like(r)
    slope[below], tail[below] = lam * np.exp(r[below] - 1), np.exp(r[below] - 1) - 1
    slope[above], tail[above] = lam * np.exp(N - r[above]), 1 - np.exp(N - r[above])
    return slope, tail


def box(low, high, signed=False):
    def curve(r, _lam):
        r = np.abs(r) if signed else r
        return ((r >= low) & (r <= high)).astype(float), np.zeros_like(r)

    return curve


def arctan(r, _lam):
    return 1 / (1 + (math.pi * (r - 1)) ** 2), np.zeros_like(r)


def burst(r):
    return np.clip(np.floor(r), 0, N)


def spike(r):
    return (r >= 1).astype(float)


def ternary(r):
    return np.sign(r) * (np.abs(r) >= 1)


SHARED = {"timesteps": T, "beta": BETA, "alpha": ALPHA, "gamma0": 0.6}
CASES = {
    "lbq": (lambda: neurons.LBQ(capacity=N, eta0=0.4, **SHARED), relsg, burst),
    "lbq-box": (lambda: neurons.LBQ(capacity=N, surrogate="box", **SHARED), box(1, N), burst),
    "burst": (lambda: neurons.LBQ(capacity=N, learn_gamma=False, **SHARED), relsg, burst),
    "binary": (lambda: neurons.BinaryLIF(**SHARED), arctan, spike),
    "ternary": (
        lambda: neurons.Ternary(learn_gamma=True, **SHARED),
        box(0.5, 1.5, signed=True),
        ternary,
    ),
}


def make(case):
    build, curve, level = CASES[case]
    neuron = build().double()
    lam = None if neuron.lam is None else neuron.lam.item()
    return neuron, neuron.gamma.item(), lam, curve, level


def random_current(columns=60, scale=1.8):
    rng = np.random.default_rng(3)
    return rng.normal(0.8, scale, (T, columns))


def run(neuron, current, weights):
    """Output, and gradients of ``sum(weights * output)`` by the current and the parameters."""
    x = torch.tensor(current).reshape(-1, current.shape[-1] // 2, 2).requires_grad_()
    neuron.zero_grad()
    out = neuron(x)
    (out * torch.tensor(weights).reshape(out.shape)).sum().backward()
    assert x.grad is not None
    grads = {name: p.grad.item() for name, p in neuron.named_parameters()}
    return out.detach().numpy().reshape(current.shape), x.grad.numpy().reshape(current.shape), grads


@pytest.mark.parametrize("emit_levels", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_output_and_every_gradient_equal_the_closed_form_over_four_timesteps(case, emit_levels):
    neuron, gamma, lam, curve, level = make(case)
    neuron.emit_levels = emit_levels
    current = random_current()
    weights = np.random.default_rng(4).normal(size=current.shape)
    want = closed_form(current, gamma, lam, curve, level)
    assert (want["r"] < 1).any()
    assert (want["r"] > N).any()
    assert ((want["r"] >= 1) & (want["r"] <= N)).any()
    out, grad, grads = run(neuron, current, weights)

    sent, by_gamma = ("levels", "levels_by_gamma") if emit_levels else ("out", "by_gamma")
    unit = gamma if emit_levels else 1.0
    np.testing.assert_allclose(out, want[sent], rtol=1e-12, atol=0)
    by_current = np.einsum("tn,tsn->sn", weights, want["by_current"]) / unit
    np.testing.assert_allclose(grad, by_current, rtol=1e-11, atol=1e-13)
    if "rho" in grads:
        softplus_slope = 1 / (1 + math.exp(-neuron.rho.item()))
        want_rho = (weights * want[by_gamma]).sum() * softplus_slope
        assert grads["rho"] == pytest.approx(want_rho, rel=1e-10)
    if "eta" in grads:
        want_eta = (weights * want["by_lam"]).sum() / unit * lam * (1 - lam)
        assert grads["eta"] == pytest.approx(want_eta, rel=1e-10)
    assert grads.keys() == {"lbq": {"rho", "eta"}, "burst": {"eta"}, "binary": set()}.get(
        case, {"rho"}
    )


@pytest.mark.parametrize(
    ("r", "level", "slope"),
    [
        (-3.0, 0, 0.3 * math.exp(-4)),
        (0.25, 0, 0.3 * math.exp(-0.75)),
        (1.0, 1, 1.0),
        (2.75, 2, 1.0),
        (5.0, 5, 1.0),
        (6.5, 5, 0.3 * math.exp(-1.5)),
    ],
)
def test_relsg_has_its_three_ranges_in_one_step(r, level, slope):
    neuron = neurons.LBQ(timesteps=1, capacity=N, gamma0=0.5, eta0=math.log(3 / 7)).double()
    neuron.rho.data.copy_(torch.tensor(0.5 - 1e-4, dtype=torch.float64).expm1().log())
    gamma, lam = neuron.gamma, neuron.lam
    assert lam is not None
    gamma.retain_grad(), lam.retain_grad()
    u = torch.tensor([r * 0.5], dtype=torch.float64, requires_grad=True)
    out = neurons.recurrence(
        u,
        torch.tensor(0.5, dtype=torch.float64, requires_grad=True),
        lam,
        timesteps=1,
        beta=0.5,
        alpha=1.0,
        quantizer=neuron.quantizer,
        emit_levels=False,
    )
    assert out.item() == 0.5 * level
    (by_u,) = torch.autograd.grad(out.sum(), u)
    assert by_u.item() == pytest.approx(slope, rel=1e-7)


def gamma_gradient(r, **options):
    step = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    u = torch.tensor([r * 0.5], dtype=torch.float64)
    quantizer = neurons.LBQ(timesteps=1, capacity=N, **options).quantizer
    out = neurons.recurrence(
        u, step, None, timesteps=1, beta=0.5, alpha=1.0, quantizer=quantizer, emit_levels=False
    )
    (grad,) = torch.autograd.grad(out.sum(), step)
    return grad.item()
