"""Levels, states and every derivative of the neurons, against closed forms written out by hand."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from lbq_hw.train import neurons
from lbq_hw.train.neurons.recurrence import Quantizer, recurrence

T, N = 4, 5
SHARED: dict[str, Any] = {"timesteps": T, "beta": 0.7, "alpha": 0.9, "gamma0": 0.6}


def relsg(r, lam):
    """B' and dB/dlam, range by range."""
    below, above = r < 1, r > N
    slope, tail = np.ones_like(r), np.zeros_like(r)
    slope[below], tail[below] = lam * np.exp(r[below] - 1), np.exp(r[below] - 1) - 1
    slope[above], tail[above] = lam * np.exp(N - r[above]), 1 - np.exp(N - r[above])
    return slope, tail


def box(r, _lam):
    return ((r >= 1) & (r <= N)).astype(float), np.zeros_like(r)


def wide_box(r, _lam):
    return ((r >= 0) & (r <= N)).astype(float), np.zeros_like(r)


def wide_relsg(r, lam):
    """A plateau on [0.5, N + 0.5] with its tails."""
    slope, tail = relsg(np.where(r < 3, r + 0.5, r - 0.5), lam)
    return slope, tail


def signed_box(r, _lam):
    return ((np.abs(r) >= 0.5) & (np.abs(r) <= 1.5)).astype(float), np.zeros_like(r)


def arctan(r, _lam):
    return 1 / (1 + (math.pi * (r - 1)) ** 2), np.zeros_like(r)


def burst_level(r):
    return np.clip(np.floor(r), 0, N)


def spike(r):
    return (r >= 1).astype(float)


def ternary_level(r):
    return np.sign(r) * (np.abs(r) >= 1)


CASES: dict[str, tuple[Callable[[], neurons.Neuron], Callable, Callable, set[str]]] = {
    "lbq": (
        lambda: neurons.LBQ(capacity=N, eta0=0.4, **SHARED),
        relsg,
        burst_level,
        {"rho", "eta"},
    ),
    "lbq, all learned": (
        lambda: neurons.LBQ(capacity=N, learn_beta=True, learn_alpha=True, **SHARED),
        relsg,
        burst_level,
        {"rho", "eta", "beta_logit", "alpha_rho"},
    ),
    "lbq, box": (
        lambda: neurons.LBQ(capacity=N, surrogate="box", **SHARED),
        box,
        burst_level,
        {"rho"},
    ),
    "lbq, box from 0": (
        lambda: neurons.LBQ(capacity=N, surrogate="box", low=0.0, **SHARED),
        wide_box,
        burst_level,
        {"rho"},
    ),
    "lbq, fixed tails": (
        lambda: neurons.LBQ(capacity=N, learn_lambda=False, eta0=-0.3, **SHARED),
        relsg,
        burst_level,
        {"rho"},
    ),
    "lbq, plateau of its own": (
        lambda: neurons.LBQ(capacity=N, low=0.5, high=N + 0.5, **SHARED),
        wide_relsg,
        burst_level,
        {"rho", "eta"},
    ),
    "burst": (
        lambda: neurons.LBQ(capacity=N, learn_gamma=False, learn_lambda=False, **SHARED),
        relsg,
        burst_level,
        set(),
    ),
    "binary": (lambda: neurons.BinaryLIF(**SHARED), arctan, spike, set()),
    "ternary": (
        lambda: neurons.Ternary(learn_gamma=True, **SHARED),
        signed_box,
        ternary_level,
        {"rho"},
    ),
}


