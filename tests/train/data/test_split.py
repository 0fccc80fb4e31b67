"""Held-out images are the same in every run; the mean of a training split is exact."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from lbq_hw.datasets import Dataset
from lbq_hw.train.data import hold_out, mean_levels


def test_mean_levels_are_rounded_means_of_channels():
    images = np.array([[0, 10, 250], [1, 11, 255]], dtype=np.uint8)[:, :, None, None]
    whole = Dataset(name="two", images=images, labels=np.arange(2), classes=2)
    assert mean_levels(whole) == (1, 11, 253)  # of 0.5, 10.5 and 252.5
    frames = np.stack([images, images // 2], 1)
    recordings = Dataset(name="two", images=frames, labels=np.arange(2), classes=2)
    assert mean_levels(recordings) == (0, 8, 189)  # of 0.25, 7.75 and 189.25


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
