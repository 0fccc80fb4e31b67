"""Readers of still images against tiny files in the official formats, and real ones if present."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import struct
import tarfile
import urllib.error
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lbq_hw import datasets
from lbq_hw.datasets import DatasetError, base, cifar

MNIST_PAGE = "MNIST, http://yann.lecun.com/exdb/mnist/"
CIFAR10_PAGE = "CIFAR-10, https://www.cs.toronto.edu/~kriz/cifar.html"


def message(*args, **kwargs) -> str:
    """The text of the DatasetError that loading must raise."""
    with pytest.raises(DatasetError) as caught:
        datasets.load(*args, **kwargs)
    return str(caught.value)


# What is known without files


def test_names_are_the_nine_datasets_and_ones_own():
    assert datasets.names() == (
        "digits",
        "mnist",
        "fashion-mnist",
        "cifar10",
        "cifar100",
        "nmnist",
        "dvs128-gesture",
        "cifar10-dvs",
        "fsdd",
        "npz",
        "images",
    )


@pytest.mark.parametrize(
    ("name", "shape", "classes", "temporal", "bits"),
    [
        ("digits", (1, 8, 8), 10, False, 5),
        ("mnist", (1, 28, 28), 10, False, 8),
        ("cifar100", (3, 32, 32), 100, False, 8),
        ("nmnist", (2, 34, 34), 10, True, 8),
        ("dvs128-gesture", (2, 128, 128), 11, True, 8),
        ("fsdd", (1, 8, 16), 10, True, 3),
    ],
)
def test_info_needs_no_files(name, shape, classes, temporal, bits):
    info = datasets.info(name)
    assert (info.shape, info.classes, info.temporal, info.bits) == (shape, classes, temporal, bits)


def test_unknown_name_is_answered_with_the_nearest():
    assert message("cifar-10", "folder", split="train") == (
        "dataset must be one of digits, mnist, fashion-mnist, cifar10, cifar100, nmnist, "
        "dvs128-gesture, cifar10-dvs, fsdd, npz, images, not 'cifar-10' (the nearest is 'cifar10')"
    )


def test_folder_is_needed_except_for_digits():
    assert message("mnist", split="train") == (
        f"dataset 'mnist' needs the folder of its files, which come from {MNIST_PAGE}: give --data "
        "DIR, or let lbq train --download fetch them"
    )
    assert message("dvs128-gesture", split="train", timesteps=2).endswith(": give --data DIR")


def test_a_folder_that_does_not_exist_is_told(tmp_path):
    assert message("mnist", tmp_path / "nosuch", split="test") == (
        f"there is no folder {tmp_path}/nosuch; dataset 'mnist' needs the folder of its files, "
        f"which come from {MNIST_PAGE}: give --data DIR, or let lbq train --download fetch them"
    )


@pytest.mark.parametrize(
    ("name", "options", "error", "text"),
    [
        ("digits", {"split": "val"}, ValueError, "split must be 'train' or 'test', not 'val'"),
        (
            "digits",
            {"split": "test", "timesteps": 2},
            ValueError,
            "timesteps must be None for still images, not 2",
        ),
        (
            "mnist",
            {"split": "test", "size": 14},
            ValueError,
            "size must be None for still images, not 14",
        ),
        (
            "nmnist",
            {"split": "test"},
            TypeError,
            "timesteps must be an integer for recordings, not None",
        ),
        (
            "nmnist",
            {"split": "test", "timesteps": 0},
            ValueError,
            "timesteps must be at least 1, not 0",
        ),
        (
            "nmnist",
            {"split": "test", "timesteps": 1, "size": 16},
            ValueError,
            "size must divide 34, not 16",
        ),
    ],
)
def test_wrong_arguments_are_named(name, options, error, text):
    with pytest.raises(error) as caught:
        datasets.load(name, "folder", **options)
    assert str(caught.value) == text


def test_digits_are_embedded_and_every_fifth_tests():
    train, test = (datasets.load("digits", split=split) for split in ("train", "test"))
    assert (train.images.shape, test.images.shape) == ((1438, 1, 8, 8), (359, 1, 8, 8))
    assert (train.images.dtype, train.labels.dtype) == (np.uint8, np.int64)
    assert train.images.max() == 16
    # The digits come as 0, 1, 2, ... 9, 0, 1, ... at first.
    assert train.labels[:8].tolist() == [0, 1, 2, 3, 5, 6, 7, 8]
    assert test.labels[:4].tolist() == [4, 9, 4, 9]
    assert (train.classes, train.temporal, train.shape, len(test)) == (10, False, (1, 8, 8), 359)


# idx files


def idx(array: np.ndarray) -> bytes:
    header = bytes((0, 0, 8, array.ndim)) + struct.pack(f">{array.ndim}I", *array.shape)
    return header + array.astype(np.uint8).tobytes()


@pytest.fixture
def mnist(tmp_path: Path) -> tuple[Path, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (5, 28, 28), dtype=np.uint8)
    labels = np.array([3, 1, 4, 1, 5])
    (tmp_path / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(images)))
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(idx(labels))
    return tmp_path, images, labels


@pytest.mark.parametrize("name", ["mnist", "fashion-mnist"])
def test_idx_files_are_read_packed_or_not(mnist, name):
    folder, images, labels = mnist
    dataset = datasets.load(name, folder, split="train", verify=False)
    assert np.array_equal(dataset.images, images[:, None])
    assert np.array_equal(dataset.labels, labels)


def test_missing_idx_file(mnist):
    folder, _, _ = mnist
    assert message("mnist", folder, split="test") == (
        f"{folder}/t10k-images-idx3-ubyte.gz is missing; get t10k-images-idx3-ubyte.gz "
        f"(md5 9fb629c4189551a2d022fa330f9573f3) from {MNIST_PAGE}"
    )


def test_idx_file_with_wrong_contents(mnist):
    folder, images, _ = mnist
    found = hashlib.md5(idx(images)).hexdigest()
    assert message("mnist", folder, split="train") == (
        f"{folder}/train-images-idx3-ubyte.gz is corrupt: its contents have md5 {found} "
        "instead of 6bbc9ace898e44ae57da46a324031adb; get train-images-idx3-ubyte.gz "
        f"(md5 f68b3c2dcbeaaa9fbdd348bbdeb94873) from {MNIST_PAGE}"
    )


@pytest.mark.parametrize("cut", [5, 60])
def test_truncated_gz_file(mnist, cut):
    folder, images, _ = mnist
    path = folder / "train-images-idx3-ubyte.gz"
    path.write_bytes(gzip.compress(idx(images))[:-cut])
    assert message("mnist", folder, split="train", verify=False) == (
        f"{path} is corrupt: it is not a complete gzip file; get train-images-idx3-ubyte.gz "
        f"(md5 f68b3c2dcbeaaa9fbdd348bbdeb94873) from {MNIST_PAGE}"
    )


@pytest.mark.parametrize("data", [b"", b"\0\0\x08\x03\0\0", idx(np.zeros((2, 28, 28)))[:-1]])
def test_truncated_idx_file(mnist, data):
    folder, _, _ = mnist
    path = folder / "train-images-idx3-ubyte"
    path.write_bytes(data)
    assert message("mnist", folder, split="train", verify=False) == (
        f"{path} is corrupt: it is not an idx file of 3-dimensional bytes; "
        "get train-images-idx3-ubyte.gz "
        f"(md5 f68b3c2dcbeaaa9fbdd348bbdeb94873) from {MNIST_PAGE}"
    )


def test_labels_that_do_not_match_the_images(mnist):
    folder, _, labels = mnist
    (folder / "train-labels-idx1-ubyte").write_bytes(idx(labels[:4]))
    assert message("mnist", folder, split="train", verify=False) == (
        f"{folder} must hold as many train labels as images, not 4 and 5"
    )


# CIFAR


def records(count: int, label_bytes: int, seed: int) -> tuple[bytes, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 10, (count, label_bytes), dtype=np.uint8)
    images = rng.integers(0, 256, (count, 3, 32, 32), dtype=np.uint8)
    data = np.concatenate([labels, images.reshape(count, -1)], 1).tobytes()
    return data, images, labels[:, -1].astype(np.int64)


@pytest.fixture
def cifar10() -> tuple[dict[str, bytes], np.ndarray, np.ndarray]:
    """Five tiny batches, and what they hold together."""
    parts = [records(3, 1, seed) for seed in range(5)]
    files = {f"data_batch_{i + 1}.bin": part[0] for i, part in enumerate(parts)}
    return files, np.concatenate([p[1] for p in parts]), np.concatenate([p[2] for p in parts])


def put(folder: Path, files: dict[str, bytes]) -> None:
    folder.mkdir(exist_ok=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)


def put_archive(path: Path, folder: str, files: dict[str, bytes]) -> None:
    with tarfile.open(path, "w:gz") as archive:
        for name, data in reversed(files.items()):
            member = tarfile.TarInfo(f"{folder}/{name}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))


@pytest.mark.parametrize("place", ["folder", "subfolder", "archive"])
def test_cifar10_batches_are_read_in_order_from_each_place(tmp_path, cifar10, place):
    files, images, labels = cifar10
    if place == "folder":
        put(tmp_path, files)
    elif place == "subfolder":
        put(tmp_path / "cifar-10-batches-bin", files)
    else:
        put_archive(tmp_path / "cifar-10-binary.tar.gz", "cifar-10-batches-bin", files)
    dataset = datasets.load("cifar10", tmp_path, split="train", verify=False)
    assert np.array_equal(dataset.images, images)
    assert np.array_equal(dataset.labels, labels)


def test_cifar100_has_the_fine_labels(tmp_path):
    data, images, labels = records(4, 2, 7)
    put(tmp_path, {"test.bin": data})
    dataset = datasets.load("cifar100", tmp_path, split="test", verify=False)
    assert np.array_equal(dataset.images, images)
    assert np.array_equal(dataset.labels, labels)
    assert dataset.classes == 100


CIFAR10_MEND = (
    f"get cifar-10-binary.tar.gz (md5 c32a1d4ab5d03f1284b67883e8d87530) from {CIFAR10_PAGE}"
)


def test_missing_cifar_batch(tmp_path, cifar10):
    files, _, _ = cifar10
    assert message("cifar10", tmp_path, split="train", verify=False) == (
        f"{tmp_path}/data_batch_1.bin is missing; {CIFAR10_MEND}, or name the folder in which "
        "torchvision has put cifar-10-batches-py"
    )
    assert message("cifar100", tmp_path, split="test") == (
        f"{tmp_path}/test.bin is missing; get cifar-100-binary.tar.gz (md5 "
        "03b5dce01913d631647c71ecec9e9cb8) from CIFAR-100, "
        "https://www.cs.toronto.edu/~kriz/cifar.html, or name the folder in which torchvision has "
        "put cifar-100-python"
    )
    del files["data_batch_4.bin"]
    put(tmp_path / "cifar-10-batches-bin", files)
    assert message("cifar10", tmp_path, split="train", verify=False) == (
        f"{tmp_path}/cifar-10-batches-bin/data_batch_4.bin is missing; {CIFAR10_MEND}"
    )


def test_corrupt_cifar_batch(tmp_path, cifar10):
    files, _, _ = cifar10
    put(tmp_path, files)
    path = tmp_path / "data_batch_1.bin"
    found = hashlib.md5(files["data_batch_1.bin"]).hexdigest()
    assert message("cifar10", tmp_path, split="train") == (
        f"{path} is corrupt: its contents have md5 {found} "
        f"instead of 5dd7e06a14cb22eb9f671a540d1b7c25; {CIFAR10_MEND}"
    )
    path.write_bytes(files["data_batch_1.bin"][:-1])
    assert message("cifar10", tmp_path, split="train", verify=False) == (
        f"{path} is corrupt: its records are not of 3073 bytes each; {CIFAR10_MEND}"
    )
    path.write_bytes(b"\x0a" + files["data_batch_1.bin"][1:])
    assert message("cifar10", tmp_path, split="train", verify=False) == (
        f"{path} is corrupt: it has labels above 9; {CIFAR10_MEND}"
    )


def test_corrupt_cifar_archive(tmp_path, cifar10):
    files, _, _ = cifar10
    path = tmp_path / "cifar-10-binary.tar.gz"
    put_archive(path, "cifar-10-batches-bin", files)
    found = hashlib.md5(path.read_bytes()).hexdigest()
    assert message("cifar10", tmp_path, split="train") == (
        f"{path} is corrupt: its contents have md5 {found} "
        f"instead of c32a1d4ab5d03f1284b67883e8d87530; {CIFAR10_MEND}"
    )
    assert message("cifar10", tmp_path, split="test", verify=False) == (
        f"{path} is corrupt: it has no test_batch.bin; {CIFAR10_MEND}"
    )
    path.write_bytes(path.read_bytes()[:2000])
    assert message("cifar10", tmp_path, split="train", verify=False) == (
        f"{path} is corrupt: it is not a complete tar.gz file; {CIFAR10_MEND}"
    )


# Download


def served(tmp_path: Path, name: str, data: bytes, **options) -> base.Resource:
    """A resource whose address is a file here."""
    source = tmp_path / "served" / name
    source.parent.mkdir(exist_ok=True)
    source.write_bytes(data)
    md5 = hashlib.md5(data).hexdigest()
    return base.Resource(name=name, md5=md5, url=source.as_uri(), **options)


def publish(monkeypatch: pytest.MonkeyPatch, resource: base.Resource) -> None:
    """Make a resource the archive of CIFAR-10's binary batches."""
    binary, python = cifar.FORMS["cifar10"]
    forms = (replace(binary, archive=resource), python)
    monkeypatch.setitem(cifar.FORMS, "cifar10", forms)
    info = replace(cifar.CIFAR10, resources=(resource,))
    monkeypatch.setitem(datasets._INFOS, "cifar10", info)


