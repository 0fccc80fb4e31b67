"""The prepared model computes what the plain one does, on levels instead of values."""

import pytest
import torch
import torch.nn.functional as F
from small_models import model_input, raw_images, small_model
from torch import nn

from lbq_hw.train import neurons
from lbq_hw.train.data import InputSpec
from lbq_hw.train.graph import GraphError
from lbq_hw.train.preparation import prepare


@pytest.mark.parametrize("name", ["digits", "nmnist", "vgg", "resnet20"])
@pytest.mark.parametrize("absorb", [True, False])
def test_a_prepared_model_gives_the_same_logits_and_gradients(name, absorb):
    torch.manual_seed(0)
    plain, spec = small_model(name, gamma0=0.3)
    ready = prepare(plain, spec, absorb=absorb)
    assert list(ready.state_dict()) == list(plain.state_dict())
    x = model_input(spec, raw_images(spec, 3))
    plain, ready = plain.double(), ready.double()
    results = []
    for model in (plain, ready):
        logits = model.train()(x.double())
        logits.square().mean().backward()
        results.append((logits, dict(model.named_parameters())))
    torch.testing.assert_close(results[0][0], results[1][0], rtol=1e-9, atol=1e-9)
    for key, parameter in results[0][1].items():
        torch.testing.assert_close(parameter.grad, results[1][1][key].grad, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("kind", ["relu", "ternary", "binary", "quant-relu", "burst"])
def test_every_neuron_kind_can_be_prepared(kind):
    torch.manual_seed(0)
    plain, spec = small_model("resnet20", kind=kind)
    ready = prepare(plain, spec, trained_only=True)
    x = model_input(spec, raw_images(spec, 2))
    torch.testing.assert_close(plain.eval()(x), ready.eval()(x), rtol=1e-4, atol=1e-5)


def test_preparing_leaves_the_model_alone():
    plain, spec = small_model("digits")
    prepare(plain, spec, weight_bits=4)
    assert not any("step" in name for name, _ in plain.named_parameters())
    assert not any(m.emit_levels for m in plain.modules() if isinstance(m, neurons.Neuron))


def test_levels_travel_between_layers_and_values_do_not():
    plain, spec = small_model("digits", gamma0=0.3)
    ready = prepare(plain, spec).eval()
    seen = []
    for module in ready.modules():
        if isinstance(module, neurons.Neuron):
            module.register_forward_hook(lambda m, i, o: seen.append(o))  # noqa: ARG005
    ready(model_input(spec, raw_images(spec, 2)))
    assert seen
    assert all(torch.equal(levels, levels.round()) for levels in seen)


def test_quantized_weights_take_few_values_in_every_layer():
    plain, spec = small_model("resnet20", gamma0=0.3)
    ready = prepare(plain, spec, weight_bits=2)
    steps = {name for name, _ in ready.named_parameters() if name.endswith(".step")}
    assert len(steps) == 1 + 2 * 9 + 2 + 1
    for module in ready.modules():
        if hasattr(module, "effective_weight"):
            rows = module.effective_weight().flatten(1)
            assert all(len(row.unique()) <= 3 for row in rows)


def test_quantized_weights_with_a_std_per_channel_are_refused():
    plain, _ = small_model("resnet20")
    spec = InputSpec(
        shape=(3, 32, 32), static=True, bits=8, mean=(0.5, 0.5, 0.5), std=(0.2, 0.2, 0.3)
    )
    with pytest.raises(
        ValueError,
        match=r"^quantized weights need one input scale for all channels, not std = "
        r"\(0\.2, 0\.2, 0\.3\): scale inputs without a per-channel std$",
    ):
        prepare(plain, spec, weight_bits=4)


SPEC = InputSpec(shape=(1, 4, 4), static=True, bits=8)


class Odd(nn.Module):
    """Trains as floats, and has no integer form where one of its parts says so."""

    def __init__(self, *, norm=False, twice=False, softmax=False, dropout=False) -> None:
        super().__init__()

        def lbq() -> nn.Module:
            return neurons.build("lbq", timesteps=1, capacity=5, gamma0=0.05)

        self.norm = nn.GroupNorm(2, 4) if norm else nn.Identity()
        self.twice, self.softmax, self.dropout = twice, softmax, dropout
        self.conv1, self.n1 = nn.Conv2d(1, 4, 3, padding=1), lbq()
        self.conv2, self.n2, self.n3 = nn.Conv2d(4, 4, 3, padding=1), lbq(), lbq()
        self.fc = nn.Linear(64, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.n2(self.norm(self.conv2(self.n1(self.conv1(x)))))
        if self.twice:
            x = self.n3(self.conv2(x))
        x = x.flatten(1)
        if self.dropout:
            x = F.dropout(x, 0.5, self.training)
        x = self.fc(x)
        return F.log_softmax(x, 1) if self.softmax else x


@pytest.mark.parametrize("part", ["norm", "softmax"])
def test_layers_before_an_unknown_one_see_values_they_do_not_absorb(part):
    torch.manual_seed(0)
    plain = Odd(**{part: True}).double().eval()
    ready = prepare(plain, SPEC, trained_only=True)
    x = model_input(SPEC, raw_images(SPEC, 3)).double()
    torch.testing.assert_close(ready(x), plain(x), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("part", "violation"),
    [
        ("twice", "conv2: is called more than once; give each call its own layer"),
        (
            "dropout",
            "dropout (dropout): the function dropout stays in the mode it was traced in, training"
            " or not; use the layer of torch.nn, such as nn.Dropout",
        ),
    ],
)
def test_what_would_train_another_network_is_refused(part, violation):
    with pytest.raises(GraphError) as error:
        prepare(Odd(**{part: True}), SPEC)
    assert str(error.value) == f"the model has no integer form (1 violation):\n  {violation}"
