"""Folders that torchvision has made: MNIST/raw, cifar-10-batches-py, cifar-100-python."""

from __future__ import annotations

import ast
import gzip
import hashlib
import importlib.util
import os
import pickle
import struct
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from python_batches import array, batch, dictionary, number, numbers, publish, text

from lbq_hw import datasets
from lbq_hw.datasets import DatasetError, cifar, static

CIFAR10_MEND = (
    "get cifar-10-python.tar.gz (md5 c58f30108f718f92721af3b95e74349a) "
    "from CIFAR-10, https://www.cs.toronto.edu/~kriz/cifar.html"
)


def message(*args, **kwargs) -> str:
    """The text of the DatasetError that loading must raise."""
    with pytest.raises(DatasetError) as caught:
        datasets.load(*args, **kwargs)
    return str(caught.value)


def md5(data: bytes) -> str:
    return hashlib.md5(data).hexdigest()


@pytest.mark.filterwarnings("ignore:numpy.core.multiarray is deprecated:DeprecationWarning")
@pytest.mark.parametrize("fortran", [False, True])
def test_python_itself_reads_the_same_from_these_pickles(fortran):
    data, images, labels = batch(3, 0, fortran=fortran)
    found = pickle.loads(data, encoding="bytes")
    assert np.array_equal(found[b"data"].reshape(-1, 3, 32, 32), images)
    assert found[b"labels"] == labels
    pixels, classes = cifar.FORMS["cifar10"][1].parse(data)
    assert np.array_equal(pixels.reshape(-1, 3, 32, 32), images)
    assert classes.tolist() == labels


@pytest.fixture
def cifar10(tmp_path, monkeypatch) -> tuple[Path, np.ndarray, list[int]]:
    """A folder in which torchvision has put CIFAR-10, of three images per batch."""
    made = [batch(3, seed) for seed in range(5)]
    files = {f"data_batch_{i + 1}": data for i, (data, _, _) in enumerate(made)}
    publish(monkeypatch, "cifar10", "train", files)
    folder = tmp_path / "cifar-10-batches-py"
    folder.mkdir()
    for name, data in files.items():
        (folder / name).write_bytes(data)
    images = np.concatenate([images for _, images, _ in made])
    return tmp_path, images, [label for _, _, labels in made for label in labels]


@pytest.mark.parametrize("place", [".", "cifar-10-batches-py"])
def test_cifar10_is_read_from_the_folder_or_from_where_it_lies(cifar10, place):
    root, images, labels = cifar10
    dataset = datasets.load("cifar10", root / place, split="train")
    assert np.array_equal(dataset.images, images)
    assert dataset.labels.tolist() == labels


def test_cifar10_is_read_from_the_archive_of_python_batches(cifar10, monkeypatch):
    root, images, _ = cifar10
    path = root / "packed" / "cifar-10-python.tar.gz"
    path.parent.mkdir()
    with tarfile.open(path, "w:gz") as archive:
        archive.add(root / "cifar-10-batches-py", "cifar-10-batches-py")
    found = md5(path.read_bytes())
    assert message("cifar10", path.parent, split="train") == (
        f"{path} is corrupt: its contents have md5 {found} instead of "
        f"c58f30108f718f92721af3b95e74349a; {CIFAR10_MEND}"
    )
    binary, python = cifar.FORMS["cifar10"]
    python = replace(python, archive=replace(python.archive, md5=found))
    monkeypatch.setitem(cifar.FORMS, "cifar10", (binary, python))
    assert np.array_equal(datasets.load("cifar10", path.parent, split="train").images, images)


@pytest.mark.parametrize("place", [".", "cifar-100-python"])
def test_cifar100_has_the_fine_labels(tmp_path, monkeypatch, place):
    data, images, labels = batch(4, 7, fine=True)
    publish(monkeypatch, "cifar100", "test", {"test": data})
    folder = tmp_path / "cifar-100-python"
    folder.mkdir()
    (folder / "test").write_bytes(data)
    dataset = datasets.load("cifar100", tmp_path / place, split="test")
    assert np.array_equal(dataset.images, images)
    assert dataset.labels.tolist() == labels


