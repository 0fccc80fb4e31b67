"""A training split as a whole: the images held out of it, and the mean of its pixels."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np

from lbq_hw.datasets import Dataset


def hold_out(dataset: Dataset, count: int) -> tuple[Dataset, Dataset]:
    """A training split without ``count`` images, and these images, as many of each class.

    Held out are, of each class, the images whose places in the split, as decimal ASCII digits, have
    the least SHA-256. So the choice depends on the labels alone, and a longer list of images holds
    every shorter one. Both parts keep the order of the split.
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
    kept, out = (
        replace(dataset, images=dataset.images[chosen], labels=dataset.labels[chosen])
        for chosen in (~held, held)
    )
    return kept, out


def mean_levels(dataset: Dataset) -> tuple[int, ...]:
    """The mean of all pixels of each channel, rounded to a level, halves up."""
    images = dataset.images.reshape(-1, *dataset.images.shape[-3:])
    totals = images.sum((0, 2, 3), dtype=np.int64)
    count = images.size // len(totals)
    return tuple(int(total) for total in (2 * totals + count) // (2 * count))
