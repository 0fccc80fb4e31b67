"""Layers that the integer network has no form of its own for, as the convolutions that they are.

Every number is a sum of powers of two, so that floats are exact: the spikes that a module of torch
and integrate-and-fire neurons counts are those of the integer network, and not only nearly.
"""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lbq_hw import compile_network, golden, interpreter
from lbq_hw.compiler import smallest_for
from lbq_hw.train.data import InputSpec
from lbq_hw.train.deploy import agreement
from lbq_hw.train.deploy.integer import IntegerNetwork
from lbq_hw.train.export import integer_network
from lbq_hw.train.graph.trace import analyze, trace
from lbq_hw.train.layers import Repeat, TimeMean
from lbq_hw.train.neurons import LBQ, IntegrateFire
from lbq_hw.train.preparation import prepare

SPEC = InputSpec(shape=(2, 6, 6), static=True, bits=3, full_scale=4.0)
LINE = InputSpec(shape=(2, 1, 12), static=True, bits=3, full_scale=4.0)
TIMESTEPS = 3
pytestmark = pytest.mark.filterwarnings("ignore:Using padding='same'")


class Net(nn.Module):
    """A stem, whatever is tried, and a head that counts spikes."""

    def __init__(self, *middle: nn.Module, stem: nn.Module | None = None) -> None:
        super().__init__()
        self.repeat, self.mean = Repeat(TIMESTEPS), TimeMean(TIMESTEPS)
        self.stem, self.n0 = stem or nn.Conv2d(2, 4, 3, padding=1), fires()
        self.middle = nn.Sequential(*middle)
        self.n1, self.n2 = fires(), fires()
        self.head = nn.LazyLinear(5)

    def forward(self, x: Tensor) -> Tensor:
        x = self.n0(self.stem(self.repeat(x)))
        return self.mean(self.n2(self.head(self.n1(self.middle(x)).flatten(1))))


class Lines(Net):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.squeeze(2))


class Joins(nn.Module):
    """Three branches of unlike widths, joined; what follows is given."""

    def __init__(self, *behind: nn.Module) -> None:
        super().__init__()
        self.left, self.left_fires = nn.Conv2d(4, 3, 3, padding=1), fires()
        self.right, self.right_fires = nn.Conv2d(4, 2, 1), fires()
        self.behind = nn.Sequential(*behind)

    def forward(self, x: Tensor) -> Tensor:
        left = self.left_fires(self.left(x))
        pair = torch.cat((left, x), dim=1)
        return self.behind(torch.cat([pair, self.right_fires(self.right(x))], 1))


