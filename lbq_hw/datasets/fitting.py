"""The inputs that a network runs on: a dataset, raw inputs, pictures, or noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbq_hw import datasets
from lbq_hw.datasets import Dataset, Reading, mapping, meaning, own
from lbq_hw.datasets.base import VALIDATION, WHOLE, Drawn
from lbq_hw.datasets.reading import BACKGROUNDS
from lbq_hw.network import HeldOut, Network

SEED = 0  # seed of every random choice of images, so that all commands draw the same ones


@dataclass(frozen=True, kw_only=True, eq=False)
class Samples:
    """Raw inputs in the form that a network takes; `labels` is None if the classes are unknown.
    `split`, `drawn` and `notes` come from the dataset.
    """

    name: str
    images: NDArray[np.uint8]
    labels: NDArray[np.int64] | None
    split: str | None = None
    drawn: Drawn | None = None
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, dataset: Dataset) -> Samples:
        return cls(
            name=dataset.name,
            images=dataset.images,
            labels=dataset.labels,
            split=dataset.split,
            drawn=dataset.drawn,
            notes=dataset.notes,
        )

    def origin(self) -> dict[str, Any]:
        """The origin of the images, for reports: dataset, split, number, how they were drawn."""
        return {
            "dataset": self.name,
            "split": self.split,
            "drawn": None if self.drawn is None else asdict(self.drawn),
            "images": len(self.images),
            "notes": list(self.notes),
        }


def described(origin: Mapping[str, Any]) -> str:
    """Images in words, from what `Samples.origin` says: ``20 of 359 test images (seed 0)``."""
    drawn, split = origin["drawn"], origin["split"]
    kind = "images of undivided data" if split == WHOLE else f"{split} images"
    if drawn is None:
        return f"{origin['images']:,} {kind}"
    return f"{origin['images']:,} of {drawn['of']:,} {kind} (seed {drawn['seed']})"


def draw(total: int, count: int | None) -> NDArray[np.int64]:
    """Indices of `count` images out of `total`, drawn with `SEED`; all in order if there are no
    more than `count`.
    """
    if count is None or count >= total:
        return np.arange(total)
    return np.random.default_rng(SEED).permutation(total)[:count]


def load_samples(
    network: Network,
    *,
    dataset: str | None = None,
    data: str | None = None,
    raw: str | None = None,
    pictures: Sequence[str] = (),
    limit: int | None = None,
    reading: Reading | None = None,
) -> Samples:
    """The inputs that a command was told to run: a .npy file, pictures, or a dataset.

    At most `limit`: the first inputs or pictures, or images drawn from the dataset.
    """
    given = [what for what in (raw, pictures, dataset or data) if what]
    if len(given) > 1:
        raise ValueError("give a dataset, raw inputs or pictures, only one of them")
    if raw:
        images = own.read_raw(Path(raw), input_shape(network))
        notes = mapping.range_notes(network, images[:limit])
        return Samples(name=Path(raw).name, images=images[:limit], labels=None, notes=notes)
    if pictures:
        if not network.input.static:
            raise ValueError("the model takes recordings, not pictures")
        behind = (_reading(network, own.IMAGES, reading) or Reading()).background
        shape, white = network.input.shape, meaning.full_scale(network)
        assert white is not None  # a static input has one
        seen = np.stack([own.read_picture(Path(name), shape, behind) for name in pictures[:limit]])
        images = mapping.scaled(seen, of=own.WHITE, to=white)
        notes = mapping.range_notes(network, images)
        return Samples(name="pictures", images=images, labels=None, notes=notes)
    return Samples.of(load_dataset(network, dataset, data, limit, reading))


def input_shape(network: Network) -> tuple[int, ...]:
    """The shape of one raw input: an image, or the frames of all timesteps."""
    frames = () if network.input.static else (network.timesteps,)
    return (*frames, *network.input.shape)


def noise(network: Network, count: int) -> NDArray[np.uint8]:
    """Random inputs, the same every time. Noise is enough to test equality, which must hold for any
    input.
    """
    shape = (count, *input_shape(network))
    return np.random.default_rng(0).integers(0, 256, shape, np.uint8)


def load_dataset(
    network: Network,
    name: str | None,
    root: str | None,
    limit: int | None = None,
    reading: Reading | None = None,
    *,
    split: str = "test",
) -> Dataset:
    """Test images in the form that the network takes: at most `limit`, drawn from all. The default
    dataset is the one that the network was trained on; else a `root` that ends in .npz names one.

    They come from the test split or the named split; if the data is undivided, they are the images
    that were held out in training. Values are in the network's range and labels in the order of its
    classes (`lbq_hw.datasets.mapping`).
    """
    name = name or network.meta.get("dataset")
    if name is None and root is not None and Path(root).suffix == ".npz":
        name = "npz"
    if name is None:
        known = ", ".join(datasets.names())
        raise ValueError(f"the model does not say what it was trained on: give --dataset ({known})")
    form = "images" if network.input.static else "recordings"
    if name in own.NAMES:
        dataset = _load_own(network, name, root, form, _reading(network, name, reading), split)
        trained = network.meta.get("dataset") == name
        dataset = to_test_on(dataset, network.held_out, trained=trained)
    else:
        dataset = _load_known(network, name, root, form, reading, split)
    place = str(root) if name in own.NAMES else f"the dataset {name!r}"
    return draw_from(mapping.fitted(network, dataset, place), limit)


def draw_from(dataset: Dataset, limit: int | None) -> Dataset:
    """At most `limit` images of a dataset, drawn from all."""
    if limit is None or limit >= len(dataset):
        return dataset
    drawn = Drawn(of=len(dataset), seed=SEED)
    return replace(dataset.at(draw(len(dataset), limit)), drawn=drawn)


def to_test_on(dataset: Dataset, held: HeldOut | None, *, trained: bool) -> Dataset:
    """The held-out images of undivided data; if none are known, all images, with a note that the
    network may have been trained on them. `trained`: the network was trained on such data.
    """
    if dataset.split != WHOLE:
        return dataset
    if held is not None and (held.count, held.data) == (len(dataset), dataset.digest()):
        return replace(dataset.at(np.array(held.indices)), split=VALIDATION)
    if held is None and not trained:
        return dataset
    why = "does not say which images it was trained on"
    if held is not None:
        why = "was trained on other data, or on these before they were changed"
    note = f"the data is not divided and the network {why}: training images may be among these"
    return replace(dataset, notes=(*dataset.notes, note))


def _reading(network: Network, name: str, told: Reading | None) -> Reading | None:
    """The user's reading, or for pictures the reading with which the network was trained."""
    if name != own.IMAGES or (told is not None and told != Reading()):
        return told
    recipe = network.meta.get("config")
    data = recipe.get("data") if isinstance(recipe, Mapping) else None
    behind = data.get("background") if isinstance(data, Mapping) else None
    return Reading(background=next((known for known in BACKGROUNDS if known == behind), None))


