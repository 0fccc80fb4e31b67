"""Networks of snnTorch and SpikingJelly: taken up with equal spikes, or refused with a mend."""

from __future__ import annotations

from copy import deepcopy
from functools import cache

import numpy as np
import pytest
import snntorch
import torch
from foreign import KINDS, SPEC, STANDARDIZED, TIMESTEPS, digits, emitted, leaky, seen, trained
from numpy.typing import NDArray
from spikingjelly.activation_based import layer, neuron
from torch import nn

from lbq_hw import golden
from lbq_hw.train.deploy.agreement import DisagreementError
from lbq_hw.train.export import integer_network
from lbq_hw.train.frameworks import adopt
from lbq_hw.train.graph import GraphError


def images_of_test() -> torch.Tensor:
    return SPEC.normalize(torch.from_numpy(digits("test").images))


@pytest.mark.parametrize("kind", [*KINDS, STANDARDIZED])
def test_spikes_of_a_trained_network_are_equal_before_its_weights_are_quantized(kind: str) -> None:
    net, images = trained(kind), images_of_test()
    with torch.no_grad():
        theirs = emitted(net, images)
    ours = list(seen(adopt(net, timesteps=TIMESTEPS, static=True), images).values())[-1]
    assert 0.02 < theirs.mean() < 0.5
    assert torch.equal(ours, theirs)


@cache
def counted(kind: str) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
    """All digits, their labels, and how often each output of a trained network spikes on them."""
    splits, net = [digits("test"), digits("train")], trained(kind)
    raw = np.concatenate([split.images for split in splits])
    with torch.no_grad():
        counts = emitted(net, SPEC.normalize(torch.from_numpy(raw))).sum(0)
    return raw, np.concatenate([split.labels for split in splits]), counts.long().numpy()


@pytest.mark.parametrize("kind", [*KINDS, STANDARDIZED])
def test_with_8_bits_few_predictions_differ_and_none_with_a_clear_lead(kind: str) -> None:
    """One spike decides many images, and rounding moves a spike on some of them. Gains and losses
    are counted alike: their difference, which the accuracy has, is chance on so few images.
    """
    raw, labels, counts = counted(kind)
    theirs, ordered = counts.argmax(1), np.sort(counts, axis=1)
    model = adopt(trained(kind), timesteps=TIMESTEPS, static=True)
    network = integer_network(model, SPEC, samples=raw[:32])
    resets = {layer.neuron.to_zero for layer in network.layers if layer.neuron is not None}
    assert resets == {kind.endswith(("zero", "hard"))}
    assert np.mean(theirs == labels) > 0.8
    differ = golden.predict(network, raw) != theirs
    assert differ.mean() <= 0.02
    clear = ordered[:, -1] - ordered[:, -2] >= TIMESTEPS - 1
    assert clear.mean() > 0.2
    assert not differ[clear].any()


@pytest.mark.parametrize("kind", [*KINDS, STANDARDIZED])
def test_with_16_bits_the_counts_of_hardly_an_image_differ(kind: str) -> None:
    """Differences vanish with finer weights and leaks: they are rounding, and no mistake."""
    raw, _, counts = counted(kind)
    model = adopt(trained(kind), timesteps=TIMESTEPS, static=True)
    network = integer_network(model, SPEC, samples=raw[:8], weight_bits=16, decay_bits=16)
    differ = (golden.run(network, raw).logits != counts).any(axis=1)
    assert differ.mean() <= 0.01


