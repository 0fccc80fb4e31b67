"""An export compares itself with its module, and refuses what is another function."""

import dataclasses
import warnings

import numpy as np
import pytest
import torch
from small_models import small_model
from torch import fx, nn

from lbq_hw import golden
from lbq_hw.train.data import InputSpec
from lbq_hw.train.deploy import agreement
from lbq_hw.train.deploy.agreement import DisagreementError
from lbq_hw.train.export import ExportWarning, integer_network
from lbq_hw.train.graph.trace import analyze, trace
from lbq_hw.train.neurons import LBQ
from lbq_hw.train.preparation import prepare


def compared(model, spec, network, raw=None):
    root = model if isinstance(model, fx.GraphModule) else trace(model)
    samples = agreement.samples(network) if raw is None else raw
    return agreement.compare(analyze(root, spec), root, spec, network, samples)


def trained_quantized():
    """A model whose weights no export rounds, so that it agrees with its network."""
    plain, spec = small_model("mnist", gamma0=0.3)
    model = prepare(plain, spec, weight_bits=8).double()
    return model, spec, integer_network(model, spec, fraction=12)


def test_weights_that_were_trained_quantized_agree_in_every_layer_and_class():
    model, spec, network = trained_quantized()
    found = compared(model, spec, network)
    assert list(found.layers) == [layer.name for layer in network.layers]
    assert set(found.layers.values()) == {0.0}
    assert (found.classes, found.samples) == (0.0, 64)


def test_a_changed_layer_is_the_only_one_that_differs_since_inputs_are_made_equal():
    model, spec, network = trained_quantized()
    wrong = network.layers[1]
    path = dataclasses.replace(wrong.paths[0], weight=-wrong.paths[0].weight)
    layers = list(network.layers)
    layers[1] = dataclasses.replace(wrong, paths=(path,))
    found = compared(model, spec, dataclasses.replace(network, layers=tuple(layers)))
    assert found.worst == wrong.name
    assert found.layers[wrong.name] > 0.1
    assert [share > 0 for share in found.layers.values()] == [False, True, False, False]
    assert found.classes > 0


def test_the_share_is_that_of_levels_and_of_classes():
    model, spec = small_model("digits", gamma0=0.3)
    network = integer_network(model.double(), spec, weight_bits=3, most_different=1)
    raw = agreement.samples(network)
    found = compared(model, spec, network, raw)
    with torch.no_grad():
        classes = model.eval()(spec.normalize(torch.from_numpy(raw), torch.float64)).argmax(1)
    assert found.classes == np.mean(classes.numpy() != golden.run(network, raw).classes)
    forced = agreement.forced(analyze(trace(model), spec), trace(model), spec, network, raw)
    first = next(iter(forced))
    gamma = model.get_submodule("layers.0.neuron").gamma.detach()
    mine = (first.output / gamma).round().numpy().reshape(first.trace.levels.shape)
    assert found.layers["layers.0.neuron"] == np.mean(mine != first.trace.levels) > 0


def test_comparing_leaves_a_module_in_its_modes():
    model, spec = small_model("digits", gamma0=0.3)
    model.train()
    model.layers[0].norm.eval()
    integer_network(model, spec)
    assert model.training
    assert not model.layers[0].norm.training


def test_samples_are_as_many_as_a_large_network_allows_and_the_same_each_time():
    model, spec = small_model("digits")
    network = integer_network(model, spec)
    few = dataclasses.replace(network, timesteps=network.timesteps)
    assert len(agreement.samples(few)) == 64
    np.testing.assert_array_equal(agreement.samples(network), agreement.samples(network))
    assert agreement.samples(network, seed=1).tolist() != agreement.samples(network).tolist()


def test_samples_use_the_range_of_few_input_bits():
    model, spec = small_model("digits")
    for bits, shift, white in ((8, 0, 255), (4, 0, 15), (4, 4, 240)):
        narrow = dataclasses.replace(spec, bits=bits, shift=shift, full_scale=0.0)
        raw = agreement.samples(integer_network(model, narrow, most_different=1))
        assert white < raw.max() * 1.5
        assert raw.max() <= min(255, white * 2)


def test_samples_of_recordings_have_frames():
    model, spec = small_model("nmnist")
    assert agreement.samples(integer_network(model, spec)).shape[1:] == (2, 2, 34, 34)