def _load_known(
    network: Network, name: str, root: str | None, form: str, reading: Reading | None, split: str
) -> Dataset:
    info = datasets.info(name)
    if info.temporal == network.input.static:
        raise ValueError(f"the model takes {form}, which the dataset {name!r} does not have")
    channels, height, width = shape = network.input.shape
    blocks = info.temporal and height == width and info.shape[1] % height == 0
    if shape != info.shape and not (blocks and channels == info.shape[0]):
        raise ValueError(
            f"the model takes {form} of shape {shape}, the dataset {name!r} has {info.shape}"
        )
    if info.classes != network.classes:
        raise ValueError(
            f"the model knows {network.classes} classes, the dataset {name!r} has {info.classes}"
        )
    if info.temporal:
        return datasets.load(
            name,
            root,
            split=split,
            timesteps=network.timesteps,
            size=height,
            reading=reading,
        )
    return datasets.load(name, root, split=split, reading=reading)


def _load_own(
    network: Network, name: str, root: str | None, form: str, reading: Reading | None, split: str
) -> Dataset:
    if name == own.IMAGES and not network.input.static:
        raise ValueError(f"the model takes {form}, which the dataset {name!r} does not have")
    shape, timesteps = network.input.shape, network.timesteps
    if name == own.IMAGES:
        dataset = datasets.load(name, root, split=split, shape=shape, reading=reading)
    else:
        dataset = datasets.load(
            name,
            root,
            split=split,
            timesteps=None if network.input.static else timesteps,
            shape=shape,
            reading=reading,
        )
    if dataset.temporal == network.input.static:
        raise ValueError(f"the model takes {form}, which {root} does not have")
    if dataset.shape != shape:
        raise ValueError(f"the model takes {form} of shape {shape}, {root} has {dataset.shape}")
    if dataset.class_names and meaning.class_names(network):
        return dataset  # named classes are compared one by one
    # Labels in a file may leave out the last classes; folders are numbered by their order.
    exact = name == own.IMAGES
    if dataset.classes > network.classes or (exact and dataset.classes < network.classes):
        mend = ": make one folder for each, in the same order of names" if exact else ""
        if dataset.classes == network.classes + 1 and not exact and dataset.labels.min() == 1:
            mend = f" since its labels are 1 to {network.classes}: write them as labels - 1"
        raise ValueError(
            f"the model knows {network.classes} classes, {root} has {dataset.classes}{mend}"
        )
    return dataset
