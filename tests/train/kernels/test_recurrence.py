"""The fused kernels against the plain torch recurrence: same levels, same gradients.

They run where CUDA is. Without it, and with Triton installed, ``TRITON_INTERPRET=1`` runs them on
the CPU in Triton's interpreter (which truncates to bf16, so rounded values differ there).
"""

from __future__ import annotations

import os
import random
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from lbq_hw.train import neurons
from lbq_hw.train.kernels import recurrence as kernels

CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"
ROUNDS = 24 if CUDA else 4

fused = pytest.mark.skipif(
    not kernels.available(torch.zeros(1, device=DEVICE)),
    reason="needs CUDA and Triton (or TRITON_INTERPRET=1 and Triton)",
)
on_cuda = pytest.mark.skipif(not CUDA, reason="needs CUDA")

KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "lbq": ("lbq", {"eta0": 0.4}),
    "lbq, box": ("lbq", {"surrogate": "box"}),
    "lbq, box from 0": ("lbq", {"surrogate": "box", "low": 0.0, "scale_step": True}),
    "lbq, fixed tails": ("lbq", {"learn_lambda": False, "low": 0.5, "high": 40.5}),
    "burst": ("burst", {"learn_lambda": False}),
    "binary": ("binary", {}),
    "ternary": ("ternary", {"learn_gamma": True}),
    "quant-relu": ("quant-relu", {}),
}


def both_ways(neuron: Any, current: Tensor, grad: Tensor) -> list[list[Tensor]]:
    """Output, gradient of the current and of the parameters: fused, then in plain torch."""
    results = []
    for neuron.fused in (True, False):
        neuron.zero_grad()
        x = current.clone().requires_grad_()
        out = neuron(x)
        out.backward(grad)
        results.append([out.detach(), x.grad, *(p.grad for p in neuron.parameters())])
    return results


def random_case(rng: random.Random, kind: str, options: dict[str, Any]) -> tuple[Any, Tensor]:
    timesteps, capacity = rng.choice((1, 2, 3, 5, 8)), rng.randint(1, 31)
    if kind != "quant-relu":
        options = {**options, "beta": rng.uniform(0, 1), "alpha": rng.uniform(0, 1.5)}
    gamma0 = 10 ** rng.uniform(-2, 0.5)
    neuron: Any = neurons.build(
        kind, timesteps=timesteps, capacity=capacity, gamma0=gamma0, **options
    )
    shape = [
        timesteps * rng.randint(1, 3),
        *(rng.randint(1, 12) for _ in range(rng.choice((1, 3)))),
    ]
    scale = gamma0 * rng.choice((1.0, 0.7 * neuron.capacity))
    current = torch.randn(shape) * scale
    # exact multiples of the step and their neighbours, where a wrong rounding would show
    multiples = torch.randint(0, neuron.capacity + 2, shape) * neuron.gamma.detach()
    multiples = torch.nextafter(multiples, multiples + torch.randint(-1, 2, shape))
    current = torch.where(torch.rand(shape) < 0.3, multiples, current)
    if len(shape) == 4 and rng.random() < 0.5:
        current = current.to(memory_format=torch.channels_last)
    return neuron.to(DEVICE), current.to(DEVICE)


@fused
@pytest.mark.parametrize("emit_levels", [False, True])
@pytest.mark.parametrize("case", KINDS)
def test_fp32_levels_are_equal_and_gradients_agree_in_random_cases(case, emit_levels):
    rng = random.Random(case)
    torch.manual_seed(1)
    for _ in range(ROUNDS):
        neuron, current = random_case(rng, *KINDS[case])
        neuron.emit_levels = emit_levels
        grad = torch.randn(current.shape, device=DEVICE)
        got, want = both_ways(neuron, current, grad)
        assert torch.equal(got[0], want[0])
        assert got[0].stride() == current.stride()
        torch.testing.assert_close(
            got[1], want[1], rtol=1e-5, atol=1e-6 * want[1].abs().max().item()
        )
        # a sum of terms of both signs: judged by the size of its terms, not by what they leave
        unit = neuron.gamma.item() if emit_levels else 1.0
        terms = grad.abs().sum().item() / unit * (1 + (current / neuron.gamma).abs().max().item())
        for fused_sum, plain_sum in zip(got[2:], want[2:], strict=True):
            assert abs(fused_sum.item() - plain_sum.item()) <= 1e-6 * terms


@fused
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("case", KINDS)
def test_half_precision_levels_are_equal_and_keep_the_dtype(case, dtype):
    rng = random.Random(case)
    torch.manual_seed(2)
    for _ in range(ROUNDS // 2):
        neuron, current = random_case(rng, *KINDS[case])
        neuron.emit_levels = True
        current = current.to(dtype)
        got, want = both_ways(neuron, current, torch.randn(current.shape, device=DEVICE).to(dtype))
        assert got[0].dtype == got[1].dtype == dtype
        assert torch.equal(got[0], want[0])
        torch.testing.assert_close(
            got[1], want[1], rtol=2e-2, atol=1e-2 * want[1].abs().max().item()
        )


@on_cuda
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_values_are_rounded_as_torch_rounds_them(dtype):
    neuron = neurons.LBQ(timesteps=2, capacity=31, gamma0=0.037).cuda()
    current = torch.randn(8, 3, 17, 5, device="cuda").to(dtype)
    got, want = both_ways(neuron, current, torch.ones_like(current))
    assert torch.equal(got[0], want[0])


@fused
def test_many_blocks_with_a_ragged_end_sum_all_their_parts():
    torch.manual_seed(3)
    for timesteps in (1, 4, 8, 16):
        neuron = neurons.LBQ(timesteps=timesteps, capacity=5, gamma0=0.3).to(DEVICE)
        current = torch.randn(timesteps, 3001, device=DEVICE)
        got, want = both_ways(neuron, current, torch.rand(current.shape, device=DEVICE))
        assert torch.equal(got[0], want[0])
        torch.testing.assert_close(got[1:], want[1:], rtol=1e-5, atol=1e-5)


@fused
def test_one_element_and_a_gradient_of_another_layout_are_taken():
    neuron = neurons.LBQ(timesteps=1, capacity=5).to(DEVICE)
    got, want = both_ways(neuron, torch.full((1,), 2.5, device=DEVICE), torch.ones(1).to(DEVICE))
    torch.testing.assert_close(got, want)
    current = torch.randn(2, 3, 4, 5, device=DEVICE).to(memory_format=torch.channels_last)
    for grad in (
        torch.randn(2, 3, 4, 5, device=DEVICE),
        torch.ones(1, device=DEVICE).expand(2, 3, 4, 5),
    ):
        got, want = both_ways(neuron, current, grad)
        assert got[1].stride() == current.stride()
        torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-5)
    strided = torch.randn(2, 3, 4, 10, device=DEVICE)[..., ::2]
    got, want = both_ways(neuron, strided, torch.ones_like(strided))
    torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-5)