def test_download_fetches_what_is_missing(tmp_path, monkeypatch, cifar10):
    files, images, _ = cifar10
    archive = tmp_path / "made.tar.gz"
    put_archive(archive, "cifar-10-batches-bin", files)
    resource = served(tmp_path, "cifar-10-binary.tar.gz", archive.read_bytes())
    publish(monkeypatch, resource)
    folder = tmp_path / "new"
    dataset = datasets.load("cifar10", folder, split="train", download=True)
    assert np.array_equal(dataset.images, images)
    assert [path.name for path in folder.iterdir()] == ["cifar-10-binary.tar.gz"]
    (tmp_path / "served/cifar-10-binary.tar.gz").unlink()
    datasets.download("cifar10", folder)
    again = datasets.load("cifar10", folder, split="train", download=True)
    assert np.array_equal(again.images, images)


def test_download_with_a_wrong_checksum_leaves_nothing(tmp_path, monkeypatch):
    resource = replace(served(tmp_path, "cifar-10-binary.tar.gz", b"other"), md5="0" * 32)
    publish(monkeypatch, resource)
    folder = tmp_path / "new"
    assert message("cifar10", folder, split="train", download=True) == (
        f"{resource.url} gave a file with md5 795f3202b17cb6bc3d4b771d8c6c9eaf instead of "
        f"{'0' * 32}; get cifar-10-binary.tar.gz (md5 {'0' * 32}) from {CIFAR10_PAGE} "
        f"and put it in {folder}"
    )
    assert list(folder.iterdir()) == []


