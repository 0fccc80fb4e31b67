"""A fused model computes what the unfused one does, in training with kernels of its own."""

from __future__ import annotations

import operator
from pathlib import Path
from typing import Any

import pytest
import torch
from small_models import model_input, raw_images, small_model
from torch import Tensor, nn

from lbq_hw.train import checkpoint, loop, neurons
from lbq_hw.train.graph.trace import trace
from lbq_hw.train.kernels import normed
from lbq_hw.train.kernels.fuse import NormedNeuron, fuse
from lbq_hw.train.preparation import prepare
from lbq_hw.train.settings import config

CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"
KERNELS = normed.available(torch.zeros(2, 1, 1, 1, device=DEVICE), None, 1)
fused = pytest.mark.skipif(
    not KERNELS, reason="needs CUDA and Triton (or TRITON_INTERPRET=1 and Triton)"
)
on_cuda = pytest.mark.skipif(not CUDA, reason="needs CUDA")


def pair(name: str, **options: Any) -> tuple[Any, Any, Tensor]:
    """A prepared model, its fused twin, and input."""
    torch.manual_seed(0)
    plain, spec = small_model(name, gamma0=0.3, **options)
    ready, twin = prepare(plain, spec), prepare(plain, spec)
    fuse(twin)
    x = model_input(spec, raw_images(spec, 4)).to(DEVICE)
    return ready.to(DEVICE), twin.to(DEVICE), x


def step(model: nn.Module, x: Tensor, call: Any = None) -> dict[str, Tensor]:
    """Logits, gradients and buffers after one step in training; ``call``: its compiled form."""
    model.train().zero_grad()
    logits = (model if call is None else call)(x)  # a compiled graph has no truth value
    logits.float().square().mean().backward()
    found = {"logits": logits.detach()}
    found |= {f"d {name}": p.grad for name, p in model.named_parameters() if p.grad is not None}
    return found | dict(model.named_buffers())


@pytest.mark.parametrize(
    ("name", "neurons_fused"),
    [("resnet20", 19), ("resnet19", 17), ("resnet18", 17), ("digits", 3), ("nmnist", 3)],
)
def test_every_neuron_behind_a_norm_is_fused(name, neurons_fused):
    plain, spec = small_model(name)
    ready = prepare(plain, spec)
    before = list(ready.state_dict())
    assert fuse(ready) == neurons_fused
    assert list(ready.state_dict()) == before
    called = [ready.get_submodule(n.target) for n in ready.graph.nodes if n.op == "call_module"]
    assert not any(isinstance(module, nn.BatchNorm2d) for module in called)
    assert sum(isinstance(module, NormedNeuron) for module in called) == neurons_fused
    assert operator.add not in {node.target for node in ready.graph.nodes}


def test_what_has_no_fused_form_is_left_alone():
    for kind, options in (("relu", {}), ("lbq", {"learn_beta": True})):
        plain, spec = small_model("digits", kind=kind, **options)
        assert fuse(prepare(plain, spec, trained_only=True)) == 0
    plain, spec = small_model("resnet20")
    assert fuse(prepare(plain, spec, absorb=False)) == 12  # an identity of values is not levels
    plain.stem.norm.momentum = None
    assert fuse(prepare(plain, spec)) == 18


class Sums(nn.Module):
    """Currents that only look like a norm's: with a constant, doubled, or read by others."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(4)
        self.neurons = nn.ModuleList(neurons.LBQ(timesteps=1, capacity=5) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        first, second, third = self.norm(x), self.norm(x), self.norm(x)
        shared = self.neurons[2](third) + third
        return self.neurons[0](first + 1.0) + self.neurons[1](second + second) + shared


def test_currents_that_are_more_than_norms_are_left_alone():
    assert fuse(trace(Sums())) == 0


@pytest.mark.parametrize("name", ["resnet20", "digits", "nmnist"])
def test_evaluation_is_that_of_the_unfused_model_bit_for_bit(name):
    ready, twin, x = pair(name)
    assert torch.equal(ready.eval()(x), twin.eval()(x))


@pytest.mark.skipif(KERNELS, reason="the kernels run here")
@pytest.mark.parametrize("name", ["resnet20", "nmnist"])
def test_training_without_the_kernels_is_that_of_the_unfused_model_bit_for_bit(name):
    ready, twin, x = pair(name)
    want, got = step(ready, x), step(twin, x)
    assert want.keys() == got.keys()
    assert all(torch.equal(got[key], want[key]) for key in want)


@fused
@pytest.mark.parametrize("name", ["digits", "nmnist", "resnet20"])
def test_a_training_step_agrees_with_the_unfused_models(name, monkeypatch):
    calls = []
    real = normed.recurrence
    monkeypatch.setattr(
        normed, "recurrence", lambda *a, **k: calls.append(k["static"]) or real(*a, **k)
    )
    ready, twin, x = pair(name)
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    want, got = step(ready, x), step(twin, x)
    assert len(calls) == sum(isinstance(m, neurons.Neuron) for m in twin.modules())
    assert sum(calls) == (name != "nmnist")
    assert want.keys() == got.keys()
    for key in want:
        most = want[key].abs().max().item()
        # room for a level that rounding changes
        torch.testing.assert_close(got[key], want[key], rtol=1e-2, atol=5e-3 * most + 1e-9)


@fused
def test_the_gradient_of_a_whole_network_follows_that_in_double_precision(monkeypatch):
    """Equal up to fp32's rounding, gammas included: nothing is lost between the modules."""
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    _, twin, x = pair("digits")
    plain, spec = small_model("digits", gamma0=0.3)
    exact = prepare(plain, spec).to(DEVICE).double()
    exact.load_state_dict(twin.state_dict())
    want, got = step(exact, x.double()), step(twin, x)
    for key in want:
        most = want[key].abs().max().item()
        torch.testing.assert_close(
            got[key].double(), want[key].double(), rtol=1e-4, atol=1e-5 * most + 1e-9
        )


@on_cuda
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "half"), [("resnet20", False), ("digits", True)])
def test_a_compiled_step_in_a_cuda_graph_agrees_with_the_eager_one(name, half, monkeypatch):
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    _, twin, x = pair(name)
    twin.to(memory_format=torch.channels_last)
    x = x.contiguous(memory_format=torch.channels_last)
    start = {key: value.clone() for key, value in twin.state_dict().items()}
    compiled = torch.compile(twin, mode="reduce-overhead", fullgraph=True)
    results = []
    for call in (twin, compiled, compiled, compiled):  # warms up, is captured, is replayed
        twin.load_state_dict(start)
        with torch.autocast("cuda", torch.bfloat16, enabled=half):
            found = step(twin, x, call)
        results.append({key: tensor.detach().clone() for key, tensor in found.items()})
    want, _, before, got = results
    assert torch.equal(got["logits"], before["logits"])
    assert want.keys() == got.keys()
    error = 5e-2 if half else 1e-2  # room for a level that rounding changes
    for key, value in want.items():
        most = value.abs().max().item()
        torch.testing.assert_close(got[key], value, rtol=error, atol=error * most + 1e-9)


def test_a_run_with_fusion_keeps_its_checkpoints_readable_without(tmp_path: Path):
    changes = ["train.epochs=1", "train.device=cpu", "model.channels=[4, 4]", "train.fuse=true"]
    chosen = config.load("digits", changes)
    loop.train(chosen, tmp_path)
    model, _, _ = checkpoint.load_run(tmp_path)
    assert not any(isinstance(module, NormedNeuron) for module in model.modules())