@fused
def test_operators_pass_the_checks_of_torch():
    x = torch.randn(6, 3, 4, 5, device=DEVICE).to(memory_format=torch.channels_last)
    gamma, lam = torch.tensor(0.4, device=DEVICE), torch.tensor(0.3, device=DEVICE)
    shape = (2, 0.5, 1.0, True, 5, False, "relsg", 1.0, 5.0, 2.0)
    inputs = (x, gamma, lam)
    torch.library.opcheck(kernels._forward, (*(i.requires_grad_() for i in inputs), *shape))
    torch.library.opcheck(kernels._backward, (x.detach(), *(i.detach() for i in inputs), *shape))


@on_cuda
@pytest.mark.filterwarnings("ignore")
def test_compiled_autocast_training_step_equals_the_eager_one():
    torch.manual_seed(4)
    first, second = (neurons.LBQ(timesteps=2, capacity=5, gamma0=0.3) for _ in range(2))
    first.emit_levels = True
    convs = nn.Conv2d(3, 16, 3, bias=False), nn.Conv2d(16, 8, 1, bias=False)
    for conv in convs:  # sums exact in bf16, whatever their order
        conv.weight.data = torch.randint(-1, 2, conv.weight.shape) / 4
    model: Any = nn.Sequential(convs[0], first, convs[1], second).to(DEVICE)
    model.to(memory_format=torch.channels_last)
    x = torch.randint(-2, 3, (8, 3, 10, 10), device=DEVICE).float()
    results = []
    for step in (model, torch.compile(model, fullgraph=True)):
        model.zero_grad()
        with torch.autocast(DEVICE, torch.bfloat16):
            out = step(x)
        out.float().square().sum().backward()
        results.append((out.detach(), [p.grad for p in model.parameters()]))
    (eager, want), (compiled, got) = results
    assert eager.dtype == torch.bfloat16
    assert torch.equal(eager, compiled)
    assert eager.unique().numel() == 6
    for g, w in zip(got, want, strict=True):
        torch.testing.assert_close(g, w, rtol=2e-2, atol=2e-2 * w.abs().max().item())


@on_cuda
@pytest.mark.filterwarnings("ignore")
def test_a_captured_graph_follows_gamma_without_being_captured_again():
    neuron = neurons.LBQ(timesteps=2, capacity=5, gamma0=0.3).cuda()
    x = torch.randn(64, 100, device="cuda", requires_grad=True)

    def step() -> Tensor:
        out = neuron(x)
        out.sum().backward()
        return out

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        step()
    torch.cuda.current_stream().wait_stream(stream)
    neuron.zero_grad()
    x.grad = None
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = step()
    neuron.rho.data.fill_(0.0)
    graph.replay()
    assert neuron.rho.grad is not None
    got = out.clone(), neuron.rho.grad.clone()
    neuron.zero_grad()
    want = neuron(x)
    want.sum().backward()
    assert torch.equal(got[0], want)
    torch.testing.assert_close(got[1], neuron.rho.grad)


def test_three_operation_division_rounds_as_ieee_division_does():
    if np.finfo(np.longdouble).nmant < 63:
        pytest.skip("needs a long double wide enough for an exact fused multiply-add")
    rng = np.random.default_rng(5)

    def fma(a, b, c):
        a, b, c = (x.astype(np.longdouble) for x in (a, b, c))
        return (a * b + c).astype(np.float32)

    gamma = np.exp(rng.uniform(np.log(1e-4), np.log(8), 200_000)).astype(np.float32)
    multiple = rng.integers(1, 33, gamma.size) * gamma.astype(np.float64)
    nudge = rng.integers(-2, 3, gamma.size) * 2.0**-24
    for u in ((multiple * (1 + nudge)), rng.normal(0, 8, gamma.size) * gamma):
        u = u.astype(np.float32)
        inverse = np.float32(1) / gamma
        ratio = u * inverse
        ratio = fma(fma(ratio, -gamma, u), inverse, ratio)
        assert np.array_equal(ratio, u / gamma)


def test_what_the_kernels_do_not_cover_takes_plain_torch():
    x = torch.zeros(4)
    if os.environ.get("TRITON_INTERPRET") != "1":
        assert not kernels.available(x)
    assert not kernels.available(x.double())
    assert not kernels.available(torch.zeros(0))
    learned = neurons.LBQ(timesteps=2, capacity=5, learn_beta=True)
    assert learned(torch.ones(2)).shape == (2,)