def test_a_batch_with_another_checksum_is_refused_before_it_is_read(cifar10):
    root, _, _ = cifar10
    path = root / "cifar-10-batches-py" / "data_batch_2"
    expected = md5(path.read_bytes())
    path.write_bytes(b"no pickle")
    assert message("cifar10", root, split="train") == (
        f"{path} is corrupt: its contents have md5 {md5(b'no pickle')} instead of {expected}; "
        f"{CIFAR10_MEND}"
    )
    path.unlink()
    assert message("cifar10", root, split="train") == f"{path} is missing; {CIFAR10_MEND}"


def constants(module: str) -> dict[str, dict[str, Any]]:
    """What the classes of a module of torchvision define, read from its source: importing it would
    bring torch."""
    spec = importlib.util.find_spec("torchvision")
    if spec is None or spec.origin is None:
        pytest.skip("torchvision is not installed")
    tree = ast.parse(Path(spec.origin).with_name("datasets").joinpath(module).read_text("utf-8"))
    return {
        each.name: {
            line.targets[0].id: ast.literal_eval(line.value)
            for line in each.body
            if isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name)
            if isinstance(line.value, ast.Constant | ast.List)
        }
        for each in tree.body
        if isinstance(each, ast.ClassDef)
    }


@pytest.mark.parametrize("name", ["cifar10", "cifar100"])
def test_cifars_checksums_are_torchvisions(name):
    theirs, python = constants("cifar.py")[name.upper()], cifar.FORMS[name][1]
    archive = (theirs["base_folder"], theirs["filename"], theirs["tgz_md5"])
    assert (python.folder, python.archive.name, python.archive.md5) == archive
    for split in ("train", "test"):
        assert [[file, found] for file, found in python.batches[split].items()] == theirs[
            f"{split}_list"
        ]


@pytest.mark.parametrize(
    ("name", "folder"), [("mnist", "MNIST"), ("fashion-mnist", "FashionMNIST")]
)
def test_idx_checksums_are_torchvisions(name, folder):
    resources = constants("mnist.py")[folder]["resources"]
    assert [(file.name, file.md5) for file in datasets.info(name).resources] == resources


# Pickles that are no batches


class Call:
    """An object whose pickle calls a function when it is read."""

    def __init__(self, function: Callable[..., Any], *arguments: object) -> None:
        self.function, self.arguments = function, arguments

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[object, ...]]:
        return self.function, self.arguments


def refused(folder: Path, data: bytes) -> str:
    """What is said of a test batch, after its path, where checksums are not asked for."""
    path = folder / "test_batch"
    path.write_bytes(data)
    said = message("cifar10", folder, split="test", verify=False)
    assert said.startswith(f"{path} is corrupt: ")
    assert said.endswith(f"; {CIFAR10_MEND}")
    return said.removeprefix(f"{path} is corrupt: ").removesuffix(f"; {CIFAR10_MEND}")


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize(
    ("function", "arguments", "name"),
    [
        (os.mkdir, ("PATH",), f"{os.name}.mkdir"),
        (np.save, ("PATH", 1), "numpy.save"),
        (eval, ("__import__('os').mkdir('PATH')",), "builtins.eval"),
    ],
)
def test_a_pickle_that_calls_anything_else_is_refused_and_calls_nothing(
    tmp_path, protocol, function, arguments, name
):
    made = tmp_path / "made.npy"
    told = [a.replace("PATH", str(made)) if isinstance(a, str) else a for a in arguments]
    data = pickle.dumps({"data": Call(function, *told)}, protocol)
    if protocol < 3:
        name = name.replace("builtins", "__builtin__")
    assert refused(tmp_path, data) == f"it asks for {name}, which no batch needs"
    assert not made.exists()
    pickle.loads(data)
    assert made.exists()  # so it would have been


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x80\2}",
        b"no pickle",
        b"\x80\2}(Pname\nu.",  # an object that lies outside
        b"\x80\2\x82\1.",  # one of a registry
        b"\x80\2](K\1K\2e",  # without an end
        b"\x80\2cnumpy\nndarray\n}(U\1aK\1ub.q",  # bytes after the end are left
        b"\x80\2cnumpy\nndarray\n)\x81.",  # a class that is none
        b"\x80\2cnumpy\nndarray\nK\1a.",  # an append to what is no list
        b"\x80\2}]K\1s.",  # a key that cannot be one
    ],
)
def test_what_is_not_a_complete_pickle_of_a_dictionary_is_refused(tmp_path, data):
    said = refused(tmp_path, data)
    whole = data.endswith(b".q")
    assert said == (
        "it is not a pickle of a dictionary" if whole else "it is not a complete pickle"
    )


