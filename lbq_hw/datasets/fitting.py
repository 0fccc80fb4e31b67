"""What a network is run on: a dataset, raw inputs, pictures, or noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lbq_hw import datasets
from lbq_hw.datasets import Dataset, own
from lbq_hw.network import Network


@dataclass(frozen=True, kw_only=True, eq=False)
class Samples:
    """Raw inputs in the form a network takes; `labels` is None where nothing says what they are."""

    name: str
    images: NDArray[np.uint8]
    labels: NDArray[np.int64] | None


def load_samples(
    network: Network,
    *,
    dataset: str | None = None,
    data: str | None = None,
    raw: str | None = None,
    pictures: Sequence[str] = (),
    limit: int | None = None,
) -> Samples:
    """What a command was told to run: the inputs of a .npy file, pictures, or a dataset."""
    given = [what for what in (raw, pictures, dataset or data) if what]
    if len(given) > 1:
        raise ValueError("give a dataset, raw inputs or pictures, not several of them")
    if raw:
        images = own.read_raw(Path(raw), input_shape(network))
        return Samples(name=Path(raw).name, images=images[:limit], labels=None)
    if pictures:
        if not network.input.static:
            raise ValueError("the model takes recordings, which pictures are not")
        images = [own.read_picture(Path(name), network.input.shape) for name in pictures[:limit]]
        return Samples(name="pictures", images=np.stack(images), labels=None)
    found = load_dataset(network, dataset, data, limit)
    return Samples(name=found.name, images=found.images, labels=found.labels)


def input_shape(network: Network) -> tuple[int, ...]:
    """The shape of one raw input: an image, or the frames of all timesteps."""
    frames = () if network.input.static else (network.timesteps,)
    return (*frames, *network.input.shape)


def noise(network: Network, count: int) -> NDArray[np.uint8]:
    """Random inputs, the same every time: equality must hold on any."""
    shape = (count, *input_shape(network))
    return np.random.default_rng(0).integers(0, 256, shape, np.uint8)


def load_dataset(
    network: Network, name: str | None, root: str | None, limit: int | None = None
) -> Dataset:
    """The test split in the form the network takes; the network's own dataset if none is named."""
    name = name or network.meta.get("dataset")
    if name is None:
        known = ", ".join(datasets.names())
        raise ValueError(f"the model does not say what it was trained on: give --dataset ({known})")
    form = "images" if network.input.static else "recordings"
    if name in own.NAMES:
        dataset = _load_own(network, name, root, form)
    else:
        dataset = _load_known(network, name, root, form)
    return Dataset(
        name=dataset.name,
        images=dataset.images[:limit],
        labels=dataset.labels[:limit],
        classes=dataset.classes,
    )


def _load_known(network: Network, name: str, root: str | None, form: str) -> Dataset:
    info = datasets.info(name)
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
        return datasets.load(name, root, split="test", timesteps=network.timesteps, size=height)
    return datasets.load(name, root, split="test")


def _load_own(network: Network, name: str, root: str | None, form: str) -> Dataset:
    if name == own.IMAGES and not network.input.static:
        raise ValueError(f"the model takes {form}, which the dataset {name!r} does not have")
    shape, timesteps = network.input.shape, network.timesteps
    if name == own.IMAGES:
        dataset = datasets.load(name, root, split="test", shape=shape)
    else:
        dataset = datasets.load(
            name, root, split="test", timesteps=None if network.input.static else timesteps
        )
    if dataset.temporal == network.input.static:
        raise ValueError(f"the model takes {form}, which {root} does not have")
    if dataset.shape != shape:
        raise ValueError(
            f"the model takes {form} of shape {shape}, those of {root} are {dataset.shape}"
        )
    # Labels in a file may leave out the last classes; folders are numbered by their order.
    exact = name == own.IMAGES
    if dataset.classes > network.classes or (exact and dataset.classes < network.classes):
        mend = ": make one folder for each, in the same order of names" if exact else ""
        raise ValueError(
            f"the model knows {network.classes} classes, {root} has {dataset.classes}{mend}"
        )
    return dataset
