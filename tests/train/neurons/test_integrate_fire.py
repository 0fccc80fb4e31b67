"""The neuron of other frameworks, by hand, and as an integer neuron."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from lbq_hw import golden
from lbq_hw.train.data import InputSpec
from lbq_hw.train.export import integer_network
from lbq_hw.train.layers import MergeTime, TimeMean
from lbq_hw.train.neurons import IntegrateFire


def spikes(current: list[float], **options) -> list[int]:
    neuron = IntegrateFire(timesteps=len(current), **options)
    return neuron(torch.tensor(current).reshape(-1, 1)).int().flatten().tolist()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [1, 1, 1, 0, 1]),
        ({"strict": True}, [0, 1, 1, 0, 1]),
        ({"to_zero": True}, [1, 1, 0, 0, 1]),
        ({"to_zero": True, "strict": True}, [0, 1, 0, 0, 0]),
        ({"alpha": 0.0}, [1, 1, 1, 1, 1]),
        ({"threshold": [2.0]}, [0, 1, 0, 0, 1]),
        ({"beta": 0.5}, [1, 1, 0, 0, 1]),
        ({"beta": 0.5, "late": True}, [1, 1, 0, 0, 0]),
    ],
)
def test_resets_and_thresholds_by_hand(options: dict, expected: list[int]) -> None:
    assert spikes([1.0, 2.0, 0.0, 0.0, 1.0], **options) == expected


@pytest.mark.parametrize(
    ("floor", "expected"), [(None, [0, 0, 0, 1]), (-1.0, [0, 1, 0, 1]), ([-1.5], [0, 0, 0, 1])]
)
def test_a_floor_by_hand(floor: float | list[float] | None, expected: list[int]) -> None:
    assert spikes([-5.0, 2.0, -0.5, 8.0], floor=floor) == expected


def test_a_late_reset_is_a_larger_one_before_the_leak() -> None:
    current = torch.randn(30, 40, dtype=torch.float64) + 0.4
    late = IntegrateFire(timesteps=30, beta=0.75, late=True)(current)
    assert torch.equal(late, IntegrateFire(timesteps=30, beta=0.75, alpha=1 / 0.75)(current))
    assert not torch.equal(late, IntegrateFire(timesteps=30, beta=0.75)(current))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"threshold": 0.0}, "threshold must be a number above 0, or one per channel, not 0.0"),
        (
            {"late": True, "to_zero": True},
            "late must be False with to_zero, an alpha, a beta of 0 or a floor",
        ),
        ({"floor": 0.5}, "floor must be a number of at most 0, or one per channel, not 0.5"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict, text: str) -> None:
    with pytest.raises(ValueError, match=f"^{text}$"):
        IntegrateFire(timesteps=2, **options)


@pytest.mark.parametrize("floor", [None, -0.375, [-0.25, -0.5, 0.0, -1.0, -9.0]])
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("to_zero", [False, True])
def test_weights_that_are_codes_stay_exact_with_sums_at_the_threshold(
    strict: bool, to_zero: bool, floor: float | list[float] | None
) -> None:
    """Weights of eighths and a threshold of 1: membranes meet it all the time."""
    neuron = IntegrateFire(timesteps=8, strict=strict, to_zero=to_zero, floor=floor)
    linear = nn.Linear(16, 5, bias=False)
    with torch.no_grad():
        linear.weight.copy_(torch.randint(-3, 6, (5, 16)) / 8)
    model = nn.Sequential(MergeTime(), nn.Flatten(), linear, neuron, TimeMean(8))
    spec = InputSpec(shape=(1, 4, 4), static=False, bits=1)
    raw = torch.randint(0, 2, (50, 8, 1, 4, 4), dtype=torch.uint8).numpy()
    network = integer_network(model, spec, samples=raw, most_different=0.0)
    levels = golden.run(network, raw, keep="levels").traces["3"].levels
    assert levels is not None
    x = torch.from_numpy(raw).float().transpose(0, 1).flatten(0, 1)
    with torch.no_grad():
        current = linear(x.flatten(1))
        expected = neuron(current)
    assert (current == 1).any()
    np.testing.assert_array_equal(levels.reshape(expected.shape), expected.numpy())
    counts = golden.run(network, raw).logits
    np.testing.assert_array_equal(counts, levels.sum(axis=0).reshape(counts.shape))


def test_a_pool_may_sum() -> None:
    """A sum of four spikes counts four times what their mean does."""
    means, sums = (
        nn.Sequential(
            *(MergeTime(), nn.Conv2d(1, 2, 1), IntegrateFire(timesteps=3, threshold=0.3)),
            *(nn.AvgPool2d(2, divisor_override=divisor), nn.Flatten(), nn.Linear(8, 3)),
            TimeMean(3),
        )
        for divisor in (None, 1)
    )
    sums.load_state_dict(means.state_dict())
    with torch.no_grad():
        sums[5].weight.div_(4)
    spec = InputSpec(shape=(1, 4, 4), static=False, bits=1)
    first, second = (integer_network(model, spec) for model in (means, sums))
    for mine, other in zip(first.layers, second.layers, strict=True):
        np.testing.assert_array_equal(mine.paths[0].weight, other.paths[0].weight)
        assert mine.paths[0].pool == other.paths[0].pool
