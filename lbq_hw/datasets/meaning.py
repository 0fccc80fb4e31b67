"""What the numbers of a network mean: which raw value is full scale, what classes are called.

A file says it itself, from version 4 of the format on. An older one says which dataset it was
trained on, and for an official dataset that is as good.
"""

from __future__ import annotations

from collections.abc import Sequence

from lbq_hw import datasets
from lbq_hw.datasets.base import DatasetInfo
from lbq_hw.network import Network


def full_scale(network: Network) -> int | None:
    """The raw value that means full scale; None for recordings, whose pixels count events.

    Where neither the file nor its dataset says it: the largest value that is not saturated.
    """
    if not network.input.static:
        return None
    if network.input.full_scale is not None:
        return network.input.full_scale
    known = _trained_on(network)
    largest = network.input.largest_raw
    return largest if known is None else min(known.max_value, largest)


def class_names(network: Network) -> tuple[str, ...]:
    """The names of the classes in the order of the logits; empty where nobody has named them."""
    if network.class_names:
        return network.class_names
    known = _trained_on(network)
    return () if known is None or known.classes != network.classes else known.class_names


def named(classes: Sequence[int], names: Sequence[str]) -> str:
    """Classes in one line, by name where they have names."""
    return " ".join(names[number] if names else str(number) for number in classes)


def _trained_on(network: Network) -> DatasetInfo | None:
    """The official dataset that the network's meta names, if it names one."""
    name = network.meta.get("dataset")
    if name is None or name not in datasets.names() or datasets.is_own(name):
        return None
    return datasets.info(name)