def closed_form(current, weights, gamma, lam, beta, alpha, curve, level):
    """What is sent, and the gradients of ``sum(weights * gamma * S)``, from the unrolled sums.

    As f = sign(S) is not differentiated, each U[t] is an explicit polynomial::

        U[t] = I[t] + sum over s < t of beta^(t-s) * (I[s] - alpha * gamma * f[s])
    """
    steps = len(current)
    u, s = current.copy(), np.zeros_like(current)
    by_gamma, by_beta, by_alpha = (np.zeros_like(current) for _ in range(3))
    for t in range(steps):
        for past in range(t):
            kept = current[past] - alpha * gamma * np.sign(s[past])
            decay = beta ** (t - past)
            u[t] += decay * kept
            by_gamma[t] -= decay * alpha * np.sign(s[past])
            by_alpha[t] -= decay * gamma * np.sign(s[past])
            by_beta[t] += (t - past) * beta ** (t - past - 1) * kept
        s[t] = level(u[t] / gamma)
    r = u / gamma
    slope, tail = curve(r, lam)
    by_current = np.zeros_like(current)
    for t in range(steps):
        for past in range(t + 1):
            by_current[past] += weights[t] * slope[t] * beta ** (t - past)
    grads = {
        "gamma": (weights * (s - r * slope + slope * by_gamma)).sum(),
        "lam": (weights * gamma * tail).sum(),
        "beta": (weights * slope * by_beta).sum(),
        "alpha": (weights * slope * by_alpha).sum(),
    }
    return r, s, by_current, grads


def scalar(x) -> float:
    return x.item() if isinstance(x, torch.Tensor) else x


def chain_rule(neuron) -> dict[str, tuple[str, float]]:
    """Of each parameter: what it stands for, and the derivative of that by it."""
    lam = 0.0 if neuron.lam is None else neuron.lam.item()
    beta, alpha = scalar(neuron.beta), scalar(neuron.alpha)
    return {
        "rho": ("gamma", 1 - math.exp(-(neuron.gamma.item() - neuron.eps))),
        "eta": ("lam", lam * (1 - lam)),
        "beta_logit": ("beta", beta * (1 - beta)),
        "alpha_rho": ("alpha", 1 - math.exp(-alpha)),
    }


@pytest.mark.parametrize("case", CASES)
def test_levels_and_every_gradient_equal_the_closed_form_over_four_timesteps(case):
    build, curve, level, learned = CASES[case]
    neuron = build().double()
    rng = np.random.default_rng(3)
    current, weights = rng.normal(0.8, 1.8, (T, 60)), rng.normal(size=(T, 60))
    lam = None if neuron.lam is None else neuron.lam.item()
    r, s, by_current, grads = closed_form(
        current,
        weights,
        neuron.gamma.item(),
        lam,
        scalar(neuron.beta),
        scalar(neuron.alpha),
        curve,
        level,
    )
    for in_range in (r < 1, (r >= 1) & (r <= N), r > N):
        assert in_range[-1].any()

    x = torch.tensor(current).reshape(T * 5, 4, 3).requires_grad_()
    out = neuron(x)
    (out * torch.tensor(weights).reshape(out.shape)).sum().backward()

    assert x.grad is not None
    assert torch.equal(out, neuron.gamma * torch.tensor(s).reshape(out.shape))
    np.testing.assert_allclose(x.grad.reshape(T, 60), by_current, rtol=1e-11, atol=1e-13)
    assert {name for name, _ in neuron.named_parameters()} == learned
    for name, parameter in neuron.named_parameters():
        of, slope = chain_rule(neuron)[name]
        assert parameter.grad is not None
        assert parameter.grad.item() == pytest.approx(grads[of] * slope, rel=1e-10)


@pytest.mark.parametrize("case", CASES)
def test_gamma_times_emitted_levels_has_value_and_gradients_of_the_plain_output(case):
    neuron = CASES[case][0]().double()
    x = torch.randn(T * 3, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(1)) * 2
    weights = torch.linspace(-1, 2, x.numel(), dtype=torch.float64).reshape(x.shape)
    results = []
    for emit_levels in (False, True):
        neuron.emit_levels = emit_levels
        x.requires_grad_().grad = None
        neuron.zero_grad()
        out = neuron(x)
        if emit_levels:
            assert torch.equal(out, out.round())
            assert out.unique().numel() > 2 or neuron.capacity == 1
            out = neuron.gamma.detach() * out
        (out * weights).sum().backward()
        results.append((out.detach(), x.grad, *(p.grad for p in neuron.parameters())))
    assert torch.equal(results[0][0], results[1][0])
    for plain, levels in zip(results[0][1:], results[1][1:], strict=True):
        torch.testing.assert_close(plain, levels, rtol=1e-12, atol=1e-13)


