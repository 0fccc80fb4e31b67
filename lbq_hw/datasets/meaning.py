"""The meaning of a network's numbers: the raw value of full scale, and the class names.

Files from version 4 of the format on contain both. An older file only names the dataset that the
network was trained on, which is enough for an official dataset.
"""

from __future__ import annotations

from collections.abc import Sequence

from lbq_hw import datasets
from lbq_hw.datasets.base import DatasetInfo
from lbq_hw.network import Network


def full_scale(network: Network) -> int | None:
    """The raw value of full scale; None for recordings, whose pixels count events.

    If neither the file nor its dataset defines it, it is the largest value that is not saturated.
    """
    if not network.input.static:
        return None
    if network.input.full_scale is not None:
        return network.input.full_scale
    known = _trained_on(network)
    largest = network.input.largest_raw
    return largest if known is None else min(known.max_value, largest)


def class_names(network: Network) -> tuple[str, ...]:
    """The names of the classes in the order of the logits; empty if they have no names."""
    if network.class_names:
        return network.class_names
    known = _trained_on(network)
    return () if known is None or known.classes != network.classes else known.class_names


def named(classes: Sequence[int], names: Sequence[str]) -> str:
    """Classes in one line, by name if they have names."""
    return " ".join(names[number] if names else str(number) for number in classes)


def _trained_on(network: Network) -> DatasetInfo | None:
    """The official dataset that the network's meta names, if it names one."""
    name = network.meta.get("dataset")
    if name is None or name not in datasets.names() or datasets.is_own(name):
        return None
    return datasets.info(name)