def test_download_without_a_network(tmp_path, monkeypatch):
    def offline(*_args, **_kwargs):
        raise urllib.error.URLError("Name or service not known")

    monkeypatch.setattr("urllib.request.urlopen", offline)
    assert message("mnist", tmp_path, split="train", download=True) == (
        "https://ossci-datasets.s3.amazonaws.com/mnist/train-images-idx3-ubyte.gz cannot be "
        "fetched (Name or service not known); get train-images-idx3-ubyte.gz "
        f"(md5 f68b3c2dcbeaaa9fbdd348bbdeb94873) from {MNIST_PAGE} and put it in {tmp_path}"
    )


# Real files


def real(folder: str) -> Path:
    """The folder of real files, or a skip that says which is absent."""
    root = os.environ.get("LBQ_DATA")
    if not root:
        pytest.skip("LBQ_DATA names no folder of datasets")
    if not (Path(root) / folder).is_dir():
        pytest.skip(f"LBQ_DATA has no folder {folder}")
    return Path(root) / folder


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "split", "count", "first"),
    [
        ("mnist", "train", 60000, [5, 0, 4, 1, 9]),
        ("mnist", "test", 10000, [7, 2, 1, 0, 4]),
        ("fashion-mnist", "test", 10000, [9, 2, 1, 1, 6]),
        ("cifar10", "train", 50000, [6, 9, 9, 4, 1]),
        ("cifar10", "test", 10000, [3, 8, 8, 0, 6]),
        ("cifar100", "test", 10000, [49, 33, 72, 51, 71]),
    ],
)
def test_real_images_have_the_official_checksums(name, split, count, first):
    folder = real(name)
    try:
        dataset = datasets.load(name, folder, split=split)
    except base.MissingFileError as error:
        pytest.skip(str(error))
    assert len(dataset) == count
    assert dataset.labels[:5].tolist() == first
