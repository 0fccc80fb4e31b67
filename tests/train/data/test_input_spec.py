"""What a network sees of raw pixels, and specs that are refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from lbq_hw.train.data import InputSpec


def test_full_scale_defaults_to_the_largest_level():
    assert InputSpec(shape=(3, 32, 32), static=True, bits=4).full_scale == 15.0
    assert InputSpec(shape=(1, 8, 8), static=True, bits=5, full_scale=16).full_scale == 16.0


@pytest.mark.parametrize(
    ("options", "white"),
    [
        ({"bits": 8}, 255),
        ({"bits": 5, "full_scale": 16}, 16),
        ({"bits": 4, "shift": 4}, 255),
        ({"bits": 3, "shift": 1}, 15),
        ({"bits": 8, "full_scale": 100.5}, 100),
        ({"bits": 8, "full_scale": 1}, 255),
        ({"bits": 4, "shift": 1, "full_scale": 8, "raw_full_scale": 16}, 16),
    ],
)
def test_white_is_the_raw_value_that_becomes_one(options, white):
    assert InputSpec(shape=(1, 8, 8), static=True, **options).white == white


def test_lists_as_a_config_file_gives_them_become_tuples():
    spec = InputSpec(shape=[1, 8, 8], static=True, bits=8, mean=[0.5], std=[0.25])  # type: ignore
    assert (spec.shape, spec.mean, spec.std) == ((1, 8, 8), (0.5,), (0.25,))


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"shape": (1, 0, 4)}, ValueError, "shape must be three positive integers, not (1, 0, 4)"),
        ({"static": 1}, TypeError, "static must be a bool, not 1"),
        ({"bits": 9}, ValueError, "bits must be 1 to 8, not 9"),
        ({"bits": 8.0}, TypeError, "bits must be an integer, not 8.0"),
        ({"shift": -1}, ValueError, "shift must be 0 to 7, not -1"),
        ({"full_scale": -1.0}, ValueError, "full_scale must be positive, not -1.0"),
        (
            {"bits": 4, "full_scale": 16},
            ValueError,
            "full_scale must be at most 15, the largest of 4 bits, not 16: give more bits, or "
            "shift",
        ),
        (
            {"bits": 4, "raw_full_scale": 16},
            ValueError,
            "raw_full_scale must be an integer of 1 to 15, which 4 bits and a shift of 0 keep, not "
            "16",
        ),
        (
            {"mean": (0.5,)},
            ValueError,
            "mean and std must be given together, not (0.5,) and ()",
        ),
        (
            {"mean": (0.5, 0.5), "std": (1.0, 1.0)},
            ValueError,
            "mean must have 1 values, not (0.5, 0.5)",
        ),
        ({"mean": (0.5,), "std": (0.0,)}, ValueError, "std must be positive, not (0.0,)"),
    ],
)
def test_wrong_specs_are_named(options, error, text):
    with pytest.raises(error) as caught:
        InputSpec(**{"shape": (1, 4, 4), "static": True, "bits": 8, **options})
    assert str(caught.value) == text


@pytest.mark.parametrize(("bits", "shift"), [(8, 0), (4, 4), (5, 0), (3, 1), (8, 2)])
def test_normalize_shifts_saturates_and_scales(bits, shift):
    spec = InputSpec(shape=(1, 16, 16), static=True, bits=bits, shift=shift, full_scale=5.0)
    raw = torch.arange(256, dtype=torch.uint8).view(1, 1, 16, 16)
    expected = np.minimum(np.arange(256) >> shift, 2**bits - 1).astype(np.float32) / np.float32(5)
    found = spec.normalize(raw)
    assert found.dtype == torch.float32
    assert np.array_equal(found.flatten().numpy(), expected)


def test_mean_and_std_are_per_channel_in_units_of_x():
    spec = InputSpec(shape=(2, 1, 1), static=False, bits=8, mean=(0.5, 0.0), std=(0.5, 2.0))
    raw = torch.tensor([0, 255, 255, 0], dtype=torch.uint8).view(1, 2, 2, 1, 1)
    assert spec.normalize(raw).flatten().tolist() == [-1.0, 0.5, 1.0, 0.0]
