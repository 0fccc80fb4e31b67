"""The dataset that a network takes."""

from __future__ import annotations

from lbq_hw import datasets
from lbq_hw.datasets import Dataset
from lbq_hw.network import Network


def load_dataset(
    network: Network, name: str | None, root: str | None, limit: int | None = None
) -> Dataset:
    """The test split in the form the network takes; the network's own dataset if none is named."""
    name = name or network.meta.get("dataset")
    if name is None:
        known = ", ".join(datasets.names())
        raise ValueError(f"the model does not say what it was trained on: give --dataset ({known})")
    info = datasets.info(name)
    form = "images" if network.input.static else "recordings"
    if info.temporal == network.input.static:
        raise ValueError(f"the model takes {form}, which the dataset {name!r} does not have")
    channels, height, width = shape = network.input.shape
    blocks = info.temporal and height == width and info.shape[1] % height == 0
    if shape != info.shape and not (blocks and channels == info.shape[0]):
        raise ValueError(
            f"the model takes {form} of shape {shape}, those of the dataset {name!r} are "
            f"{info.shape}"
        )
    if info.classes != network.classes:
        raise ValueError(
            f"the model knows {network.classes} classes, the dataset {name!r} has {info.classes}"
        )
    if info.temporal:
        dataset = datasets.load(name, root, split="test", timesteps=network.timesteps, size=height)
    else:
        dataset = datasets.load(name, root, split="test")
    return Dataset(
        name=dataset.name,
        images=dataset.images[:limit],
        labels=dataset.labels[:limit],
        classes=dataset.classes,
    )
