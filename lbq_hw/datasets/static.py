"""Readers of still images: the embedded digits, and idx files."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

import numpy as np

from lbq_hw.datasets import class_names
from lbq_hw.datasets.base import DatasetError, DatasetInfo, Resource, check_md5

Arrays = tuple[np.ndarray, np.ndarray]

DIGITS = DatasetInfo(
    name="digits",
    shape=(1, 8, 8),
    class_names=class_names.DIGITS,
    temporal=False,
    max_value=16,
    source="scikit-learn, which carries it",
)


def _idx_resources(base: str, md5s: tuple[str, ...]) -> tuple[Resource, ...]:
    names = ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1")
    return tuple(
        Resource(name=f"{name}-ubyte.gz", md5=md5, url=f"{base}{name}-ubyte.gz")
        for name, md5 in zip(names, md5s, strict=True)
    )


MNIST = DatasetInfo(
    name="mnist",
    shape=(1, 28, 28),
    class_names=class_names.DIGITS,
    temporal=False,
    max_value=255,
    source="MNIST, http://yann.lecun.com/exdb/mnist/",
    resources=_idx_resources(
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        (
            "f68b3c2dcbeaaa9fbdd348bbdeb94873",
            "d53e105ee54ea40749a09fcbcd1e9432",
            "9fb629c4189551a2d022fa330f9573f3",
            "ec29112dd5afa0611ce80d1b7f02629c",
        ),
    ),
)

FASHION_MNIST = DatasetInfo(
    name="fashion-mnist",
    shape=(1, 28, 28),
    class_names=class_names.FASHION_MNIST,
    temporal=False,
    max_value=255,
    source="Fashion-MNIST, https://github.com/zalandoresearch/fashion-mnist, "
    "or Debian's package dataset-fashion-mnist",
    resources=_idx_resources(
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
        (
            "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
            "25c81989df183df01b3e8a0aad5dffbe",
            "bef4ecab320f06d8554ea6380940ec79",
            "bb300cfdad3c16e7a12a480ee83cd310",
        ),
    ),
)

# The folder that torchvision makes; the files are in its raw/.
_IDX_FOLDER = {"mnist": "MNIST", "fashion-mnist": "FashionMNIST"}

# Checksums of the uncompressed idx files: Debian's .gz files differ but have the same contents.
_IDX_MD5 = {
    "mnist": {
        "train-images-idx3-ubyte": "6bbc9ace898e44ae57da46a324031adb",
        "train-labels-idx1-ubyte": "a25bea736e30d166cdddb491f175f624",
        "t10k-images-idx3-ubyte": "2646ac647ad5339dbf082846283269ea",
        "t10k-labels-idx1-ubyte": "27ae3e4e09519cfbb04c329615203637",
    },
    "fashion-mnist": {
        "train-images-idx3-ubyte": "f4a8712d7a061bf5bd6d2ca38dc4d50a",
        "train-labels-idx1-ubyte": "9018921c3c673c538a1fc5bad174d6f9",
        "t10k-images-idx3-ubyte": "8181f5470baa50b63fa0f6fddb340f0a",
        "t10k-labels-idx1-ubyte": "15d484375f8d13e6eb1aabb0c3f46965",
    },
}


def read_digits(split: str) -> Arrays:
    """8x8 digits with values 0..16; every fifth image (index % 5 == 4) is a test image."""
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    images, labels = np.asarray(pixels, np.uint8).reshape(-1, 1, 8, 8), np.asarray(labels, np.int64)
    chosen = (np.arange(len(labels)) % 5 == 4) == (split == "test")
    return images[chosen], labels[chosen]


def read_idx(info: DatasetInfo, root: Path, split: str, *, verify: bool) -> Arrays:
    """Images and labels from idx files, compressed (.gz) or not, also in torchvision's folder."""
    folders = (root, root / "raw", root / _IDX_FOLDER[info.name] / "raw")
    folder = next((f for f in folders if any(_idx_path(f, r) for r in info.resources)), root)
    first = 0 if split == "train" else 2
    images = _idx(info, folder, info.resources[first], 3, verify=verify)
    labels = _idx(info, folder, info.resources[first + 1], 1, verify=verify)
    if len(images) != len(labels):
        raise DatasetError(
            f"{folder} must hold as many {split} labels as images, "
            f"not {len(labels)} and {len(images)}"
        )
    return images[:, None], labels.astype(np.int64)


def _idx_path(folder: Path, res: Resource) -> Path | None:
    """The file of a resource, compressed or not, if the folder has it."""
    paths = (folder / res.name.removesuffix(".gz"), folder / res.name)
    return next((path for path in paths if path.is_file()), None)


def _idx(info: DatasetInfo, folder: Path, res: Resource, rank: int, *, verify: bool) -> np.ndarray:
    path = _idx_path(folder, res)
    if path is None:
        raise info.missing(folder / res.name, res)
    data = path.read_bytes()
    if path.name == res.name:
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise info.corrupt(path, "it is not a complete gzip file", res) from error
    if verify:
        check_md5(data, _IDX_MD5[info.name][res.name.removesuffix(".gz")], path, info, res)
    header = 4 + 4 * rank
    shape = np.frombuffer(data[4:header].ljust(4 * rank, b"\0"), ">u4").astype(int)
    if data[:4] != bytes((0, 0, 8, rank)) or len(data) != header + shape.prod():
        raise info.corrupt(path, f"it is not an idx file of {rank}-dimensional bytes", res)
    return np.frombuffer(data, np.uint8, offset=header).reshape(shape).copy()
