"""The kernels of any number of timesteps against the plain torch recurrence.

As ``test_recurrence``, they run where CUDA is, or with Triton under ``TRITON_INTERPRET=1``.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch
from torch import Tensor

from lbq_hw.train import detach_state, keep_state, neurons, set_timesteps
from lbq_hw.train.kernels import continued as kernels
from lbq_hw.train.kernels import recurrence as short
from lbq_hw.train.neurons.recurrence import continued

CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"
LONGEST = 300 if CUDA else 40
ROUNDS = 12 if CUDA else 4

fused = pytest.mark.skipif(
    not short.available(torch.zeros(1, device=DEVICE)),
    reason="needs CUDA and Triton (or TRITON_INTERPRET=1 and Triton)",
)
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "lbq": ("lbq", {"eta0": 0.4}),
    "lbq, box from 0": ("lbq", {"surrogate": "box", "low": 0.0}),
    "lbq, fixed tails": ("lbq", {"learn_lambda": False, "low": 0.5, "high": 40.5}),
    "binary": ("binary", {}),
    "ternary": ("ternary", {"learn_gamma": True}),
}


def outcome(function: Any, case: dict[str, Any], options: dict[str, Any]) -> dict[str, Tensor]:
    """Output, membranes that are left, and the gradient of everything that has one."""
    leaves = {
        name: tensor.detach().clone().requires_grad_()
        for name, tensor in case.items()
        if name in ("current", "v", "gamma", "lam") and tensor is not None
    }
    out, left = function(
        *(leaves.get(name) for name in ("current", "v", "gamma", "lam")), **options
    )
    left = left() if callable(left) else left
    torch.autograd.backward((out, left), (case["grad"], case["grad_left"]))
    found = {"out": out.detach(), "left": left.detach()}
    for name, leaf in leaves.items():
        assert leaf.grad is not None
        found[name] = leaf.grad
    return found


def random_case(
    rng: random.Random, kind: str, kind_options: dict[str, Any], dtype: torch.dtype
) -> tuple[dict[str, Any], dict[str, Any]]:
    timesteps = rng.choice((1, 2, 16, 17, LONGEST))
    neuron: Any = neurons.build(
        kind, timesteps=timesteps, capacity=rng.randint(1, 15), **kind_options
    )
    each = (rng.randint(1, 3), *(rng.randint(1, 9) for _ in range(rng.choice((1, 3)))))
    shape = timesteps * each[0], *each[1:]
    gamma = torch.tensor(10 ** rng.uniform(-1.5, 0.3))
    current = torch.randn(shape) * gamma * rng.choice((1.0, 0.7 * neuron.capacity))
    multiples = torch.randint(0, neuron.capacity + 2, shape) * gamma
    current = torch.where(torch.rand(shape) < 0.3, multiples, current)
    if len(shape) == 4 and rng.random() < 0.5:
        current = current.to(memory_format=torch.channels_last)
    case = {
        "current": current.to(dtype),
        "v": torch.randn(each) * gamma if rng.random() < 0.5 else None,
        "gamma": gamma,
        "lam": None if neuron.lam is None else torch.tensor(rng.random()),
        "grad": torch.randn(shape).to(dtype),
        "grad_left": torch.randn(each),
    }
    options = {
        "timesteps": timesteps,
        "beta": rng.uniform(0, 1),
        "alpha": rng.uniform(0, 1.5),
        "quantizer": neuron.quantizer,
        "emit_levels": rng.random() < 0.5,
    }
    return {k: None if v is None else v.to(DEVICE) for k, v in case.items()}, options


def assert_sums_agree(
    got: dict[str, Tensor], want: dict[str, Tensor], case: dict[str, Any], options: dict[str, Any]
) -> None:
    """Sums of terms of both signs, judged by the size of their terms."""
    gamma = case["gamma"].item()
    unit = gamma if options["emit_levels"] else 1.0
    largest = (1 + case["current"].abs().max().item() / gamma) * options["timesteps"]
    terms = (
        case["grad"].abs().sum().item() / unit + case["grad_left"].abs().sum().item()
    ) * largest
    for name in ("gamma", "lam"):
        if name in want:
            assert abs(got[name].item() - want[name].item()) <= 1e-6 * terms


@fused
@pytest.mark.parametrize("kind", KINDS)
def test_fp32_levels_and_membranes_are_equal_and_gradients_agree(kind: str) -> None:
    rng = random.Random(kind)
    torch.manual_seed(1)
    for _ in range(ROUNDS):
        case, options = random_case(rng, *KINDS[kind], torch.float32)
        got, want = (outcome(f, case, options) for f in (kernels.continued, continued))
        assert torch.equal(got["out"], want["out"])
        assert torch.equal(got["left"], want["left"])
        assert got["out"].stride() == case["current"].stride()
        for name in ("current", "v"):
            if name in want:
                atol = 1e-6 * want[name].abs().max().item()
                torch.testing.assert_close(got[name], want[name], rtol=1e-5, atol=atol)
        assert_sums_agree(got, want, case, options)


@fused
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_levels_and_membranes_are_equal(dtype: torch.dtype) -> None:
    rng = random.Random(str(dtype))
    torch.manual_seed(2)
    for _ in range(ROUNDS):
        case, options = random_case(rng, *KINDS["lbq"], dtype)
        options["emit_levels"] = True
        got, want = (outcome(f, case, options) for f in (kernels.continued, continued))
        assert torch.equal(got["out"], want["out"])
        assert torch.equal(got["left"], want["left"])
        atol = 1e-2 * want["current"].abs().max().item()
        torch.testing.assert_close(got["current"], want["current"], rtol=2e-2, atol=atol)


@fused
def test_many_blocks_with_a_ragged_end_sum_all_their_parts() -> None:
    torch.manual_seed(3)
    neuron = neurons.LBQ(timesteps=20, capacity=5, gamma0=0.3).to(DEVICE)
    current = torch.randn(20, 3001, device=DEVICE)
    results = []
    for neuron.fused in (True, False):
        neuron.zero_grad()
        x = current.clone().requires_grad_()
        out = neuron(x)
        out.backward(torch.ones_like(out))
        results.append([out.detach(), x.grad, *(p.grad for p in neuron.parameters())])
    got, want = results
    assert torch.equal(got[0], want[0])
    torch.testing.assert_close(got[1:], want[1:], rtol=1e-5, atol=1e-5)


@fused
def test_a_sequence_in_parts_equals_the_whole_one_forward_and_backward() -> None:
    torch.manual_seed(4)
    neuron = neurons.LBQ(timesteps=30, capacity=5, gamma0=0.3).to(DEVICE)
    current = torch.randn(30, 2, 3, 4, 5, device=DEVICE).flatten(0, 1).requires_grad_()
    grad = torch.randn(current.shape, device=DEVICE)
    whole = neuron(current)
    (want,) = torch.autograd.grad(whole, current, grad)
    keep_state(neuron)
    set_timesteps(neuron, 10)
    parts = torch.cat([neuron(part) for part in current.chunk(3)])
    (got,) = torch.autograd.grad(parts, current, grad)
    assert torch.equal(parts, whole)
    torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-6)


@fused
def test_a_detached_state_stops_the_gradient() -> None:
    neuron = neurons.LBQ(gamma0=0.3).to(DEVICE)
    keep_state(neuron)
    first = torch.full((4,), 0.2, device=DEVICE, requires_grad=True)
    neuron(first)
    detach_state(neuron)
    out = neuron(torch.full((4,), 0.25, device=DEVICE))
    assert out.tolist() == [pytest.approx(0.3)] * 4  # 0.1 was left of the first call
    assert out.requires_grad  # by gamma
    out.sum().backward()
    assert first.grad is None


@fused
def test_operators_pass_the_checks_of_torch() -> None:
    x = torch.randn(6, 3, 4, 5, device=DEVICE).to(memory_format=torch.channels_last)
    v = torch.randn(3, 3, 4, 5, device=DEVICE).to(memory_format=torch.channels_last)
    gamma, lam = torch.tensor(0.4, device=DEVICE), torch.tensor(0.3, device=DEVICE)
    options = (2, 0.5, 1.0, True, 5, False, "relsg", 1.0, 5.0, 2.0)
    leaves = tuple(tensor.clone().requires_grad_() for tensor in (x, v, gamma, lam))
    torch.library.opcheck(kernels._forward, (*leaves, *options))
    torch.library.opcheck(kernels._backward, (x, v, x, v, gamma, lam, *options))
