"""The fused norm, sum and neuron against plain torch: same levels, same gradients.

As ``test_kernels``, they run where CUDA is, or with Triton under ``TRITON_INTERPRET=1``.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch
from torch import Tensor

from lbq_hw.train import neurons
from lbq_hw.train.kernels import normed, normed_ops
from lbq_hw.train.neurons.recurrence import recurrence

CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"
ROUNDS = 24 if CUDA else 3
EPS = 1e-5

fused = pytest.mark.skipif(
    not normed.available(torch.zeros(2, 1, 1, 1, device=DEVICE), None, 1),
    reason="needs CUDA and Triton (or TRITON_INTERPRET=1 and Triton)",
)
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "lbq": ("lbq", {"eta0": 0.4}),
    "lbq, box": ("lbq", {"surrogate": "box"}),
    "lbq, box from 0": ("lbq", {"surrogate": "box", "low": 0.0}),
    "lbq, fixed tails": ("lbq", {"learn_lambda": False, "low": 0.5, "high": 40.5}),
    "binary": ("binary", {}),
    "ternary": ("ternary", {"learn_gamma": True}),
}


def stats_of(x: Tensor) -> Tensor:
    variance, mean = torch.var_mean(x, (0, 2, 3), correction=0)
    return torch.stack((mean, (variance + EPS).rsqrt()))


def definition(case: dict[str, Any], given: dict[str, Tensor], **options: Any) -> Tensor:
    """The formula of ``train.kernels.normed`` in plain torch.

    Statistics have the given values, and the gradient of those that come from the input.
    """

    def normed(path: str) -> Tensor:
        x, own = case[path], stats_of(case[path])
        mean, invstd = (given[path] + (own - own.detach()))[:, :, None, None]
        weight, bias = case[f"{path}_weight"], case[f"{path}_bias"]
        return (x - mean) * (weight[:, None, None] * invstd) + bias[:, None, None]

    current = normed("x")
    if options.pop("static"):
        current = torch.cat([current] * options["timesteps"])
    if "y_bias" in case:
        current = current + normed("y")
    elif "y" in case:
        current = current + case["y"] * case["y_weight"]
    return recurrence(current, case["gamma"], case["lam"], **options)


def by_kernels(case: dict[str, Any], given: dict[str, Tensor], **options: Any) -> Tensor:
    return normed.recurrence(
        *(case["x"], given["x"], case["x_weight"], case["x_bias"]),
        *(case.get("y"), given.get("y"), case.get("y_weight"), case.get("y_bias")),
        *(case["gamma"], case["lam"]),
        **options,
    )


def random_case(
    rng: random.Random, kind: str, kind_options: dict[str, Any], second: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Tensors by name (a leaf where it has a gradient), and options."""
    timesteps, capacity = rng.choice((1, 2, 3, 4, 8)), rng.randint(1, 31)
    neuron: Any = neurons.build(kind, timesteps=timesteps, capacity=capacity, **kind_options)
    static = second == "static"
    channels, side = rng.choice((1, 2, 8, 64)), rng.randint(1, 5)
    shape = (timesteps * rng.randint(2, 3), channels, side, rng.randint(1, 7))

    def leaf(tensor: Tensor) -> Tensor:
        return tensor.to(DEVICE).requires_grad_()

    def image(tensor: Tensor) -> Tensor:
        return leaf(tensor.contiguous(memory_format=torch.channels_last))

    case: dict[str, Any] = {
        "x": image(torch.randn(shape) * 3 + torch.randn(channels)[:, None, None]),
        "x_weight": leaf(torch.randn(channels)),
        "x_bias": leaf(torch.randn(channels)),
        "gamma": leaf(torch.tensor(10 ** rng.uniform(-1.5, 0))),
        "lam": leaf(torch.tensor(rng.random())) if neuron.lam is not None else None,
    }
    if second == "levels":
        case["y"] = image(torch.randint(0, 6, shape).float())
        case["y_weight"] = torch.tensor(rng.random(), device=DEVICE)
    elif second == "norm":
        case["y"] = image(torch.randn(shape))
        case["y_weight"], case["y_bias"] = (leaf(torch.randn(channels)) for _ in range(2))
    options = {
        "static": static,
        "timesteps": timesteps,
        "beta": rng.uniform(0, 1),
        "alpha": rng.uniform(0, 1.5),
        "quantizer": neuron.quantizer,
        "emit_levels": rng.random() < 0.7,
    }
    return case, options


