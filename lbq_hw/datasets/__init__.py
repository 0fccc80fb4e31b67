"""Datasets as raw integers, read from files that the user names: official files, or own data.

    dataset = load("mnist", "folder/of/mnist", split="test")
    dataset.images   # uint8 (n, C, H, W), or (n, T, C, H, W) for recordings
    dataset.labels   # int64 (n,)

| name | files |
|---|---|
| digits | none: the 8x8 digits of scikit-learn; values 0..16, every fifth image is for testing |
| mnist, fashion-mnist | the four idx files, compressed (.gz) or not, also from Debian's package |
| cifar10, cifar100 | binary or Python batches, in the folder, in a subfolder or in the .tar.gz |
| nmnist | Train/ and Test/ of .bin files, or one .npz of packed events |
| dvs128-gesture | the .aedat files with trials_to_train.txt, trials_to_test.txt and *_labels.csv |
| cifar10-dvs | a folder of .aedat files per class: the first 900 to train, the last 100 to test |
| fsdd | recordings/ of .wav files; the first 5 per digit and speaker are for testing |
| npz | own data: an .npz file of arrays (see :mod:`lbq_hw.datasets.own`) |
| images | own data: PNG and JPEG files, in one folder per class |

The files that torchvision downloads can be read as they are: ``MNIST/raw``, ``FashionMNIST/raw``,
``cifar-10-batches-py`` and ``cifar-100-python``. The user names one of these folders or its parent.
Pickles are read without executing them (:mod:`lbq_hw.datasets.pickled`). All files must have the
md5 of the official files.

An .npz of packed events has three arrays per split. ``<split>_events`` is a structured array with
the integer fields x, y, p (1: brighter) and t (microseconds) of all recordings, one after the
other; ``<split>_offsets`` has n + 1 indices into it; ``<split>_labels`` has the n labels.

Recordings of a camera become ``timesteps`` frames of event counts, each for a slice of the same
duration (see :func:`lbq_hw.datasets.events.integrate`). Spoken digits become ``timesteps`` frames
of 8 ms (see :mod:`lbq_hw.datasets.sound`).
"""

from __future__ import annotations

import difflib
from os import PathLike
from pathlib import Path

from lbq_hw.datasets import cifar, events, own, sound, static
from lbq_hw.datasets.base import SPLITS, Dataset, DatasetError, DatasetInfo, MissingFileError
from lbq_hw.datasets.base import download as _download
from lbq_hw.datasets.reading import Reading

__all__ = [
    "Dataset",
    "DatasetError",
    "DatasetInfo",
    "Reading",
    "download",
    "info",
    "is_divided",
    "is_embedded",
    "is_own",
    "load",
    "names",
]

_INFOS = {
    entry.name: entry
    for entry in (
        static.DIGITS,
        static.MNIST,
        static.FASHION_MNIST,
        cifar.CIFAR10,
        cifar.CIFAR100,
        events.NMNIST,
        events.DVS128_GESTURE,
        events.CIFAR10_DVS,
        sound.FSDD,
    )
}


def names() -> tuple[str, ...]:
    """The names that :func:`load` takes."""
    return (*_INFOS, *own.NAMES)


def info(name: str) -> DatasetInfo:
    """The facts about an official dataset that are known without reading its files."""
    if name in _INFOS:
        return _INFOS[name]
    if name in own.NAMES:
        raise DatasetError(
            f"the shape and classes of the dataset {name!r} are known only from its files"
        )
    near = difflib.get_close_matches(name, names(), n=1, cutoff=0)[0]
    raise DatasetError(
        f"dataset must be one of {', '.join(names())}, not {name!r} (the nearest is {near!r})"
    )


def is_own(name: str) -> bool:
    """Whether the name stands for the user's own data, which may have any shape."""
    return name in own.NAMES


def is_embedded(name: str) -> bool:
    """Whether the dataset needs no files because a library contains it."""
    return name == static.DIGITS.name


def is_divided(name: str, root: str | PathLike[str]) -> bool:
    """Whether training and test images are separate; only the user's own data may be undivided."""
    return not is_own(name) or own.is_divided(name, Path(root))