def test_float_weights_rounded_to_few_bits_are_refused_with_the_layer_and_a_mend():
    model, spec = small_model("digits", gamma0=0.3)
    with pytest.raises(DisagreementError) as error:
        integer_network(model, spec, weight_bits=2)
    assert str(error.value).endswith(
        " differ from the model's on the same inputs (64 samples), and at most 25 % may; use more "
        "than 2 bits, or train with quantized weights, or allow it with most_different = 1"
    )
    assert integer_network(model, spec, weight_bits=2, most_different=1).weight_bits == 2


def test_a_network_trained_quantized_that_is_another_function_is_refused(monkeypatch):
    model, spec = small_model("mnist", gamma0=0.3)
    ready = prepare(model, spec, weight_bits=4).double()
    integer_network(ready, spec)
    monkeypatch.setattr(
        "lbq_hw.train.deploy.layer.bias", lambda _, channels: np.full(channels, 0.2)
    )
    with pytest.raises(DisagreementError) as error:
        integer_network(ready, spec)
    assert str(error.value).endswith(
        "(64 samples), and at most 5 % may; give more fraction bits, and report a defect if that "
        "does not help, or allow it with most_different = 1"
    )


def test_given_samples_are_what_is_compared_on():
    model, spec = small_model("digits", gamma0=0.3)
    black = np.zeros((3, *spec.shape), np.uint8)
    found = compared(model, spec, integer_network(model, spec, samples=black), black)
    assert found.samples == 3


def coarse_thresholds():
    model, spec = small_model("mnist", gamma0=0.3)
    model.layers[1].conv.weight.data *= 200
    return model, spec


def test_thresholds_for_want_of_fraction_bits_are_a_warning_with_the_layer():
    model, spec = coarse_thresholds()
    message = (
        r"^layers\.1\.neuron: thresholds are up to \d+ % off in \d+ of 32 channels, with 0 fraction"
        r" bits( \(\d+ would round to 0 and are 1\))?$"
    )
    with pytest.warns(ExportWarning, match=message):
        integer_network(model, spec, fraction=0, weight_bits=8, most_different=1)


@pytest.mark.parametrize(
    ("beta", "bits", "said"),
    [
        (0.99, 8, "0.99 became 253/256, so a membrane decays to 1/e in 84.8 timesteps instead of "
         "99.5"),
        (0.999, 8, "0.999 became 1, which is no leak, so a membrane decays to 1/e in inf timesteps "
         "instead of 999"),
        (0.999, 16, None),
        (0.9, 8, None),
    ],
)  # fmt: skip
def test_a_leak_for_want_of_decay_bits_is_a_warning(beta: float, bits: int, said: str | None):
    model, spec = small_model("digits", gamma0=0.3)
    for module in model.modules():
        if isinstance(module, LBQ):
            module._beta = beta
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ExportWarning)
        integer_network(model, spec, decay_bits=bits, fraction=8, most_different=1)
    told = [str(one.message) for one in caught if "decay bits" in str(one.message)]
    names = [name for name, module in model.named_modules() if isinstance(module, LBQ)]
    assert names
    assert told == [f"{n}: its beta of {said}: give more decay bits" for n in names if said]


def test_a_border_of_few_input_bits_is_a_warning_with_the_share_of_levels_moved():
    model, spec = small_model("mnist", gamma0=0.3)
    spec = dataclasses.replace(spec, bits=2, full_scale=0.0, mean=(0.5,), std=(0.3,))
    message = (
        r"^layers\.0\.neuron: the border that stands for padding is up to 0\.50 levels off the mean"
        r", at 2 input bits; \d+\.\d % of the layer's levels differ from the model's, and "
        r"logits by up to \d+ % of the largest$"
    )
    with pytest.warns(ExportWarning, match=message):
        integer_network(model, spec, most_different=1)


def bordered(bits: int, mean: float):
    """A model trained quantized, on images of few bits whose mean is subtracted."""
    torch.manual_seed(0)
    spec = InputSpec(shape=(1, 8, 8), static=True, bits=bits, mean=(mean,), std=(0.3,))
    return prepare(tiny(), spec, weight_bits=4), spec


def tiny(head: nn.Module | None = None) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        LBQ(timesteps=1, gamma0=0.3, capacity=5),
        nn.Conv2d(8, 8, 3, padding=1),
        LBQ(timesteps=1, gamma0=0.3, capacity=5),
        *((nn.Flatten(), nn.Linear(512, 10)) if head is None else (head,)),
    )