class Dense(nn.Module):
    """Currents, joined, in front of a norm and a neuron, as a DenseNet has them."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(4, 3, 1), nn.Conv2d(4, 2, 3, padding=1)
        self.norm, self.fires = halving(5), fires()
        self.out = nn.Conv2d(5, 4, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.fires(self.norm(torch.cat([self.first(x), self.second(x)], 1))))


class Padded(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return F.pad(x, (2, 0, 1, 1))


def fires() -> IntegrateFire:
    return IntegrateFire(timesteps=TIMESTEPS, threshold=0.75, beta=0.5)


def halving(channels: int) -> nn.BatchNorm2d:
    norm = nn.BatchNorm2d(channels, eps=1.0)
    assert norm.running_var is not None
    norm.running_var.fill_(3.0)
    return norm


def exact(model: Net, spec: InputSpec) -> Net:
    """A model whose parameters are all sixteenths."""
    generator = torch.Generator().manual_seed(3)
    model(torch.zeros(1, *spec.shape))
    for module in model.modules():
        if isinstance(module, nn.Conv1d | nn.Conv2d | nn.Linear):
            for tensor in module.parameters():
                tensor.data = torch.randint(-5, 8, tensor.shape, generator=generator) / 16
    return model.eval()


def conv(*args: int, **options) -> nn.Conv2d:
    return nn.Conv2d(*args, **options)


CASES = {
    "dilation": lambda: Net(conv(4, 4, 3, dilation=2, padding=2)),
    "uneven dilation": lambda: Net(conv(4, 4, (2, 3), dilation=(3, 1), stride=2)),
    "groups": lambda: Net(conv(4, 6, 3, groups=2, padding=1)),
    "depthwise": lambda: Net(conv(4, 4, 3, groups=4, padding=1)),
    "depthwise with a multiplier": lambda: Net(conv(4, 8, 3, groups=4, stride=2, padding=1)),
    "depthwise pixels": lambda: Net(conv(4, 4, 1), stem=conv(2, 4, 3, groups=2, padding=1)),
    "an even kernel that keeps the size": lambda: Net(conv(4, 4, 4, padding="same")),
    "dilated, of the same size": lambda: Net(conv(4, 4, 2, padding="same", dilation=3)),
    "padded": lambda: Net(nn.ZeroPad2d(1), conv(4, 4, 3)),
    "padded unevenly": lambda: Net(nn.ZeroPad2d((0, 1, 2, 1)), conv(4, 4, 3, stride=2, padding=1)),
    "padded by a function": lambda: Net(Padded(), conv(4, 4, 3)),
    "padded pixels": lambda: Net(
        conv(4, 4, 1), stem=nn.Sequential(nn.ZeroPad2d((1, 0, 1, 0)), conv(2, 4, 2))
    ),
    "padded, then pooled": lambda: Net(nn.ZeroPad2d(1), nn.AvgPool2d(2), conv(4, 4, 3)),
    "padded, then the largest": lambda: Net(
        nn.ConstantPad2d(1, 0.0), nn.MaxPool2d(2), conv(4, 4, 3)
    ),
    "padded, then flat": lambda: Net(nn.ZeroPad2d((1, 0, 0, 2)), nn.Flatten(), nn.LazyLinear(7)),
    "the largest of all": lambda: Net(nn.AdaptiveMaxPool2d(1), conv(4, 6, 1)),
    "the largest of quarters": lambda: Net(nn.AdaptiveMaxPool2d(2), conv(4, 6, 2)),
    "a line": lambda: Lines(nn.Conv1d(4, 4, 3, padding=1), stem=nn.Conv1d(2, 4, 3)),
    "a dilated line": lambda: Lines(
        nn.MaxPool1d(2), nn.Conv1d(4, 4, 2, dilation=2, groups=2), stem=nn.Conv1d(2, 4, 3)
    ),
    "pooled lines": lambda: Lines(
        nn.AvgPool1d(2), nn.Conv1d(4, 4, 2, padding="same"), stem=nn.Conv1d(2, 4, 3, stride=2)
    ),
    "the largest of a line": lambda: Lines(
        nn.AdaptiveMaxPool1d(1), nn.Flatten(), nn.LazyLinear(6), stem=nn.Conv1d(2, 4, 3)
    ),
    "a join": lambda: Net(Joins(conv(9, 4, 3, padding=1))),
    "a join, grouped": lambda: Net(Joins(conv(9, 9, 3, groups=9), conv_of_levels(9))),
    "a join, pooled": lambda: Net(Joins(nn.AvgPool2d(2), conv(9, 4, 1))),
    "a join, padded": lambda: Net(Joins(nn.ZeroPad2d((1, 0, 0, 0)), conv(9, 4, 3, dilation=2))),
    "a join, flat": lambda: Net(Joins(nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.LazyLinear(6))),
    "a join of currents": lambda: Net(Dense()),
}


def conv_of_levels(channels: int) -> nn.Module:
    return nn.Sequential(fires(), conv(channels, 4, 1))


def spec_of(model: nn.Module) -> InputSpec:
    return LINE if isinstance(model, Lines) else SPEC


def pixels(spec: InputSpec, count: int = 8) -> np.ndarray:
    return agreement.noise(spec, TIMESTEPS, count) & 7


@pytest.mark.parametrize("case", CASES)
def test_spikes_are_those_of_torch(case: str) -> None:
    model = CASES[case]()
    spec = spec_of(model)
    model, raw = exact(model, spec), pixels(spec)
    network = integer_network(model, spec, weight_bits=4, samples=raw)
    sent: list[Tensor] = []
    model.n1.register_forward_hook(lambda _module, _inputs, spikes: sent.append(spikes))
    with torch.no_grad():
        counts = TIMESTEPS * model(spec.normalize(torch.from_numpy(raw)))
    result = golden.run(network, raw, keep="levels")
    levels, logits = result.traces["n1"].levels, result.logits
    assert levels is not None
    assert 0.02 < levels.mean() < 0.98
    assert levels.flatten().tolist() == sent[0].flatten().tolist()
    assert logits.tolist() == counts.round().long().tolist()
    assert IntegerNetwork(network)(torch.from_numpy(raw)).tolist() == logits.tolist()
    program = compile_network(network, smallest_for(network, lanes=8))
    assert interpreter.run(program, raw[0]).logits.tolist() == logits[0].tolist()


def with_bursts(model: nn.Module) -> nn.Module:
    """The same with burst neurons of unlike steps, which can be trained, and a linear head."""
    steps = iter((0.3, 0.7, 0.2, 0.9, 0.45))
    for path, module in list(model.named_modules()):
        if isinstance(module, IntegrateFire):
            parent, _, name = path.rpartition(".")
            neuron = nn.Identity()
            if name != "n2":
                neuron = LBQ(timesteps=TIMESTEPS, capacity=5, gamma0=next(steps))
            setattr(model.get_submodule(parent), name, neuron)
    return model


@pytest.mark.parametrize("case", CASES)
def test_their_parts_learn_what_the_whole_does(case: str) -> None:
    model = CASES[case]()
    spec = spec_of(model)
    model = with_bursts(exact(model, spec)).double()
    x = spec.normalize(torch.from_numpy(pixels(spec)), torch.float64)
    ready = prepare(model, spec)
    model.train(), ready.train()
    model(x).square().sum().backward(), ready(x).square().sum().backward()
    theirs, ours = (
        sum(p.grad.square().sum() for p in net.parameters() if p.grad is not None)
        for net in (model, ready)
    )
    assert theirs > 0
    assert torch.allclose(theirs, ours, rtol=1e-9)


def test_a_join_leaves_the_model_alone_and_names_its_parts() -> None:
    model = exact(Net(Joins(conv(9, 4, 3, padding=1))), SPEC)
    before = copy.deepcopy(model.state_dict())
    root = trace(model)
    found = analyze(root, SPEC)
    assert [population.name for population in found.populations] == [
        *("n0", "middle.0.left_fires", "middle.0.right_fires", "n1", "n2", "logits"),
    ]
    weights = [name for name in root.state_dict() if name.startswith("middle.0.behind")]
    assert weights == [
        "middle.0.behind.0.0.weight",
        "middle.0.behind.0.0.bias",
        "middle.0.behind.0.1.weight",
        "middle.0.behind.0.2.weight",
    ]
    assert model.state_dict().keys() == before.keys()
    assert all(torch.equal(model.state_dict()[name], before[name]) for name in before)


def test_neurons_of_a_join_share_their_step() -> None:
    ready = prepare(with_bursts(exact(Net(Dense()), SPEC)), SPEC)
    first, second = (ready.get_submodule(f"middle.0.fires.{number}") for number in (0, 1))
    assert first.rho is second.rho
    assert len({id(p) for p in ready.parameters()}) == len(list(ready.parameters()))