def one_step(r: float, quantizer: Quantizer) -> tuple[Any, ...]:
    """Level, d out/dU, d out/dgamma, d out/dlam at ``r = U / gamma``; gamma 0.5, lam 0.25."""
    u, gamma, lam = (
        torch.tensor(value, dtype=torch.float64, requires_grad=True)
        for value in ([0.5 * r], 0.5, 0.25)
    )
    out = recurrence(
        u, gamma, lam, timesteps=1, beta=0.5, alpha=1.0, quantizer=quantizer, emit_levels=False
    )
    grads = torch.autograd.grad(out.sum(), (u, gamma, lam), allow_unused=True)
    return out.item() / 0.5, *(0.0 if g is None else g.item() for g in grads)


@pytest.mark.parametrize(
    ("r", "level", "slope", "tail"),
    [
        (-3.0, 0, 0.25 * math.exp(-4), math.exp(-4) - 1),
        (0.25, 0, 0.25 * math.exp(-0.75), math.exp(-0.75) - 1),
        (1.0, 1, 1.0, 0.0),
        (2.75, 2, 1.0, 0.0),
        (5.0, 5, 1.0, 0.0),
        (6.5, 5, 0.25 * math.exp(-1.5), 1 - math.exp(-1.5)),
    ],
)
def test_relsg_below_between_and_above_and_on_its_edges(r, level, slope, tail):
    got = one_step(r, neurons.LBQ(timesteps=1, capacity=5).quantizer)
    assert got == pytest.approx((level, slope, level - r * slope, 0.5 * tail), rel=1e-14)


@pytest.mark.parametrize(
    ("r", "level", "slope", "by_gamma"),
    [
        (-2.0, 0, 0, 0),
        (0.75, 0, 0, 0),
        (1.0, 1, 1, 0),
        (3.75, 3, 1, -0.75),
        (5.0, 5, 1, 0),
        (5.5, 5, 0, 5),
    ],
)
def test_box_gamma_gradient_is_0_below_level_minus_r_between_and_capacity_above(
    r, level, slope, by_gamma
):
    quantizer = neurons.LBQ(timesteps=1, capacity=5, surrogate="box").quantizer
    assert one_step(r, quantizer)[:3] == (level, slope, by_gamma)


@pytest.mark.parametrize(
    ("r", "level", "slope", "by_gamma"),
    [(-0.25, 0, 0, 0), (0.0, 0, 1, 0), (0.75, 0, 1, -0.75), (5.0, 5, 1, 0), (5.5, 5, 0, 5)],
)
def test_a_box_from_0_learns_below_the_first_level(r, level, slope, by_gamma):
    quantizer = neurons.LBQ(timesteps=1, capacity=5, surrogate="box", low=0.0).quantizer
    assert one_step(r, quantizer)[:3] == (level, slope, by_gamma)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("case", CASES)
def test_currents_far_out_of_range_give_finite_gradients(case, dtype):
    neuron = CASES[case][0]()
    x = torch.tensor([1e6, -1e6, 3e30, -3e30] * T, dtype=dtype).requires_grad_()
    out = neuron(x)
    out.sum().backward()
    assert out.isfinite().all()
    assert x.grad is not None
    for grad in (x.grad, *(p.grad for p in neuron.parameters())):
        assert grad is not None
        assert grad.isfinite().all()


