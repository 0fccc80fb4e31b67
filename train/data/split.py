"""Facts of a whole training split: the images held out of it, and the mean of its pixels."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lbq_hw.datasets import Dataset
from lbq_hw.datasets.base import VALIDATION

NAMED = 10  # the most classes that a note names


def held_out(dataset: Dataset, count: int) -> NDArray[np.int64]:
    """The indices of ``count`` images of a training split to hold out, in ascending order, equally
    many of each class.

    An image's rank is the SHA-256 of its index as decimal ASCII digits; the images of lowest rank
    in each class are held out. So the choice depends only on the labels, and a longer list contains
    every shorter one.
    """
    share, rest = divmod(count, dataset.classes)
    least = int(np.bincount(dataset.labels, minlength=dataset.classes).min())
    if rest or not 0 < share < least:
        raise ValueError(
            f"data.validation must be a multiple of the {dataset.classes} classes and leave images "
            f"of each, of which the smallest has {least}, not {count}"
        )
    places = sorted(range(len(dataset)), key=lambda place: hashlib.sha256(b"%d" % place).digest())
    order, held = np.array(places), np.zeros(len(dataset), dtype=bool)
    for kind in range(dataset.classes):
        held[order[dataset.labels[order] == kind][:share]] = True
    return np.flatnonzero(held)


def hold_out(dataset: Dataset, count: int) -> tuple[Dataset, Dataset]:
    """A training split without the ``count`` held-out images, and these images. Both parts keep the
    order of the split.
    """
    held = held_out(dataset, count)
    kept = np.setdiff1d(np.arange(len(dataset)), held)
    return (
        replace(dataset.at(kept), split="train"),
        replace(dataset.at(held), split=VALIDATION),
    )


def unseen(dataset: Dataset) -> str | None:
    """A note that names the classes without an image in a training split; None without any."""
    counts = np.bincount(dataset.labels, minlength=dataset.classes)
    names = dataset.class_names or [str(kind) for kind in range(dataset.classes)]
    missing = [names[kind] for kind in np.flatnonzero(counts == 0)]
    if not missing:
        return None
    these = f"class {missing[0]!r}" if len(missing) == 1 else f"{len(missing)} classes"
    named = f": {', '.join(map(repr, missing[:NAMED]))}" if len(missing) > 1 else ""
    more = ", ..." if len(missing) > NAMED else ""
    return f"the training images have none of {these}{named}{more}"


def mean_levels(dataset: Dataset) -> tuple[int, ...]:
    """The mean of all pixels of each channel, rounded to the nearest level, halves up."""
    images = dataset.images.reshape(-1, *dataset.images.shape[-3:])
    totals = images.sum((0, 2, 3), dtype=np.int64)
    count = images.size // len(totals)
    return tuple(int(total) for total in (2 * totals + count) // (2 * count))