@fused
@pytest.mark.parametrize("second", ["none", "static", "levels", "norm"])
@pytest.mark.parametrize("kind", KINDS)
def test_fp32_levels_are_equal_and_gradients_agree_in_random_cases(kind, second):
    rng = random.Random(f"{kind} {second}")
    torch.manual_seed(1)
    for _ in range(ROUNDS):
        case, options = random_case(rng, *KINDS[kind], second)
        given = {p: stats_of(case[p].detach()) for p in ("x", "y") if f"{p}_bias" in case}
        leaves = {n: t for n, t in case.items() if t is not None and t.requires_grad}
        results, grad = [], None
        for way in (by_kernels, definition):
            out = way(case, given, **options)
            grad = torch.randn(out.shape, device=DEVICE) if grad is None else grad
            found = torch.autograd.grad(out, leaves.values(), grad)
            results.append((out.detach(), dict(zip(leaves, found, strict=True))))
        (got, got_grads), (want, want_grads) = results
        assert torch.equal(got, want)
        assert got.is_contiguous(memory_format=torch.channels_last)
        # a sum of terms of both signs is judged by the size of its terms, not by what they leave
        unit = case["gamma"].item() if options["emit_levels"] else 1.0
        each, terms = grad.abs().max().item() / unit, grad.abs().sum().item() / unit
        for name, tensor in want_grads.items():
            size = terms * (1 + want.abs().max().item())
            if name in given:
                size = each * (case[f"{name}_weight"] * given[name][1]).abs().max().item()
            elif tensor.dim() == 4:
                size = each * case["y_weight"].item()
            elif tensor.dim() == 1:
                size = terms / len(tensor)
            torch.testing.assert_close(got_grads[name], tensor, rtol=1e-5, atol=2e-6 * size)


@fused
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_inputs_give_the_levels_of_their_fp32_values(dtype):
    rng = random.Random(2)
    torch.manual_seed(2)
    for second in ("none", "static", "levels", "norm") * 2:
        case, options = random_case(rng, *KINDS["lbq"], second)
        options["emit_levels"] = True
        half = {n: t.detach().to(dtype) if n in ("x", "y") else t for n, t in case.items()}
        wide = {n: t.float() if n in ("x", "y") else t for n, t in half.items()}
        given = {p: stats_of(wide[p]) for p in ("x", "y") if f"{p}_bias" in case}
        got, want = by_kernels(half, given, **options), definition(wide, given, **options)
        assert got.dtype == dtype
        assert torch.equal(got.float(), want)


@fused
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_moments_of_large_means_ragged_ends_and_many_programs(dtype, monkeypatch):
    monkeypatch.setattr(normed_ops, "PROGRAMS", 3)
    torch.manual_seed(3)
    for shape in ((2, 1, 1, 1), (3, 64, 5, 7), (40, 128, 3, 3), (65, 512, 1, 2)):
        x = torch.randn(shape, device=DEVICE)
        x = (x * 2 + 50 * torch.randn(shape[1], device=DEVICE)[:, None, None]).to(dtype)
        mean, variance = normed.moments(x)
        want = torch.var_mean(x.double(), (0, 2, 3), correction=0)
        torch.testing.assert_close(mean.double(), want[1], rtol=1e-6, atol=1e-6)
        torch.testing.assert_close(variance.double(), want[0], rtol=1e-5, atol=1e-9)


