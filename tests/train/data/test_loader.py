"""The input spec, and a loader whose batches and order are exact."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
import torch
from torch import Tensor

from lbq_hw.datasets import Dataset
from train.data import DeviceLoader, InputSpec, hold_out, mean_levels
from train.data.augment import AugmentConfig, Pipeline

SPEC = InputSpec(shape=(1, 4, 4), static=True, bits=8)


def numbered(count: int, *, temporal: bool = False) -> Dataset:
    """Images that hold their own number as every pixel; frame t of a recording adds t."""
    images = np.broadcast_to(
        np.arange(count, dtype=np.uint8)[:, None, None, None], (count, 1, 4, 4)
    )
    if temporal:
        frames = [images + np.uint8(100 * t) for t in range(2)]
        images = np.stack(frames, 1)
    return Dataset(name="numbered", images=images.copy(), labels=np.arange(count) % 10, classes=10)


def numbers(x: Tensor) -> list[int]:
    """The numbers of a batch of numbered images."""
    return (x[:, 0, 0, 0] * 255).round().int().tolist()


def all_numbers(loader: DeviceLoader) -> list[int]:
    return [number for x, _ in loader for number in numbers(x)]


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


# InputSpec


def test_full_scale_defaults_to_the_largest_level():
    assert InputSpec(shape=(3, 32, 32), static=True, bits=4).full_scale == 15.0
    assert InputSpec(shape=(1, 8, 8), static=True, bits=5, full_scale=16).full_scale == 16.0


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
    spec = InputSpec(shape=(1, 16, 16), static=True, bits=bits, shift=shift, full_scale=10.0)
    raw = torch.arange(256, dtype=torch.uint8).view(1, 1, 16, 16)
    expected = np.minimum(np.arange(256) >> shift, 2**bits - 1).astype(np.float32) / np.float32(10)
    found = spec.normalize(raw)
    assert found.dtype == torch.float32
    assert np.array_equal(found.flatten().numpy(), expected)


def test_mean_and_std_are_per_channel_in_units_of_x():
    spec = InputSpec(shape=(2, 1, 1), static=False, bits=8, mean=(0.5, 0.0), std=(0.5, 2.0))
    raw = torch.tensor([0, 255, 255, 0], dtype=torch.uint8).view(1, 2, 2, 1, 1)
    assert spec.normalize(raw).flatten().tolist() == [-1.0, 0.5, 1.0, 0.0]


# DeviceLoader


def test_evaluation_keeps_the_order_and_the_last_images():
    loader = DeviceLoader(numbered(10), SPEC, batch=4)
    batches = list(loader)
    assert len(loader) == len(batches) == 3
    assert [numbers(x) for x, _ in batches] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert torch.cat([y for _, y in batches]).tolist() == list(range(10))
    assert batches[0][0].dtype == torch.float32


def test_recordings_come_out_time_first():
    spec = InputSpec(shape=(1, 4, 4), static=False, bits=8)
    ((x, _),) = DeviceLoader(numbered(3, temporal=True), spec, batch=3)
    assert x.shape == (2, 3, 1, 4, 4)
    assert x.is_contiguous()
    assert [numbers(frame) for frame in x] == [[0, 1, 2], [100, 101, 102]]


def test_shuffled_epochs_differ_and_are_repeatable():
    def epochs() -> list[list[int]]:
        loader = DeviceLoader(
            numbered(20), SPEC, batch=8, shuffle=True, drop_last=True, generator=generator(3)
        )
        assert len(loader) == 2
        return [all_numbers(loader) for _ in range(3)]

    first = epochs()
    assert first == epochs()
    assert first[0] != first[1]
    assert all(len(set(epoch)) == 16 for epoch in first)


def test_leaving_an_epoch_early_starts_the_next_one_afresh():
    loader = DeviceLoader(numbered(10), SPEC, batch=4)
    next(iter(loader))
    assert all_numbers(loader) == list(range(10))


@pytest.mark.parametrize("world", [2, 4])
def test_processes_share_each_batch_as_one_process_would_see_it(world):
    config = AugmentConfig(rotate=20, crop=1, flip=True, cutout=2, mixup=0.5, cutmix=1.0)

    def loader(rank: int, world: int) -> DeviceLoader:
        return DeviceLoader(
            numbered(20),
            SPEC,
            batch=8,
            shuffle=True,
            drop_last=True,
            augment=Pipeline(config, SPEC, classes=10),
            generator=generator(1),
            rank=rank,
            world=world,
        )

    alone = list(loader(0, 1))
    shares = [list(loader(rank, world)) for rank in range(world)]
    for step, (x, y) in enumerate(alone):
        assert torch.equal(torch.cat([share[step][0] for share in shares]), x)
        assert torch.equal(torch.cat([share[step][1] for share in shares]), y)


def test_processes_share_the_last_images_of_an_evaluation():
    shares = [DeviceLoader(numbered(9), SPEC, batch=4, rank=rank, world=4) for rank in range(4)]
    assert sorted(n for share in shares for n in all_numbers(share)) == list(range(9))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"batch": 0}, "batch must be a positive multiple of 1, not 0"),
        ({"batch": 3, "world": 2}, "batch must be a positive multiple of 2, not 3"),
        ({"batch": 4, "world": 2, "rank": 2}, "rank must be 0 to 1, not 2"),
        ({"batch": 4, "shuffle": True}, "generator must be given to shuffle or augment, not None"),
        ({"batch": 16, "drop_last": True}, "batch must be at most 10 with drop_last, not 16"),
        (
            {"batch": 4, "shuffle": True, "world": 2, "generator": generator()},
            "drop_last must be True when several processes train, not False",
        ),
    ],
)
def test_wrong_loaders_are_named(options, text):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        DeviceLoader(numbered(10), SPEC, **options)
    assert str(caught.value) == text


def test_a_share_that_divides_mixed_pairs_is_refused():
    def loader(**augment) -> DeviceLoader:
        return DeviceLoader(
            numbered(10),
            SPEC,
            batch=6,
            shuffle=True,
            drop_last=True,
            augment=Pipeline(AugmentConfig(**augment), SPEC, classes=10),
            generator=generator(),
            world=2,
        )

    assert len(loader(flip=True)) == 1
    for name in ("mixup", "cutmix"):
        with pytest.raises(ValueError) as caught:  # noqa: PT011
            loader(**{name: 0.5})
        assert str(caught.value) == "batch must be a multiple of 4 to mix pairs, not 6"


def test_dataset_of_another_shape_is_named():
    spec = InputSpec(shape=(1, 8, 8), static=True, bits=5)
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        DeviceLoader(numbered(10), spec, batch=2)
    assert str(caught.value) == (
        "dataset must have static images of shape (1, 8, 8), not 'numbered' of shape (1, 4, 4)"
    )


def test_mean_levels_are_rounded_means_of_channels():
    images = np.array([[0, 10, 250], [1, 11, 255]], dtype=np.uint8)[:, :, None, None]
    whole = Dataset(name="two", images=images, labels=np.arange(2), classes=2)
    assert mean_levels(whole) == (1, 11, 253)  # of 0.5, 10.5 and 252.5
    frames = np.stack([images, images // 2], 1)
    recordings = Dataset(name="two", images=frames, labels=np.arange(2), classes=2)
    assert mean_levels(recordings) == (0, 8, 189)  # of 0.25, 7.75 and 189.25


# Images that are held out


def labelled(labels: np.ndarray, classes: int) -> Dataset:
    """One pixel an image: the place of the image in the split, modulo 251."""
    images = (np.arange(len(labels)) % 251).astype(np.uint8)[:, None, None, None]
    return Dataset(name="labelled", images=images, labels=labels, classes=classes)


def test_held_out_images_are_the_same_wherever_they_are_chosen():
    labels = np.arange(50_000) * 7 % 100
    kept, held = hold_out(labelled(labels, 100), 5000)
    assert np.bincount(held.labels).tolist() == [50] * 100
    assert np.bincount(kept.labels).tolist() == [450] * 100
    both = held.images.tobytes() + held.labels.astype("<i8").tobytes()
    assert hashlib.sha256(both).hexdigest() == (
        "63d1e9870d9774b64121224194ee13fb975fc6d8db6e57ee3f534d17f31d0711"
    )


def test_of_each_class_the_images_with_the_least_digests_are_held_out():
    labels = np.array([0, 1, 1, 0, 0, 1, 0, 1, 1])
    digests = [hashlib.sha256(str(place).encode()).hexdigest() for place in range(9)]
    chosen: list[int] = []
    for kind in (0, 1):
        places = [place for place in range(9) if labels[place] == kind]
        chosen += sorted(places, key=lambda place: digests[place])[:2]
    kept, held = hold_out(labelled(labels, 2), 4)
    assert held.images.ravel().tolist() == sorted(chosen)
    assert kept.images.ravel().tolist() == [n for n in range(9) if n not in chosen]
    assert held.labels.tolist() == labels[sorted(chosen)].tolist()


def test_a_longer_list_of_held_out_images_holds_a_shorter_one():
    whole = labelled(np.arange(240) % 10, 10)
    short, long = (set(hold_out(whole, count)[1].images.ravel()) for count in (50, 100))
    assert (len(short), len(long)) == (50, 100)
    assert short < long


@pytest.mark.parametrize("count", [5, 15, 90, -10])
def test_held_out_images_that_are_not_balanced_or_leave_a_class_empty_are_refused(count):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        hold_out(labelled(np.arange(90) % 10, 10), count)
    assert str(caught.value) == (
        "data.validation must be a multiple of the 10 classes and leave images of each, of which "
        f"the smallest has 9, not {count}"
    )
