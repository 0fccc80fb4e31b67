"""ANNs become burst networks: every ReLU a neuron, with the step that suits what reaches it."""

import re

import pytest
import torch
import torch.nn.functional as F
from relu_nets import ReluResNet
from torch import Tensor, nn

from lbq_hw import datasets
from lbq_hw.train import LBQ, InputSpec, Repeat, TimeMean, convert, prepare
from lbq_hw.train.conversion import ConversionError, fitted_step
from lbq_hw.train.layers import Repeat as RepeatLayer

SPEC = InputSpec(shape=(1, 8, 8), static=True, bits=5, full_scale=16)


def batches(count: int = 2) -> list[tuple[Tensor, Tensor]]:
    digits = datasets.load("digits", split="train")
    images, labels = torch.from_numpy(digits.images), torch.from_numpy(digits.labels)
    return list(zip(images.split(64)[:count], labels.split(64)[:count], strict=True))


def trained(model: nn.Module) -> nn.Module:
    """With weights that are not those of the first day, and norms that have seen data."""
    torch.manual_seed(0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in batches(8):
        optimizer.zero_grad()
        F.cross_entropy(model(SPEC.normalize(x)), y).backward()
        optimizer.step()
    return model.eval()


class PreActivation(nn.Module):
    """Its shortcut reads what a ReLU in place has changed."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8))
        self.relu = nn.ReLU(inplace=True)
        self.conv = nn.Conv2d(8, 8, 3, padding=1)
        self.fc = nn.Linear(8, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        out = self.conv(self.relu(x))
        return self.fc(F.relu(out + x).mean((2, 3)))


@pytest.mark.parametrize("make", [lambda: ReluResNet(1, (8, 8)), PreActivation])
def test_with_many_levels_the_network_computes_what_the_ann_does(make):
    ann, x = trained(make()), SPEC.normalize(batches()[0][0])
    net = convert(ann, SPEC, batches(), capacity=255)
    assert not any(isinstance(module, nn.ReLU) for module in net.modules())
    with torch.no_grad():
        want, got, coarse = ann(x), net(x), convert(ann, SPEC, batches(), capacity=1)(x)
    assert (got - want).abs().max() < 0.02 * want.abs().max()
    assert (coarse - want).abs().max() > 0.1 * want.abs().max()


def test_each_call_of_a_relu_is_a_neuron_with_its_own_step():
    ann = trained(ReluResNet(1, (8, 8)))
    before = {name: tensor.clone() for name, tensor in ann.state_dict().items()}
    net = convert(ann, SPEC, batches())
    neurons = {name: m for name, m in net.named_modules() if isinstance(m, LBQ)}
    names = ["relu", "layer1.0.relu", "layer1.0.relu_2", "layer2.0.relu", "layer2.0.relu_2"]
    assert [*neurons] == names
    assert {m.timesteps for m in neurons.values()} == {1}
    assert {m.capacity for m in neurons.values()} == {5}
    assert len({m.gamma.item() for m in neurons.values()}) == 5
    assert all(torch.equal(before[name], tensor) for name, tensor in ann.state_dict().items())
    half = neurons["layer1.0.relu"].gamma.item() / 2
    shifted = net.get_submodule("layer1.0.bn1").bias - before["layer1.0.bn1.bias"]
    assert shifted.tolist() == pytest.approx([half] * 8, rel=1e-4)
    assert prepare(net, SPEC, weight_bits=4)(SPEC.normalize(batches()[0][0])).shape == (64, 10)


def test_functions_become_neurons_beside_the_layer_before_them():
    net = convert(trained(PreActivation()), SPEC, batches())
    assert [n for n, m in net.named_modules() if isinstance(m, LBQ)] == ["relu", "relu_1"]


def test_over_time_currents_of_the_input_are_repeated_and_logits_averaged():
    net = convert(trained(ReluResNet(1, (8, 8))), SPEC, batches(), timesteps=3, beta=0.25)
    repeats = [n for n in net.graph.nodes if n.target == "bn1_repeat"]
    assert [n.all_input_nodes[0].target for n in repeats] == ["bn1"]
    assert sum(isinstance(m, RepeatLayer) for m in net.modules()) == 1
    assert [n.target for n in net.graph.nodes][-2:] == ["mean", "output"]
    assert isinstance(net.get_submodule("mean"), TimeMean)
    assert isinstance(net.get_submodule("bn1_repeat"), Repeat)
    assert {m.beta for m in net.modules() if isinstance(m, LBQ)} == {0.25}
    assert prepare(net, SPEC)(SPEC.normalize(batches()[0][0])).shape == (64, 10)


def test_a_step_that_is_in_the_currents_is_found():
    levels = torch.arange(6).repeat(10)
    assert fitted_step(0.5 * levels, 5) == 0.5
    assert fitted_step(-levels.float(), 5) == 1.0  # nothing fires, so there is no scale
    outlier = torch.cat([0.5 * levels.repeat(1000), torch.tensor([64.0])])
    assert fitted_step(outlier, 5) < 1.0  # one large current does not decide


def test_an_ann_without_relus_is_refused():
    message = "Flatten has no ReLU to convert: give an ANN with ReLUs"
    with pytest.raises(ConversionError, match=f"^{re.escape(message)}$"):
        convert(nn.Flatten(), SPEC, batches())