@fused
def test_several_blocks_a_program_with_a_ragged_end_sum_all_their_parts(monkeypatch):
    monkeypatch.setattr(normed_ops, "PROGRAMS", 2)
    torch.manual_seed(4)
    for timesteps, channels in ((1, 512), (2, 128), (4, 256)):
        shape = (timesteps * 3, channels, 5, 3)
        x = torch.randn(shape, device=DEVICE).to(memory_format=torch.channels_last)
        case = {
            "x": x.requires_grad_(),
            "x_weight": torch.ones(channels, device=DEVICE, requires_grad=True),
            "x_bias": torch.zeros(channels, device=DEVICE, requires_grad=True),
            "gamma": torch.tensor(0.3, device=DEVICE, requires_grad=True),
            "lam": torch.tensor(0.6, device=DEVICE, requires_grad=True),
        }
        quantizer = neurons.LBQ(timesteps=timesteps, capacity=5).quantizer
        options = {"static": False, "timesteps": timesteps, "beta": 0.5, "alpha": 1.0}
        options |= {"quantizer": quantizer, "emit_levels": True}
        given, grad = {"x": stats_of(x.detach())}, torch.rand(shape, device=DEVICE)
        results = []
        for way in (by_kernels, definition):
            out = way(case, given, **options)
            results.append((out, *torch.autograd.grad(out, list(case.values()), grad)))
        assert torch.equal(results[0][0], results[1][0])
        torch.testing.assert_close(results[0][1:], results[1][1:], rtol=1e-5, atol=2e-5)


@fused
def test_operators_pass_the_checks_of_torch():
    torch.manual_seed(5)
    x, y = (torch.randn(4, 8, 3, 5, device=DEVICE) for _ in range(2))
    x, y = (t.to(memory_format=torch.channels_last).requires_grad_() for t in (x, y))
    gamma, lam = (torch.tensor(v, device=DEVICE, requires_grad=True) for v in (0.4, 0.3))
    stats = stats_of(x.detach())
    weight, bias = (torch.randn(8, device=DEVICE, requires_grad=True) for _ in range(2))
    gain = torch.tensor(0.5, device=DEVICE)
    shape = (2, 0.5, 1.0, True, 5, False, "relsg", 1.0, 5.0, 2.0)
    none = (None,) * 4
    for second, static in ((none, False), (none, True), ((y, None, gain, None), False)):
        inputs = (x, stats, weight, bias, *second, static, gamma, lam, *shape)
        torch.library.opcheck(normed_ops.forward, inputs)
        plain = [i.detach() if isinstance(i, Tensor) else i for i in inputs]
        grad = torch.randn(8 if static else 4, 8, 3, 5).to(
            DEVICE, memory_format=torch.channels_last
        )
        torch.library.opcheck(normed_ops.backward, (grad, *plain))
    inputs = (x, stats, weight, bias, y, stats, weight, bias, False, gamma, lam, *shape)
    torch.library.opcheck(normed_ops.forward, inputs)
    torch.library.opcheck(normed_ops.partial_moments, (x.detach(),))


def test_what_the_kernels_do_not_cover_is_known(monkeypatch):
    monkeypatch.setattr(normed, "triton", normed.triton or object())
    monkeypatch.setattr(normed, "INTERPRETED", True)
    x = torch.zeros(4, 8, 2, 2)
    assert normed.available(x, None, 2)
    assert normed.available(x, x.bfloat16(), 2)
    assert not normed.available(x, x.double(), 2)
    assert not normed.available(x.double(), None, 2)
    assert not normed.available(x, None, normed.MAX_TIMESTEPS + 1)
    assert not normed.available(x[:, :3], None, 2)
    assert not normed.available(x.flatten(1), None, 2)
    assert not normed.available(torch.zeros(1, 8, 1, 1), None, 1)
    assert not normed.available(torch.zeros(2, 2048, 1, 1), None, 1)
    monkeypatch.setattr(normed, "triton", None)
    assert not normed.available(x, None, 2)
