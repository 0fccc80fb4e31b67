"""A loader whose batches and order are exact."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from lbq_hw.datasets import Dataset
from lbq_hw.train.data import DeviceLoader, InputSpec
from lbq_hw.train.data.augment import AugmentConfig, Pipeline

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