def load(
    name: str,
    root: str | PathLike[str] | None = None,
    *,
    split: str,
    timesteps: int | None = None,
    size: int | None = None,
    shape: tuple[int, int, int] | None = None,
    reading: Reading | None = None,
    verify: bool = True,
    download: bool = False,
) -> Dataset:
    """Read one split of a dataset.

    ``root`` is the folder of the files (None for digits, which needs none). ``timesteps`` and
    ``size`` are for recordings only: the number of frames per recording, and optionally the side of
    a frame. If ``size`` is smaller than the sensor's side, which it must divide, square blocks of
    pixels are summed. ``shape`` and ``reading`` are for the user's own data only: the size (C, H,
    W) to which pictures are resized, and the meaning of array axes and of transparent pixels.
    ``verify=False`` skips checksums and file counts, for files made by hand. ``download=True``
    downloads missing files.

    Raises DatasetError when a file is missing or corrupt: one sentence with the path, the checksum
    and where to get it.
    """
    if split not in SPLITS:
        raise ValueError(f"split must be 'train' or 'test', not {split!r}")
    _check_reading(name, reading)
    if is_own(name):
        path = None if root is None else Path(root)
        return own.load(
            name, path, split=split, timesteps=timesteps, shape=shape, reading=reading or Reading()
        )
    known = info(name)
    if shape is not None:
        raise ValueError(f"shape must be None except for your own data, not {shape!r}")
    block = _check_frames(known, timesteps, size)
    if known is static.DIGITS:
        if root is not None:
            raise _needless(Path(root))
        return _dataset(known, static.read_digits(split), split)
    if root is None:
        raise known.no_folder(None)
    folder = Path(root)

    def read() -> Dataset:
        if not folder.exists():
            raise known.no_folder(folder)
        if known is sound.FSDD:
            assert timesteps is not None  # see _check_frames
            arrays = sound.read_fsdd(known, folder, split, timesteps=timesteps, verify=verify)
        elif timesteps is not None:
            arrays = events.read_events(
                known, folder, split, timesteps=timesteps, block=block, verify=verify
            )
        elif name in ("cifar10", "cifar100"):
            arrays = cifar.read_cifar(known, folder, split, verify=verify)
        else:
            arrays = static.read_idx(known, folder, split, verify=verify)
        return _dataset(known, arrays, split)

    try:
        return read()
    except MissingFileError:
        if not download:
            raise
    _download(known, folder)
    return read()


def _dataset(known: DatasetInfo, arrays: static.Arrays, split: str) -> Dataset:
    images, labels = arrays
    return Dataset(
        name=known.name,
        images=images,
        labels=labels,
        classes=known.classes,
        class_names=known.class_names,
        full_scale=known.full_scale,
        split=split,
    )


def download(name: str, root: str | PathLike[str]) -> None:
    """Download the official files that ``root`` lacks; a file is moved there when its checksum is
    right.

    Raises DatasetError with one sentence when there is no network, no direct download, or a wrong
    checksum.
    """
    _download(info(name), Path(root))


def _needless(root: Path) -> DatasetError:
    """The error for a folder given with the digits: most likely, the user wants its files read."""
    meant = own.NPZ if root.suffix == ".npz" or root.is_file() else own.IMAGES
    return DatasetError(
        f"the dataset 'digits' comes with scikit-learn and reads nothing from {root}: leave out "
        f"--data, or say that it is your own with --dataset {meant} (in a configuration data.name)"
    )


def _check_reading(name: str, reading: Reading | None) -> None:
    """Refuse options for axes and transparency if the dataset has no use for them."""
    for option, meant in (("layout", own.NPZ), ("background", own.IMAGES)):
        value = getattr(reading, option, None)
        if value is not None and name != meant:
            raise DatasetError(
                f"--{option} {value} is for the dataset {meant!r}, not for {name!r}: leave it out"
            )


def _check_frames(known: DatasetInfo, timesteps: int | None, size: int | None) -> int:
    """Check the options for recordings; returns the side of the blocks to sum, 1 for images."""
    if not known.temporal:
        for what, value in (("timesteps", timesteps), ("size", size)):
            if value is not None:
                raise ValueError(f"{what} must be None for still images, not {value!r}")
        return 1
    if not isinstance(timesteps, int):
        raise TypeError(f"timesteps must be an integer for recordings, not {timesteps!r}")
    if timesteps < 1:
        raise ValueError(f"timesteps must be at least 1, not {timesteps!r}")
    side = known.shape[1]
    if known is sound.FSDD and size not in (None, side):
        raise ValueError(f"size must be {side} for spoken digits, not {size!r}")
    if size is not None and (size < 1 or side % size):
        raise ValueError(f"size must divide {side}, not {size!r}")
    return side // size if size else 1
