"""Scales the values of a dataset to the range on which a network is trained."""

from __future__ import annotations

from dataclasses import replace

from lbq_hw.datasets import Dataset, mapping
from lbq_hw.train.data.input_spec import InputSpec


def in_range(dataset: Dataset, spec: InputSpec) -> Dataset:
    """The dataset scaled to the full scale of ``spec``, if the dataset has its own; with notes if
    values do not look right.
    """
    images = dataset.images
    if not spec.static:
        notes = mapping.event_notes(images, largest=spec.largest_raw, shift=spec.shift)
        return replace(dataset, notes=dataset.notes + notes)
    if dataset.full_scale is not None:
        images = mapping.scaled(images, of=dataset.full_scale, to=spec.white)
    notes = mapping.value_notes(images, full_scale=spec.white)
    return replace(dataset, images=images, full_scale=spec.white, notes=dataset.notes + notes)
