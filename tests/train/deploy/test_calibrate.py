"""Scales that are chosen on inputs: fewer levels differ, and never more on those inputs."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from foreign import SPEC, TIMESTEPS, digits, leaky, trained
from numpy.typing import NDArray
from small_models import raw_images, small_model
from torch import fx, nn

from lbq_hw import file
from lbq_hw.network import Network
from lbq_hw.train.data import InputSpec
from lbq_hw.train.deploy import agreement
from lbq_hw.train.deploy.calibrate import FACTORS
from lbq_hw.train.deploy.rounding import quantize, rescaled
from lbq_hw.train.export import integer_network
from lbq_hw.train.frameworks import adopt
from lbq_hw.train.graph import READOUT
from lbq_hw.train.graph.trace import analyze, trace
from lbq_hw.train.preparation import prepare


def compared(
    root: fx.GraphModule, spec: InputSpec, network: Network, raw: NDArray[np.uint8]
) -> agreement.Agreement:
    return agreement.compare(analyze(root, spec), root, spec, network, raw)


@pytest.mark.parametrize("bits", [3, 4])
@pytest.mark.parametrize("kind", ["snntorch subtract", "spikingjelly hard"])
def test_fewer_spikes_of_every_layer_differ_on_inputs_that_were_not_seen(
    kind: str, bits: int
) -> None:
    root = adopt(trained(kind), timesteps=TIMESTEPS, static=True)
    seen, unseen = digits("train").images[:256], digits("test").images
    without, with_ = (
        compared(
            root,
            SPEC,
            integer_network(
                root, SPEC, weight_bits=bits, calibration=calibration, most_different=1
            ),
            unseen,
        )
        for calibration in (None, seen)
    )
    assert list(with_.layers) == list(without.layers)
    for name in list(with_.layers)[:-1]:
        assert with_.layers[name] < without.layers[name]
    assert with_.layers[READOUT] == without.layers[READOUT] == 0.0  # it counts spikes


def floats() -> tuple[fx.GraphModule, InputSpec, NDArray[np.uint8]]:
    """A model with identities and float weights, down to its readout, and inputs for it."""
    torch.manual_seed(0)
    model, spec = small_model("digits", gamma0=0.3)
    return trace(model.double()), spec, raw_images(spec, 40).numpy()


def test_on_its_inputs_no_layer_differs_more_than_with_its_scale_of_before() -> None:
    root, spec, raw = floats()
    before = integer_network(root, spec, weight_bits=3, most_different=1)
    after = integer_network(root, spec, weight_bits=3, most_different=1, calibration=raw)
    shares = compared(root, spec, after, raw).layers
    better = []
    for number, layer in enumerate(before.layers):
        layers = list(after.layers)
        layers[number] = layer
        changed = compared(root, spec, dataclasses.replace(after, layers=tuple(layers)), raw)
        assert shares[layer.name] <= changed.layers[layer.name]
        better.append(shares[layer.name] < changed.layers[layer.name])
    assert all(better[:-1])


def test_scales_are_those_of_before_times_a_factor_and_all_else_follows() -> None:
    root, spec, raw = floats()
    before = integer_network(root, spec, weight_bits=4, most_different=1)
    after = integer_network(root, spec, weight_bits=4, most_different=1, calibration=raw)
    used = set()
    for old, new in zip(before.layers, after.layers, strict=True):
        assert old.scale is not None
        assert new.scale is not None
        assert new.fraction_bits == old.fraction_bits
        assert [path.exponent for path in new.paths] == [path.exponent for path in old.paths]
        tried = np.outer(old.scale, FACTORS)
        channels, factors = np.nonzero(tried == new.scale[:, None])
        assert channels.tolist() == list(range(len(new.scale)))
        used |= set(factors)
    assert len(used) > 5
    readout = after.layers[-1].scale
    assert readout is not None
    assert len(set(readout)) == 1


def test_the_scale_of_before_is_tried_first_and_changes_nothing() -> None:
    root, spec, _ = floats()
    assert FACTORS[0] == 1.0
    assert sorted(FACTORS) == [n / 20 for n in range(10, 31)]
    for population in analyze(root, spec).populations:
        old = quantize(population, spec, 4)
        same = rescaled(population, spec, 4, old, 1.0)
        np.testing.assert_array_equal(same.scale, old.scale)
        assert (same.error, same.identity_error) == (old.error, old.identity_error)
        for mine, theirs in zip(same.paths, old.paths, strict=True):
            np.testing.assert_array_equal(mine.weight, theirs.weight)
            assert mine.exponent == theirs.exponent


@pytest.mark.filterwarnings("ignore::lbq_hw.train.export.ExportWarning")
def test_codes_that_were_trained_stay_though_levels_differ_for_want_of_fraction_bits() -> None:
    plain, spec = small_model("mnist", gamma0=0.3)
    model = prepare(plain, spec, weight_bits=4).double()
    assert_codes_stay(model, spec, raw_images(spec, 8).numpy(), fraction=0)


@pytest.mark.filterwarnings("ignore:2. its beta of 0.9 :lbq_hw.train.export.ExportWarning")
def test_weights_that_are_codes_as_they_are_stay_though_spikes_differ_by_a_rounded_leak() -> None:
    torch.manual_seed(0)
    linear = nn.Linear(64, 10, bias=False)
    linear.weight.data = torch.randint(-7, 8, (10, 64)) / 8
    net = nn.Sequential(nn.Flatten(), linear, leaky("subtract"))
    model = adopt(net, timesteps=TIMESTEPS, static=True)
    assert_codes_stay(model, SPEC, digits("train").images[:64], decay_bits=2)


def assert_codes_stay(
    model: nn.Module, spec: InputSpec, raw: NDArray[np.uint8], **options: int
) -> None:
    root = model if isinstance(model, fx.GraphModule) else trace(model)
    without, with_ = (
        integer_network(
            root, spec, weight_bits=4, most_different=1, calibration=calibration, **options
        )
        for calibration in (None, raw)
    )
    assert max(compared(root, spec, without, raw).layers.values()) > 0
    assert file.digest(with_) == file.digest(without)
