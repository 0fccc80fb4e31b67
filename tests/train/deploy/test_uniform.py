"""Quantized ANNs of uniform ReLUs: exact for every sum, but for ties, which are counted."""

import numpy as np
import pytest
import torch
from torch import nn

from lbq_hw import datasets, golden
from lbq_hw.train.data import InputSpec
from lbq_hw.train.deploy import agreement
from lbq_hw.train.deploy.uniform import exact_steps
from lbq_hw.train.export import integer_network
from lbq_hw.train.graph import GraphError
from lbq_hw.train.graph.trace import analyze, trace
from lbq_hw.train.neurons import UniformReLU
from lbq_hw.train.quantize import stand_in

SPEC = InputSpec(shape=(1, 8, 8), static=True, bits=5, full_scale=16.0)


def coded(layer: nn.Module, scale: float | list[float], seed: int) -> nn.Module:
    """A layer with random codes of four bits, worth `scale`."""
    generator = torch.Generator().manual_seed(seed)
    codes = torch.randint(-7, 8, layer.weight.shape, generator=generator)
    steps = torch.as_tensor(scale).reshape(-1, *[1] * (codes.dim() - 1))
    layer.weight.data = codes * steps
    made = stand_in(layer)
    made.deploy(source=None, absorb=False, bits=4, per_tensor=steps.numel() == 1)
    made.step.data.copy_(steps)
    return made


def network(first: float, second: float | list[float], step: float, **options) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        *(coded(nn.Conv2d(1, 6, 3, padding=1), first, 1), nn.BatchNorm2d(6, eps=1.0)),
        *(UniformReLU(step=step, capacity=15, **options), nn.MaxPool2d(2)),
        *(
            coded(nn.Conv2d(6, 8, 3, groups=2, padding=1), 0.013, 2),
            UniformReLU(step=0.31, capacity=7),
        ),
        *(nn.Flatten(), coded(nn.Linear(128, 10), second, 3)),
    ).eval()


def test_thresholds_are_passed_by_the_sums_that_pass_the_real_ones():
    generator = np.random.default_rng(0)
    step, constant = 10 ** generator.uniform(-0.5, 2, 200), generator.normal(0, 40, 200)
    fraction, theta, bias = exact_steps(step, constant, 15)
    assert fraction < 14
    sums = np.arange(-2000, 2001)[:, None, None]
    levels = np.arange(1, 16)[:, None]
    real = (sums + constant >= levels * step).sum(axis=1)
    made = ((sums << fraction) + bias >= levels * theta).sum(axis=1)
    assert np.array_equal(np.clip(np.floor((sums[:, 0] + constant) / step), 0, 15), real)
    assert np.array_equal(real, made)


@pytest.mark.parametrize("options", [{}, {"offset": 0.0}])
def test_levels_and_logits_of_1000_images_are_equal(options):
    model, raw = (
        network(0.037, 0.021, 0.27, **options),
        datasets.load("digits", split="train").images[:1000],
    )
    made = integer_network(model, SPEC, samples=raw[:64])
    found = agreement.compare(analyze(trace(model), SPEC), trace(model), SPEC, made, raw)
    assert len(raw) == 1000
    assert found.largest == found.classes == 0
    result = golden.run(made, raw)
    with torch.no_grad():
        logits = model(SPEC.normalize(torch.from_numpy(raw)))
    unit = made.layers[-1].scale[0] * 2.0 ** -made.layers[-1].fraction_bits
    off = np.abs(golden.outputs(made, result.logits)[..., 0, 0] - logits.numpy())
    assert off.max() < 0.51 * unit  # what rounding the bias takes, and float32


def test_levels_differ_at_ties_and_nowhere_else():
    model = network(1 / 16, 0.021, 0.5)
    model[0].bias.data.zero_()
    model[1].running_var.fill_(3.0)  # of which the gain is a half
    raw = datasets.load("digits", split="train").images[:200]
    made = integer_network(model, SPEC, samples=raw)
    with torch.no_grad():
        current = model[1](model[0](SPEC.normalize(torch.from_numpy(raw))))
        levels = (model[2](current) / 0.5).numpy()
    theirs = golden.run(made, raw, keep="levels").traces["2"].levels[0]
    assert int((theirs != levels).sum()) == model[2].ties(current) > 50


def test_scales_that_do_not_suit_are_refused():
    with pytest.raises(GraphError) as error:
        integer_network(network(0.037, [0.01 + 0.001 * k for k in range(10)], 0.27), SPEC)
    assert str(error.value) == (
        "the model has no integer form (1 violation):\n  logits: adds weights that were "
        "quantized with different scales; use one scale for all added paths, and for all "
        "outputs of the last layer"
    )