def test_a_border_that_makes_another_network_is_named_with_the_ways_out():
    model, spec = bordered(1, 0.5)
    with pytest.raises(DisagreementError) as error:
        integer_network(model, spec)
    assert str(error.value).endswith(
        "and at most 5 % may; the border that stands for padding is up to 0.50 levels off the "
        "mean, at 1 input bits: use more input bits, a mean that is a whole level, no padding in "
        "the first layer, or no mean, or allow it with most_different = 1"
    )


@pytest.mark.parametrize(("bits", "mean"), [(6, 0.5), (5, 0.3), (8, 0.2), (2, 1 / 3)])
def test_a_border_is_noted_where_it_is_off_by_more_than_a_250th_of_full_scale(bits, mean):
    model, spec = bordered(bits, mean)
    off = abs(mean * spec.full_scale - round(mean * spec.full_scale)) / spec.full_scale
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        integer_network(model, spec)
    said = [str(warning.message) for warning in caught]
    assert [text.startswith("1: the border that stands for padding") for text in said] == (
        [True] if off > 0.004 else []
    )


def sensitive():
    """A model that needs 14 fraction bits: biases are what its second layer's levels hang on."""
    torch.manual_seed(0)
    model, spec = tiny(), InputSpec(shape=(1, 8, 8), static=True, bits=8)
    model[0].bias.data.fill_(-10)
    model[2].weight.data *= 1000
    model[2].bias.data = torch.linspace(0, 1.6, 8)
    return prepare(model, spec, weight_bits=4).double(), spec


def test_more_fraction_bits_are_taken_where_fewer_would_make_another_network():
    model, spec = sensitive()
    message = (
        r"^3: the network has 14 fraction bits, since 12\.5 % of its levels would differ from the "
        r"model's with 8$"
    )
    with pytest.warns(ExportWarning, match=message):
        network = integer_network(model, spec)
    assert network.layers[0].fraction_bits == 14
    assert set(compared(model, spec, network).layers.values()) == {0.0}


def test_too_few_fraction_bits_are_refused_with_the_number_that_is_needed():
    model, spec = sensitive()
    with pytest.raises(DisagreementError) as error:
        integer_network(model, spec, fraction=8)
    assert str(error.value) == (
        "3: 12.5 % of its levels differ from the model's on the same inputs (64 samples), and at "
        "most 5 % may; give 14 fraction bits, or allow it with most_different = 1"
    )


def test_a_dense_head_is_compared_place_by_place():
    torch.manual_seed(0)
    model, spec = tiny(nn.Conv2d(8, 3, 1)), InputSpec(shape=(1, 8, 8), static=True, bits=8)
    network = integer_network(model, spec)
    assert network.layers[-1].shape == (3, 8, 8)
    raw = agreement.samples(network)
    with torch.no_grad():
        mine = model.eval()(spec.normalize(torch.from_numpy(raw))).argmax(1).numpy()
    theirs = golden.run(network, raw).logits.reshape(-1, 3, 8, 8).argmax(axis=1)
    assert compared(model, spec, network).classes == np.mean(mine != theirs) < 0.1


def test_one_logit_is_compared_by_its_value():
    torch.manual_seed(0)
    spec = InputSpec(shape=(1, 8, 8), static=True, bits=8)
    model = tiny(nn.Sequential(nn.Flatten(), nn.Linear(512, 1)))
    network = integer_network(model, spec, weight_bits=16)
    assert compared(model, spec, network).layers["logits"] == 0.0
    last = network.layers[-1]
    half = dataclasses.replace(last, scale=0.5 * last.scale)
    wrong = dataclasses.replace(network, layers=(*network.layers[:-1], half))
    assert compared(model, spec, wrong).layers["logits"] > 0.9


def test_an_identity_weight_for_want_of_bits_is_a_warning_with_the_layer():
    model, spec = small_model("digits", gamma0=0.3)
    model.get_submodule("residual.conv").weight.data *= 300
    message = (
        r"^residual\.neuron: the weights of its identity path are up to \d+ % off$"
    )  # fmt: skip
    with pytest.warns(ExportWarning, match=message):
        integer_network(model, spec, weight_bits=2, most_different=1, fraction=16)


@pytest.mark.parametrize("mode", [nn.Module.train, nn.Module.eval])
def test_a_module_on_its_way_through_training_compares_in_evaluation(mode):
    model, spec = small_model("digits", gamma0=0.3)
    found = compared(mode(model), spec, integer_network(model, spec))
    assert max(found.layers.values()) < 0.25