IMAGES = np.zeros((2, 3072), np.uint8)
NO_IMAGES = "its data is not an array of 3072 bytes per image"
NO_LABELS = "its labels are not one integer per image"


@pytest.mark.parametrize(
    ("entries", "what"),
    [
        ({}, NO_IMAGES),
        ({b"data": number(3)}, NO_IMAGES),
        ({b"data": b"cnumpy\nndarray\n"}, NO_IMAGES),
        ({b"data": array(IMAGES[:, :-1])}, NO_IMAGES),
        ({b"data": array(IMAGES, kind=b"O8")}, NO_IMAGES),
        ({b"data": array(IMAGES[:0])}, NO_IMAGES),
        ({b"data": array(IMAGES).replace(b"K\2M\0\x0c\x86", b"K\3M\0\x0c\x86")}, NO_IMAGES),
        ({b"data": array(IMAGES)}, NO_LABELS),
        ({b"data": array(IMAGES), b"labels": numbers([1])}, NO_LABELS),
        ({b"data": array(IMAGES), b"labels": b"](K\1" + text(b"1") + b"e"}, NO_LABELS),
        ({b"data": array(IMAGES), b"labels": numbers([1, 256])}, "its labels are not of 0 to 255"),
        ({b"data": array(IMAGES), b"labels": numbers([1, 10])}, "it has labels above 9"),
    ],
)
def test_a_dictionary_without_images_or_labels_is_refused(tmp_path, entries, what):
    assert refused(tmp_path, dictionary(entries)) == what


# idx files


@pytest.mark.parametrize("place", [".", "above", "above/raw"])
@pytest.mark.parametrize(
    ("name", "folder"), [("mnist", "MNIST"), ("fashion-mnist", "FashionMNIST")]
)
@pytest.mark.parametrize("packed", [False, True])
def test_idx_files_are_read_from_raw_and_from_where_it_lies(
    tmp_path, monkeypatch, place, name, folder, packed
):
    images = np.random.default_rng(0).integers(0, 256, (3, 28, 28), dtype=np.uint8)
    files = {
        "t10k-images-idx3-ubyte": struct.pack(">4I", 0x803, 3, 28, 28) + images.tobytes(),
        "t10k-labels-idx1-ubyte": struct.pack(">2I", 0x801, 3) + bytes([7, 2, 1]),
    }
    sums = static._IDX_MD5[name] | {file: md5(data) for file, data in files.items()}
    monkeypatch.setitem(static._IDX_MD5, name, sums)
    raw = tmp_path / folder / "raw"
    raw.mkdir(parents=True)
    for file, data in files.items():
        (raw / (f"{file}.gz" if packed else file)).write_bytes(
            gzip.compress(data) if packed else data
        )
    root = tmp_path / place.replace("above", folder)
    dataset = datasets.load(name, root, split="test")
    assert np.array_equal(dataset.images, images[:, None])
    assert dataset.labels.tolist() == [7, 2, 1]
    labels = raw / f"t10k-labels-idx1-ubyte{'.gz' if packed else ''}"
    labels.unlink()
    resource = datasets.info(name).resources[3]
    assert message(name, root, split="test") == (
        f"{raw}/t10k-labels-idx1-ubyte.gz is missing; get t10k-labels-idx1-ubyte.gz "
        f"(md5 {resource.md5}) from {datasets.info(name).source}"
    )