def test_potential_equal_to_the_step_fires():
    neuron = neurons.LBQ(timesteps=1, capacity=5, learn_gamma=False, gamma0=0.3)
    step = neuron.gamma
    below = torch.nextafter(step, torch.tensor(0.0))
    neuron.emit_levels = True
    assert neuron(torch.stack([below, step, 5 * step])).tolist() == [0, 1, 5]


def test_one_step_is_subtracted_whatever_the_level_and_the_potential_is_not_clamped():
    neuron = neurons.LBQ(timesteps=3, capacity=5, learn_gamma=False)
    # U: 20, (20 - 1)/2 = 9.5, (9.5 - 1)/2 = 4.25; and below: -8, -4 + 4 = 0, 0 + 2.5
    current = torch.tensor([[20.0, -8.0], [0.0, 4.0], [0.0, 2.5]])
    assert neuron(current).tolist() == [[5, 0], [5, 0], [4, 2]]


def test_ternary_subtracts_a_step_with_the_sign_of_the_level():
    neuron = neurons.Ternary(timesteps=2)
    # U: 3 -> (3 - 1)/2 = 1; -3 -> (-3 + 1)/2 = -1; 0.75 -> 0.375
    current = torch.tensor([[3.0, -3.0, 0.75], [0.0, 0.0, 0.0]])
    assert neuron(current).tolist() == [[1, -1, 0], [1, -1, 0]]
    assert neuron.signed


@pytest.mark.parametrize("kind", neurons.KINDS)
def test_state_starts_at_zero_in_each_call_and_neurons_do_not_mix(kind):
    neuron = neurons.build(kind, timesteps=3, capacity=4)
    x = torch.randn(3 * 2, 5, generator=torch.Generator().manual_seed(2)) * 3
    first = neuron(x)
    assert torch.equal(neuron(x), first)
    halves = x.reshape(3, 2, 5)
    for b in range(2):
        assert torch.equal(neuron(halves[:, b]), first.reshape(3, 2, 5)[:, b])


def test_quantized_relu_sends_what_lbq_sends_at_one_timestep_and_sees_each_step_alone():
    x = torch.randn(4, 50, generator=torch.Generator().manual_seed(3)) * 3
    quantized = neurons.QuantReLU(timesteps=2, capacity=5, gamma0=0.4)
    lbq = neurons.LBQ(timesteps=1, capacity=5, gamma0=0.4)
    assert torch.equal(quantized(x), lbq(x))
    assert not quantized.stateful
    assert quantized.beta == quantized.alpha == 0.0
    expected = {-0.5: (0, 0, 0), 0.5: (0, 1, -0.5), 4.75: (4, 1, -0.75), 7.0: (5, 0, 5)}
    for r, want in expected.items():
        assert one_step(r, quantized.quantizer)[:3] == want


