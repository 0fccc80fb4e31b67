"""Integer networks taken up again by a model."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import numpy as np
import pytest
import torch
from small_models import model_input, raw_images, small_model
from torch import nn

from lbq_hw import golden
from lbq_hw.network import Network
from lbq_hw.train.data import InputSpec
from lbq_hw.train.deploy.take_up import CHANNEL_NORM, TakeUpError, take_up, take_up_steps
from lbq_hw.train.export import integer_network
from lbq_hw.train.neurons import Neuron
from lbq_hw.train.norms import settle
from lbq_hw.train.preparation import prepare

NAMES = ["digits", "resnet20", "vgg", "nmnist", "resnet19"]


def part(model: nn.Module, path: str) -> Any:
    return model.get_submodule(path)


def exported(model: nn.Module, spec: InputSpec, bits: int) -> Network:
    return integer_network(model.eval(), spec, weight_bits=bits, most_different=1.0)


def levels(model: nn.Module, spec: InputSpec, raw: torch.Tensor) -> dict[str, np.ndarray]:
    """What each neuron sends, as levels, and the logits."""
    found: dict[str, np.ndarray] = {}

    def see(name: str):
        def hook(module: nn.Module, _: object, out: torch.Tensor) -> None:
            assert isinstance(module, Neuron)
            step = 1.0 if module.emit_levels else module.gamma
            found[name] = torch.round(out / step).numpy().astype(np.int64)

        return hook

    neurons = [(n, m) for n, m in model.named_modules() if isinstance(m, Neuron)]
    hooks = [module.register_forward_hook(see(name)) for name, module in neurons]
    with torch.no_grad():
        found["logits"] = model.eval()(model_input(spec, raw)).numpy()
    for hook in hooks:
        hook.remove()
    return found


def differing(model: nn.Module, spec: InputSpec, network: Network) -> float:
    """The largest share of a layer's levels that differ from the integer network's."""
    raw = raw_images(spec, 4, network.timesteps)
    ours = levels(model, spec, raw)
    shares = []

    def see(trace) -> None:
        if trace.levels is not None and trace.name in ours:
            theirs = np.asarray(trace.levels)
            shares.append(np.mean(theirs.reshape(-1) != ours[trace.name].reshape(-1)))

    result = golden.run(network, raw.numpy(), observe=see, batch=len(raw))
    assert len(shares) == len(network.layers) - 1
    assert np.array_equal(result.logits.argmax(1), ours["logits"].argmax(1))
    return float(max(shares))


@pytest.mark.parametrize("name", NAMES)
def test_a_model_that_takes_a_network_up_computes_its_levels_and_classes(name):
    """Levels differ only where an identity weight was rounded, or a sum met a threshold."""
    model, spec = small_model(name)
    network = exported(model, spec, 8)
    torch.manual_seed(1)
    fresh, _ = small_model(name, gamma0=0.3)
    take_up(fresh, spec, network)
    assert differing(fresh, spec, network) < 0.02
    settle(fresh, [model_input(spec, raw_images(spec, 8))])
    assert differing(fresh, spec, network) < 0.02


def test_at_the_same_number_of_bits_a_network_goes_round_with_its_codes():
    model, spec = small_model("resnet20")
    network = exported(model, spec, 4)
    fresh, _ = small_model("resnet20")
    take_up(fresh, spec, network)
    prepared = prepare(fresh, spec, weight_bits=4)
    take_up_steps(prepared, spec, network)
    settle(prepared, [model_input(spec, raw_images(spec, 8))])
    again = exported(prepared, spec, 4)
    for old, new in zip(network.layers, again.layers, strict=True):
        for before, after in zip(old.paths, new.paths, strict=True):
            if not before.is_identity:
                assert np.array_equal(before.weight, after.weight)
    assert differing(prepared, spec, network) < 0.02


def test_settled_norms_have_the_statistics_of_what_reaches_them_and_compute_the_same():
    model, spec = small_model("resnet20")
    fresh, _ = small_model("resnet20")
    take_up(fresh, spec, exported(model, spec, 8))
    x = model_input(spec, raw_images(spec, 8))
    before = fresh.eval()(x)
    settle(fresh, [x[:3], x[3:]])
    assert torch.allclose(fresh(x), before, atol=1e-4)
    with torch.no_grad():
        current = part(fresh, "blocks.0.conv1")(part(fresh, "stem")(x))
    norm = part(fresh, "blocks.0.norm1")
    assert torch.allclose(norm.running_mean, current.mean((0, 2, 3)), atol=1e-5)
    assert torch.allclose(norm.running_var, current.var((0, 2, 3), correction=0), rtol=1e-4)


def test_weights_before_a_norm_have_the_length_of_trained_ones():
    model, spec = small_model("resnet20")
    fresh, _ = small_model("resnet20")
    take_up(fresh, spec, exported(model, spec, 8))
    lengths = part(fresh, "blocks.3.conv1").weight.flatten(1).norm(dim=1)
    assert torch.allclose(lengths, torch.full_like(lengths, CHANNEL_NORM))


def test_gamma_learned_decay_and_named_tails_are_taken_up():
    learned = {"learn_beta": True, "learn_alpha": True, "beta": 0.75, "alpha": 0.5}
    model, spec = small_model("digits", gamma0=0.25, **learned)
    network = exported(model, spec, 8)
    fresh, _ = small_model("digits", learn_beta=True, learn_alpha=True)
    take_up(fresh, spec, network, {"residual.neuron": 0.9})
    neuron = part(fresh, "residual.neuron")
    assert neuron.gamma.item() == pytest.approx(0.25)
    assert neuron.beta.item() == pytest.approx(0.75)
    assert neuron.alpha.item() == pytest.approx(0.5, rel=0.01)
    assert neuron.lam.item() == pytest.approx(0.9)
    assert part(fresh, "layers.0.neuron").lam.item() == 0.5


def test_a_network_of_another_shape_or_without_scales_is_refused():
    model, spec = small_model("digits")
    network = exported(model, spec, 8)
    other, _ = small_model("mnist")
    shapes = "its input is (1, 8, 8), and the model's is (1, 28, 28)"
    with pytest.raises(TakeUpError, match=re.escape(shapes)):
        take_up(other, InputSpec(shape=(1, 28, 28), static=True, bits=8), network)
    plain, _ = small_model("digits", timesteps=2)
    bare = dataclasses.replace(
        network,
        layers=tuple(dataclasses.replace(x, gamma=None, scale=None) for x in network.layers),
    )
    message = "layer 'layers.0.neuron' has no gamma, which a model needs"
    with pytest.raises(TakeUpError, match=re.escape(message)):
        take_up(plain, spec, bare)
