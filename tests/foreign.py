"""Tiny networks of snnTorch and SpikingJelly, trained by them on the digits, and what they emit."""

from __future__ import annotations

from functools import cache

import snntorch
import torch
from spikingjelly.activation_based import functional, layer, neuron, surrogate
from torch import Tensor, nn

from lbq_hw import datasets
from lbq_hw.datasets import Dataset
from lbq_hw.train.data import InputSpec
from lbq_hw.train.neurons import IntegrateFire

TIMESTEPS = 6
SPEC = InputSpec(shape=(1, 8, 8), static=True, bits=5, full_scale=16.0)
KINDS = ("snntorch subtract", "snntorch zero", "spikingjelly soft", "spikingjelly hard")
STANDARDIZED = "standardized soft"  # SpikingJelly's layers with standardized weights


@cache
def digits(split: str) -> Dataset:
    return datasets.load("digits", split=split)


def leaky(reset: str, **options) -> snntorch.Leaky:
    return snntorch.Leaky(**{"beta": 0.9, "init_hidden": True, "reset_mechanism": reset} | options)


def build(kind: str) -> nn.Sequential:
    framework, reset = kind.split()
    if framework == "snntorch":
        first = leaky(reset, beta=0.8, learn_beta=True, threshold=0.9)
        last = leaky(reset, output=True)
        return nn.Sequential(nn.Flatten(), nn.Linear(64, 32), first, nn.Linear(32, 10), last)
    options = {"v_reset": None if reset == "soft" else 0.0, "surrogate_function": surrogate.ATan()}
    conv, linear = layer.Conv2d, layer.Linear
    if framework == "standardized":
        conv, linear = layer.WSConv2d, layer.WSLinear
    return nn.Sequential(
        conv(1, 6, 3, padding=1, bias=False),
        layer.BatchNorm2d(6),
        neuron.LIFNode(tau=2.0, **options),
        layer.AvgPool2d(2),
        layer.Flatten(),
        linear(96, 10),
        neuron.IFNode(**options),
    )


def emitted(net: nn.Module, x: Tensor, timesteps: int = TIMESTEPS) -> Tensor:
    """Spikes ``(T, B, 10)`` of a network that starts from rest."""
    for module in net.modules():
        if isinstance(module, snntorch.Leaky):
            module.mem = torch.zeros(0)
    functional.reset_net(net)
    steps = [net(x) for _ in range(timesteps)]
    return torch.stack([step[0] if isinstance(step, tuple) else step for step in steps])


@cache
def trained(kind: str, epochs: int = 4) -> nn.Sequential:
    """A network after a few epochs of its framework's own surrogate gradients."""
    torch.manual_seed(0)
    net, train = build(kind), digits("train")
    images, labels = SPEC.normalize(torch.from_numpy(train.images)), torch.from_numpy(train.labels)
    optimizer = torch.optim.Adam(net.parameters(), 5e-3)
    net.train()
    for _ in range(epochs):
        for part in torch.randperm(len(images)).split(64):
            rates = emitted(net, images[part]).mean(0)
            loss = nn.functional.cross_entropy(4 * rates, labels[part])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    with torch.no_grad():
        emitted(net.eval(), images[:1])  # membranes that no gradient holds on to
    return net


def per_neuron(net: nn.Sequential, reset: str) -> nn.Sequential:
    """The same network with numbers for each neuron, as snnTorch's export to NIR wants them."""
    first, last = (
        leaky(
            reset,
            beta=node.beta.detach().clamp(0.0, 0.99) * torch.ones(size),
            threshold=node.threshold * torch.ones(size),
            output=node is net[4],
        )
        for node, size in ((net[2], 32), (net[4], 10))
    )
    return nn.Sequential(net[0], net[1], first, net[3], last)


def seen(model: nn.Module, x: Tensor, timesteps: int = TIMESTEPS) -> dict[str, Tensor]:
    """Spikes ``(T, B, ...)`` of every neuron of a module that was taken up, by its name."""
    found: dict[str, Tensor] = {}

    def keep(name: str):
        return lambda _module, _inputs, out: found.update({name: out.unflatten(0, (timesteps, -1))})

    hooks = [
        module.register_forward_hook(keep(name))
        for name, module in model.named_modules()
        if isinstance(module, IntegrateFire)
    ]
    with torch.no_grad():
        model(x)
    for hook in hooks:
        hook.remove()
    return found