def test_lbq_at_one_timestep_with_the_box_and_the_scaling_of_a_quantized_relu_is_one():
    """Forward pass and every gradient, to the bit: surrogate and scaling are all they differ in."""
    x = torch.randn(8, 3, 4, 5, generator=torch.Generator().manual_seed(4))
    weights = torch.linspace(-1, 2, x.numel()).reshape(x.shape)
    pair = (
        neurons.QuantReLU(timesteps=1, capacity=5, gamma0=0.4),
        neurons.LBQ(timesteps=1, capacity=5, gamma0=0.4, surrogate="box", low=0.0, scale_step=True),
    )
    found = []
    for neuron in pair:
        current = x.clone().requires_grad_()
        out = neuron(current)
        (out * weights).sum().backward()
        found.append((out.detach(), current.grad, neuron.rho.grad))
    for one, other in zip(*found, strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize(
    ("kind", "default", "levels"),
    [("quant-relu", True, 5), ("lbq", False, 5), ("ternary", False, 1)],
)
def test_the_gradient_of_a_step_is_divided_by_the_root_of_neurons_times_levels(
    kind, default, levels
):
    x = torch.randn(8, 3, 4, 5, generator=torch.Generator().manual_seed(1))
    chosen: dict[str, Any] = {"timesteps": 1, "capacity": 5, "gamma0": 0.4, "learn_gamma": True}
    found = {}
    for scale_step in (False, True):
        neuron: Any = neurons.build(kind, scale_step=scale_step, **chosen)
        out = neuron(x)
        out.sum().backward()
        found[scale_step] = out.detach(), neuron.rho.grad
    assert torch.equal(found[False][0], found[True][0])
    assert found[False][1] != 0
    torch.testing.assert_close(found[True][1], found[False][1] / (3 * 4 * 5 * levels) ** 0.5)
    usual: Any = neurons.build(kind, **chosen)
    assert usual.scale_step is default


def test_a_fixed_step_has_no_gradient_to_scale():
    neuron = neurons.QuantReLU(timesteps=1, capacity=5, learn_gamma=False)
    assert neuron.step_for(torch.ones(2, 3)) is neuron.gamma


def test_relu_is_relu_with_a_neurons_attributes():
    neuron = neurons.ReLU(timesteps=2)
    x = torch.tensor([-1.0, 2.5])
    assert neuron(x).tolist() == [0, 2.5]
    assert (neuron.capacity, neuron.gamma.item(), neuron.signed) == (0, 1.0, False)
    assert not neuron.state_dict()


def test_levels_are_exact_under_bf16_autocast():
    torch.manual_seed(0)
    conv = nn.Conv2d(3, 8, 3, bias=False)
    neuron = neurons.LBQ(timesteps=2, capacity=31, gamma0=0.037)
    neuron.emit_levels = True
    x = torch.randn(4, 3, 8, 8)
    with torch.autocast("cpu", torch.bfloat16):
        current = conv(x)
        levels = neuron(current)
    assert current.dtype == levels.dtype == torch.bfloat16
    assert levels.max() == 31
    assert torch.equal(levels.float(), neuron(current.float()))
    levels.float().sum().backward()
    assert conv.weight.grad is not None
    assert conv.weight.grad.isfinite().all()
    assert conv.weight.grad.any()


def test_channels_last_currents_give_channels_last_outputs():
    neuron = neurons.LBQ(timesteps=2, capacity=5)
    x = torch.randn(4, 3, 5, 6).to(memory_format=torch.channels_last)
    assert neuron(x).is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(neuron(x), neuron(x.contiguous()))


def test_neurons_report_what_they_were_given():
    neuron = neurons.LBQ(timesteps=2, capacity=5, gamma0=0.25, eta0=1.0, beta=0.3, alpha=0.8)
    assert neuron.gamma.item() == pytest.approx(0.25, rel=1e-6)
    assert neuron.lam is not None
    assert neuron.lam.item() == pytest.approx(1 / (1 + math.exp(-1)))
    assert (neuron.beta, neuron.alpha) == (0.3, 0.8)
    learned = neurons.LBQ(
        timesteps=2, capacity=5, beta=0.3, alpha=0.8, learn_beta=True, learn_alpha=True
    )
    assert scalar(learned.beta) == pytest.approx(0.3)
    assert scalar(learned.alpha) == pytest.approx(0.8)
    assert [name for name, _ in learned.named_parameters()] == [
        "rho",
        "beta_logit",
        "alpha_rho",
        "eta",
    ]
    assert repr(neuron) == ("LBQ(timesteps=2, capacity=5, surrogate='relsg', learned: rho, eta)")


@pytest.mark.parametrize(
    ("kind", "capacity", "signed", "stateful"),
    [
        ("lbq", 5, False, True),
        ("burst", 5, False, True),
        ("binary", 1, False, True),
        ("ternary", 1, True, True),
        ("i-lif", 5, False, True),
        ("mlf", 5, False, True),
        ("lm-ht", 5, False, True),
        ("relu", 0, False, False),
        ("quant-relu", 5, False, False),
    ],
)
def test_build_makes_each_kind(kind, capacity, signed, stateful):
    neuron: Any = neurons.build(kind, timesteps=2, capacity=5)
    got = (neuron.timesteps, neuron.capacity, neuron.signed, neuron.stateful, neuron.emit_levels)
    assert got == (2, capacity, signed, stateful, False)
    assert neuron.gamma.shape == ()


def test_build_burst_has_a_fixed_step_and_takes_the_options_of_lbq():
    neuron: Any = neurons.build("burst", timesteps=1, capacity=2, gamma0=0.5, surrogate="box")
    assert not list(neuron.parameters())
    assert neuron.gamma.item() == 0.5


@pytest.mark.parametrize(
    ("kind", "options", "error", "message"),
    [
        (
            "ternery",
            {},
            ValueError,
            "kind must be one of lbq, burst, binary, ternary, i-lif, mlf, lm-ht, relu, quant-relu"
            " (nearest: ternary), not 'ternery'",
        ),
        (
            "quant-relu",
            {"beta": 0.5},
            TypeError,
            "option of a 'quant-relu' neuron must be one of low, high, learn_gamma, scale_step,"
            " gamma0, eps, not 'beta'",
        ),
        ("relu", {"eps": 1}, TypeError, "option of a 'relu' neuron must be one of none, not 'eps'"),
        ("lbq", {"timesteps": 0}, ValueError, "timesteps must be at least 1, not 0"),
        ("lbq", {"timesteps": 1.0}, TypeError, "timesteps must be an integer, not 1.0"),
        ("lbq", {"capacity": 0}, ValueError, "capacity must be in 1..255, not 0"),
        ("lbq", {"capacity": True}, TypeError, "capacity must be an integer, not True"),
        (
            "lbq",
            {"surrogate": "tanh"},
            ValueError,
            "surrogate must be 'relsg' or 'box', not 'tanh'",
        ),
        ("lbq", {"gamma0": 0.0}, ValueError, "gamma0 must be above eps = 0.0001, not 0.0"),
        ("lbq", {"gamma0": "1"}, TypeError, "gamma0 must be a number, not '1'"),
        ("lbq", {"eta0": math.nan}, ValueError, "eta0 must be finite, not nan"),
        ("lbq", {"beta": 1.5}, ValueError, "beta must be in 0..1, not 1.5"),
        (
            "lbq",
            {"beta": 1.0, "learn_beta": True},
            ValueError,
            "beta must be above 0 and below 1, not 1.0",
        ),
        ("lbq", {"alpha": -1.0}, ValueError, "alpha must be at least 0, not -1.0"),
        (
            "lbq",
            {"alpha": 0.0, "learn_alpha": True},
            ValueError,
            "alpha must be above 0, not 0.0",
        ),
        ("lbq", {"learn_gamma": 1}, TypeError, "learn_gamma must be a boolean, not 1"),
        ("lbq", {"learn_lambda": "no"}, TypeError, "learn_lambda must be a boolean, not 'no'"),
        ("binary", {"sharpness": 0}, ValueError, "sharpness must be above 0, not 0"),
        ("ternary", {"high": 0.5}, ValueError, "high must be above low = 0.5, not 0.5"),
        ("ternary", {"low": -1}, ValueError, "low must be at least 0, not -1"),
        ("lbq", {"low": 6}, ValueError, "high must be at least low = 6, not 5.0"),
        ("lbq", {"low": math.inf}, ValueError, "low must be finite, not inf"),
        ("quant-relu", {"high": "5"}, TypeError, "high must be a number, not '5'"),
        ("lbq", {"scale_step": 1}, TypeError, "scale_step must be a boolean, not 1"),
    ],
)
def test_wrong_options_are_refused_in_one_sentence(kind, options, error, message):
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        neurons.build(kind, **{"timesteps": 2, "capacity": 5, **options})


def test_a_first_size_that_timesteps_do_not_divide_is_refused():
    message = "current must have a first size divisible by timesteps = 2, not 3"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        neurons.LBQ(timesteps=2, capacity=5)(torch.zeros(3, 4))
