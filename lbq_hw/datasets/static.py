"""Readers of still images: the embedded digits, idx files, CIFAR's binary batches."""

from __future__ import annotations

import gzip
import io
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from lbq_hw.datasets.base import DatasetError, DatasetInfo, Resource, check_md5

Arrays = tuple[np.ndarray, np.ndarray]

DIGITS = DatasetInfo(
    name="digits",
    shape=(1, 8, 8),
    classes=10,
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
    classes=10,
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
    classes=10,
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

# Checksums of the unpacked idx files: Debian packs the same contents into other .gz files.
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

_CIFAR_PAGE = "https://www.cs.toronto.edu/~kriz/"

CIFAR10 = DatasetInfo(
    name="cifar10",
    shape=(3, 32, 32),
    classes=10,
    temporal=False,
    max_value=255,
    source=f"CIFAR-10, {_CIFAR_PAGE}cifar.html",
    resources=(
        Resource(
            name="cifar-10-binary.tar.gz",
            md5="c32a1d4ab5d03f1284b67883e8d87530",
            url=f"{_CIFAR_PAGE}cifar-10-binary.tar.gz",
        ),
    ),
)

CIFAR100 = DatasetInfo(
    name="cifar100",
    shape=(3, 32, 32),
    classes=100,
    temporal=False,
    max_value=255,
    source=f"CIFAR-100, {_CIFAR_PAGE}cifar.html",
    resources=(
        Resource(
            name="cifar-100-binary.tar.gz",
            md5="03b5dce01913d631647c71ecec9e9cb8",
            url=f"{_CIFAR_PAGE}cifar-100-binary.tar.gz",
        ),
    ),
)

# Folder inside the archive; label bytes per record, the last of which counts; md5 per batch.
_CIFAR_FOLDER = {"cifar10": "cifar-10-batches-bin", "cifar100": "cifar-100-binary"}
_CIFAR_LABEL_BYTES = {"cifar10": 1, "cifar100": 2}
_CIFAR_BATCHES = {
    ("cifar10", "train"): {
        "data_batch_1.bin": "5dd7e06a14cb22eb9f671a540d1b7c25",
        "data_batch_2.bin": "5ea93a67294ea407fff1d09f752e9692",
        "data_batch_3.bin": "942cd6a4bcdd0dd3c604fbe906cb4421",
        "data_batch_4.bin": "ae636b3ba5c66a11e91e8cb52e771fcb",
        "data_batch_5.bin": "53f37980c15c3d472c316c40844f3f0d",
    },
    ("cifar10", "test"): {"test_batch.bin": "803d5f7f4d78ea53de84dbe85f74fb6d"},
    ("cifar100", "train"): {"train.bin": "6172c7755cfe09b2fe270c85cebc1b15"},
    ("cifar100", "test"): {"test.bin": "4499cfba6c016c1be1438163640a0898"},
}


def read_digits(split: str) -> Arrays:
    """8x8 digits with values 0..16; every fifth image (index % 5 == 4) is for testing."""
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    images, labels = np.asarray(pixels, np.uint8).reshape(-1, 1, 8, 8), np.asarray(labels, np.int64)
    chosen = (np.arange(len(labels)) % 5 == 4) == (split == "test")
    return images[chosen], labels[chosen]


def read_idx(info: DatasetInfo, root: Path, split: str, *, verify: bool) -> Arrays:
    """Images and labels from idx files, packed (.gz) or not."""
    first = 0 if split == "train" else 2
    images = _idx(info, root, info.resources[first], 3, verify=verify)
    labels = _idx(info, root, info.resources[first + 1], 1, verify=verify)
    if len(images) != len(labels):
        raise DatasetError(
            f"{root} must hold as many {split} labels as images, "
            f"not {len(labels)} and {len(images)}"
        )
    return images[:, None], labels.astype(np.int64)


def _idx(info: DatasetInfo, root: Path, res: Resource, rank: int, *, verify: bool) -> np.ndarray:
    plain = root / res.name.removesuffix(".gz")
    path = plain if plain.is_file() else root / res.name
    if not path.is_file():
        raise info.missing(path, res)
    data = path.read_bytes()
    if path != plain:
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise info.corrupt(path, "it is not a complete gzip file", res) from error
    if verify:
        check_md5(data, _IDX_MD5[info.name][plain.name], path, info, res)
    header = 4 + 4 * rank
    shape = np.frombuffer(data[4:header].ljust(4 * rank, b"\0"), ">u4").astype(int)
    if data[:4] != bytes((0, 0, 8, rank)) or len(data) != header + shape.prod():
        raise info.corrupt(path, f"it is not an idx file of {rank}-dimensional bytes", res)
    return np.frombuffer(data, np.uint8, offset=header).reshape(shape).copy()


def read_cifar(info: DatasetInfo, root: Path, split: str, *, verify: bool) -> Arrays:
    """Images and labels from the binary batches in ``root``, in their folder or in the archive."""
    label_bytes = _CIFAR_LABEL_BYTES[info.name]
    record, res = label_bytes + 3072, info.resources[0]
    images, labels = [], []
    for path, data in _cifar_batches(info, root, _CIFAR_BATCHES[info.name, split], verify=verify):
        if not data or len(data) % record:
            raise info.corrupt(path, f"its records are not of {record} bytes each", res)
        records = np.frombuffer(data, np.uint8).reshape(-1, record)
        if records[:, label_bytes - 1].max() >= info.classes:
            raise info.corrupt(path, f"it has labels above {info.classes - 1}", res)
        images.append(records[:, label_bytes:].reshape(-1, 3, 32, 32))
        labels.append(records[:, label_bytes - 1].astype(np.int64))
    return np.concatenate(images), np.concatenate(labels)


def _cifar_batches(
    info: DatasetInfo, root: Path, md5s: dict[str, str], *, verify: bool
) -> Iterator[tuple[str, bytes]]:
    """Path and contents of each batch, all from the first place that has the first batch."""
    first, res = next(iter(md5s)), info.resources[0]
    folders = (root, root / _CIFAR_FOLDER[info.name])
    folder = next((f for f in folders if (f / first).is_file()), None)
    if folder is None and (root / res.name).is_file():
        yield from _cifar_archive(info, root / res.name, tuple(md5s), verify=verify)
        return
    for name, md5 in md5s.items():
        path = (folder or root) / name
        if not path.is_file():
            raise info.missing(path, res)
        data = path.read_bytes()
        if verify:
            check_md5(data, md5, path, info, res)
        yield str(path), data


def _cifar_archive(
    info: DatasetInfo, path: Path, names: tuple[str, ...], *, verify: bool
) -> Iterator[tuple[str, bytes]]:
    res, packed, found = info.resources[0], path.read_bytes(), {}
    if verify:
        check_md5(packed, res.md5, path, info, res)
    try:
        with tarfile.open(fileobj=io.BytesIO(packed), mode="r:gz") as archive:
            for member in archive:
                name = Path(member.name).name
                if name in names and (handle := archive.extractfile(member)):
                    found[name] = handle.read()
    except (OSError, EOFError, tarfile.TarError, zlib.error) as error:
        raise info.corrupt(path, "it is not a complete tar.gz file", res) from error
    for name in names:
        if name not in found:
            raise info.corrupt(path, f"it has no {name}", res)
        yield f"{path}:{name}", found[name]