def in_fractions(kind: str) -> nn.Sequential:
    """A trained network with all its numbers rounded to short binary fractions.

    8-bit integers hold such weights, 12 fraction bits hold what five leaks leave of a membrane, and
    float32 holds every sum. So neither the framework nor export nor the integer network rounds.
    (Layers that standardize their weights are left out: their weights are computed anew.)
    """
    net = deepcopy(trained(kind))
    with torch.no_grad():
        for module in net:
            if isinstance(module, nn.Linear | nn.Conv2d):
                for values in module.parameters():
                    values.copy_((64 * values).round().clamp(-127, 127) / 64)
            elif isinstance(module, nn.BatchNorm2d):
                gain = module.weight / (module.running_var + module.eps).sqrt()
                shift = module.bias - module.running_mean * gain
                module.weight.copy_(gain.sign() * gain.abs().log2().round().exp2())
                module.bias.copy_((64 * shift).round() / 64)
                module.running_mean.zero_()
                module.running_var.fill_(1.0)
                module.eps = 0.0
            elif isinstance(module, snntorch.Leaky):  # a late reset is 0.75 / 0.5 or 0.75 / 0.75
                module.threshold.fill_(0.75)
                module.beta.fill_(0.5 if module is net[2] else 0.75)
    return net


def membranes(net: nn.Sequential, x: torch.Tensor) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """Spikes, and by name what the frameworks' own neurons keep ``(T, B, ...)``: snnTorch's the
    membrane from before the reset, SpikingJelly's the one from after it.
    """
    kept: dict[str, list[torch.Tensor]] = {}

    def keep(name: str):
        def hook(module: nn.Module, _inputs: object, _out: object) -> None:
            spikingjelly = isinstance(module, neuron.BaseNode)
            # The network has the input undivided, and a threshold that is tau times as high.
            membrane = getattr(module, "tau", 1.0) * module.v if spikingjelly else module.mem
            kept.setdefault(name, []).append(membrane)

        return hook

    hooks = [
        module.register_forward_hook(keep(name))
        for name, module in net.named_children()
        if isinstance(module, snntorch.Leaky | neuron.BaseNode)
    ]
    with torch.no_grad():
        spikes = emitted(net, x)
    for hook in hooks:
        hook.remove()
    return spikes, {name: torch.stack(steps) for name, steps in kept.items()}


@pytest.mark.parametrize("kind", KINDS)
def test_without_rounding_every_membrane_of_the_integer_network_is_equal(kind: str) -> None:
    net, raw, strict = in_fractions(kind), digits("test").images, kind.startswith("snntorch")
    spikes, theirs = membranes(net, images_of_test())
    model = adopt(net, timesteps=TIMESTEPS, static=True)
    network = integer_network(model, SPEC, samples=raw[:8], fraction=12, most_different=0.0)
    result = golden.run(network, raw, keep="all")
    assert 0.02 < spikes.mean() < 0.5
    np.testing.assert_array_equal(result.logits, spikes.sum(0).numpy())
    assert list(theirs) == [made.name for made in network.layers[:-1]]
    for made in network.layers[:-1]:
        trace, expected = result.traces[made.name], theirs[made.name].numpy()
        ours = trace.u if strict else trace.v
        assert ours is not None
        assert made.scale is not None
        unit = (made.scale * 2.0**-made.fraction_bits).reshape(-1, 1, 1)
        np.testing.assert_array_equal((ours * unit).reshape(expected.shape), expected)
        assert made.neuron is not None
        threshold = made.neuron.theta - strict  # theta is to be reached, `threshold` to be passed
        assert (trace.u == threshold.reshape(-1, 1, 1)).any()  # else the two are not told apart


@pytest.mark.parametrize("v_reset", [None, 0.0, -0.7])
@pytest.mark.parametrize("decay_input", [True, False])
@pytest.mark.parametrize("name", ["IFNode", "LIFNode", "ParametricLIFNode"])
def test_every_option_of_a_spikingjelly_neuron_is_exact(
    name: str, decay_input: bool, v_reset: float | None
) -> None:
    options: dict = {"v_threshold": 0.8, "v_reset": v_reset, "step_mode": "s"}
    if name != "IFNode":
        key = "init_tau" if name == "ParametricLIFNode" else "tau"
        options |= {"decay_input": decay_input, key: 3.0}
    node = getattr(neuron, name)(**options).double()
    x = 3 * torch.randn(20, 50, 1, dtype=torch.float64) + 0.3
    model = adopt(nn.Sequential(node), timesteps=20, static=False)
    with torch.no_grad():
        theirs = torch.stack([node(step) for step in x])
    [ours] = seen(model, x, 20).values()
    assert 0.02 < theirs.mean() < 0.9
    assert torch.equal(ours, theirs)


