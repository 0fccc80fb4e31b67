"""Maps data to a network: values to its range, labels to the order of its classes.

If the full scale of the data is known, as for pictures, values are scaled to the network's full
scale. Otherwise values are taken as they are, and `range_notes` warns if they do not look right. If
both the data and the network name their classes, labels are mapped by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lbq_hw.datasets import meaning
from lbq_hw.datasets.base import Dataset
from lbq_hw.network import Network

MOST_SATURATED = 0.01
"""Share of pixels above full scale up to which there is no warning."""
LEAST_RANGE = 8
"""The largest value must be no less than full scale divided by this."""
_NAMED = 5  # classes that an error names


def fitted(network: Network, dataset: Dataset, place: str) -> Dataset:
    """A dataset with the network's range and class order, and with notes for the user.

    `place` names the dataset. ValueError if its classes are not those of the network.
    """
    images = dataset.images
    wanted = meaning.full_scale(network)
    if dataset.full_scale is not None and wanted is not None:
        images = scaled(images, of=dataset.full_scale, to=wanted)
    mine = meaning.class_names(network)
    labels = by_name(dataset.labels, dataset.class_names, mine, place)
    notes = (*range_notes(network, images), *_class_notes(dataset, mine, place))
    return replace(
        dataset,
        images=images,
        labels=labels,
        full_scale=wanted,
        class_names=mine or dataset.class_names,
        notes=dataset.notes + notes,
    )


def scaled(images: NDArray[np.uint8], *, of: int, to: int) -> NDArray[np.uint8]:
    """Values of 0 to `of` scaled to 0 to `to`, rounded half up."""
    if of == to:
        return images
    table = np.minimum((2 * np.arange(256) * to + of) // (2 * of), 255).astype(np.uint8)
    return table[images]


def by_name(
    labels: NDArray[np.int64], names: Sequence[str], wanted: Sequence[str], place: str
) -> NDArray[np.int64]:
    """Labels renumbered from the order of `names` to that of `wanted`; the same if one is empty."""
    if not names or not wanted or tuple(names) == tuple(wanted):
        return labels
    lacking = [name for name in wanted if name not in names]
    beside = [name for name in names if name not in wanted]
    if lacking and beside:
        raise ValueError(
            f"{place} has the classes {_listed(beside)}, where the model has {_listed(lacking)}: "
            "give data of the model's own classes, under the same names"
        )
    if lacking:
        raise ValueError(
            f"{place} lacks the model's classes {_listed(lacking)}: give data of all of them, a "
            "folder may be empty"
        )
    if beside:
        raise ValueError(
            f"{place} has the classes {_listed(beside)}, which the model does not know: leave them "
            "out"
        )
    return np.array([wanted.index(name) for name in names])[labels]


def range_notes(network: Network, images: NDArray[np.uint8]) -> tuple[str, ...]:
    """Warnings about the values of raw inputs."""
    if not network.input.static:
        return event_notes(images, largest=network.input.largest_raw, shift=network.input.shift)
    full_scale = meaning.full_scale(network)
    assert full_scale is not None
    return value_notes(images, full_scale=full_scale)


def value_notes(images: NDArray[np.uint8], *, full_scale: int) -> tuple[str, ...]:
    """Warnings about the values of images, the largest of which should be `full_scale`."""
    above, largest = float(np.mean(images > full_scale)), int(images.max())
    if above > MOST_SATURATED:
        return (
            f"{100 * above:.1f} % of the pixels are above {full_scale}, the network's full scale: "
            f"scale them to 0 to {full_scale}, or let an .npz file say its own full_scale",
        )
    if LEAST_RANGE * largest < full_scale:
        return (
            f"the largest pixel is {largest}, and the network's full scale is {full_scale}: scale "
            f"the pixels to 0 to {full_scale}, or let an .npz file say its own full_scale",
        )
    return ()


def event_notes(images: NDArray[np.uint8], *, largest: int, shift: int) -> tuple[str, ...]:
    """Warnings about the values of recordings, in which a pixel counts up to `largest`."""
    above = float(np.mean(images > largest))
    if above > MOST_SATURATED:
        return (
            f"{100 * above:.1f} % of the pixels count more than {largest} events, the most that "
            "the network tells apart: cut the recordings into more frames",
        )
    if int(images.max()) < 1 << shift:
        return (
            f"no pixel counts {1 << shift} events, the fewest that the network sees: cut the "
            "recordings into fewer frames",
        )
    return ()


def _class_notes(dataset: Dataset, mine: Sequence[str], place: str) -> tuple[str, ...]:
    """The assumption that was made if only the data or only the network names its classes."""
    named = dataset.class_names or tuple(mine)
    numbers = tuple(map(str, range(len(named))))
    if (dataset.class_names and mine) or named == numbers:
        return ()
    pairs = [f"{number} = {name!r}" for number, name in enumerate(named)][:_NAMED]
    order = ", ".join(pairs) + (", ..." if len(named) > _NAMED else "")
    if mine:
        return (
            f"the classes of {place} have no names and are taken in the model's order: {order}",
        )
    return (
        f"the model's classes have no names: those of {place} are taken in their order: {order}",
    )


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:_NAMED]))
    more = len(names) - _NAMED
    return f"{shown} and {more} more" if more > 0 else shown