@pytest.mark.parametrize("delay", [True, False])
@pytest.mark.parametrize("reset", ["subtract", "zero", "none"])
def test_every_option_of_a_leaky_neuron_is_exact_or_refused(reset: str, delay: bool) -> None:
    node = leaky(reset, beta=0.75, threshold=0.8, reset_delay=delay)
    x = torch.randn(20, 50, 1) + 0.2
    if reset == "subtract" and not delay:
        message = (
            "the model has no integer form (1 violation):\n"
            "  0: it subtracts without a delay, and snnTorch then decides differently on spikes of "
            "a membrane that stays above its threshold; use reset_delay=True, or "
            'reset_mechanism="zero"'
        )
        with pytest.raises(GraphError) as caught:
            adopt(nn.Sequential(node), timesteps=20, static=False)
        assert str(caught.value) == message
        return
    with torch.no_grad():
        theirs = torch.stack([node(step) for step in x])
        [ours] = seen(adopt(nn.Sequential(node), timesteps=20, static=False), x, 20).values()
    assert 0.02 < theirs.mean() < 0.9
    assert torch.equal(ours, theirs)


@pytest.mark.parametrize(
    ("node", "violation"),
    [
        (
            lambda: leaky("zero", beta=torch.tensor([0.5, 0.9])),
            "beta differs from neuron to neuron; learn one beta per layer",
        ),
        (
            lambda: leaky("zero", init_hidden=False),
            "its membrane is an argument; build it with init_hidden=True, and call one timestep",
        ),
        (
            lambda: leaky("zero", state_quant=torch.round),
            "it has state_quant; build it with state_quant=False",
        ),
        (
            lambda: leaky("zero", inhibition=True),
            "it has inhibition; build it with inhibition=False",
        ),
        (
            lambda: leaky("zero", graded_spikes_factor=2.0),
            "its spikes are graded; use graded_spikes_factor=1.0",
        ),
        (
            lambda: leaky("subtract", beta=0.0),
            'it subtracts from a membrane that has leaked away; use reset_mechanism="zero"',
        ),
        (
            lambda: snntorch.Synaptic(alpha=0.5, beta=0.5, init_hidden=True),
            "its synapse has dynamics; use snntorch.Leaky",
        ),
        (
            lambda: neuron.QIFNode(),
            "SpikingJelly's QIFNode has no integer form; use IFNode, LIFNode, ParametricLIFNode",
        ),
        (
            lambda: neuron.IFNode(v_threshold=0.5, v_reset=0.5),
            "its threshold is not above its resting potential; train it with a higher threshold",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:Inhibition is an unstable feature:UserWarning")
def test_what_has_no_exact_form_is_refused_with_place_reason_and_mend(node, violation: str) -> None:
    with pytest.raises(GraphError) as caught:
        adopt(nn.Sequential(nn.Flatten(), node()), timesteps=2, static=True)
    assert str(caught.value) == f"the model has no integer form (1 violation):\n  1: {violation}"


def test_a_network_that_loops_over_time_itself_is_refused() -> None:
    class Loop(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc, self.lif = nn.Linear(4, 3), leaky("zero")

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.lif(self.fc(x)) + self.lif(self.fc(x))

    with pytest.raises(GraphError) as caught:
        adopt(Loop(), timesteps=2, static=True)
    assert str(caught.value) == (
        "the model has no integer form (1 violation):\n"
        "  lif: is called more than once; trace one timestep, not a loop"
    )


def test_the_tutorials_loop_over_time_is_refused_once_per_neuron() -> None:
    """As snnTorch's tutorials write it: 25 timesteps, membranes handed on, two lists returned."""

    class Tutorial(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc1, self.lif1 = nn.Linear(64, 8), snntorch.Leaky(beta=0.95)
            self.fc2, self.lif2 = nn.Linear(8, 10), snntorch.Leaky(beta=0.95)

        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            mem1, mem2 = self.lif1.init_leaky(), self.lif2.init_leaky()
            spikes, membranes = [], []
            for _ in range(25):
                spk1, mem1 = self.lif1(self.fc1(x.flatten(1)), mem1)
                spk2, mem2 = self.lif2(self.fc2(spk1), mem2)
                spikes.append(spk2)
                membranes.append(mem2)
            return torch.stack(spikes), torch.stack(membranes)

    reason = "its membrane is an argument; build it with init_hidden=True, and call one timestep"
    with pytest.raises(GraphError) as caught:
        adopt(Tutorial(), timesteps=25, static=True)
    assert str(caught.value) == (
        f"the model has no integer form (2 violations):\n  lif1: {reason}\n  lif2: {reason}"
    )


def test_a_module_that_changed_after_it_was_adopted_is_refused() -> None:
    """Export runs the module as it was given, not the layers that were read from it."""
    net = nn.Sequential(nn.Flatten(), layer.WSLinear(64, 10), neuron.IFNode(v_threshold=0.3))
    model = adopt(net, timesteps=2, static=True)
    with torch.no_grad():
        net[1].weight.neg_()
    with pytest.raises(DisagreementError) as caught:
        integer_network(model, SPEC, samples=digits("test").images[:16])
    assert str(caught.value) == (
        "the model gives other outputs than the layers that were read from it, on 16 of 16 inputs: "
        "it computes something outside of its layers; make that a layer"
    )


def test_comparing_leaves_membranes_as_they_were() -> None:
    jelly = nn.Sequential(nn.Flatten(), nn.Linear(64, 10), neuron.IFNode())
    torchs = nn.Sequential(nn.Flatten(), nn.Linear(64, 10), leaky("zero"))
    for net, membrane in ((jelly, "v"), (torchs, "mem")):
        with torch.no_grad():
            net(torch.ones(2, 1, 8, 8))
        before = getattr(net[2], membrane)
        integer_network(
            adopt(net, timesteps=2, static=True), SPEC, samples=digits("test").images[:4]
        )
        assert getattr(net[2], membrane) is before


class Decides(nn.Sequential):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) if x.sum() > 0 else x


class DecidesInTraining(nn.Sequential):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return -x if self.training and x.sum() > 0 else super().forward(x)


def test_a_forward_that_depends_on_values_is_refused_with_its_line() -> None:
    with pytest.raises(GraphError) as caught:
        adopt(Decides(neuron.IFNode()), timesteps=2, static=True)
    line = Decides.forward.__code__.co_firstlineno + 1
    assert str(caught.value) == (
        "the model has no integer form (1 violation):\n"
        f"  Decides (test_adopt.py:{line}): its forward depends on the values of a tensor "
        "(symbolically traced variables cannot be used as inputs to control flow); decide by sizes "
        "and settings that are known beforehand"
    )


def test_a_forward_that_depends_on_values_in_training_alone_is_noted() -> None:
    model = adopt(DecidesInTraining(neuron.IFNode()), timesteps=2, static=True)
    assert model.notes == (
        "DecidesInTraining: its forward differs between training and evaluation: it depends on "
        "values in training; the network does what the model does in evaluation",
    )


def test_a_membrane_that_is_read_is_refused() -> None:
    class Reads(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lif = leaky("zero", output=True)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            _, membrane = self.lif(x)
            return membrane

    with pytest.raises(GraphError) as caught:
        adopt(Reads(), timesteps=2, static=True)
    assert str(caught.value) == (
        "the model has no integer form (1 violation):\n"
        "  lif: its membrane is read; read its spikes, or end the network with a linear"
    )
