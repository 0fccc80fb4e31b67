"""CIFAR-10 and CIFAR-100 in both published forms: binary batches, and Python pickles.

torchvision downloads and unpacks the pickles. The batches of a form are read from the folder that
the user names, from the form's own subfolder, or from its archive.
"""

from __future__ import annotations

import io
import tarfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lbq_hw.datasets import class_names
from lbq_hw.datasets.base import DatasetInfo, Resource, check_md5
from lbq_hw.datasets.pickled import read_dictionary, to_table

Arrays = tuple[np.ndarray, np.ndarray]

_PAGE = "https://www.cs.toronto.edu/~kriz/"
_PIXELS = 3 * 32 * 32


@dataclass(frozen=True, kw_only=True)
class Form:
    """A published form of a dataset: an archive of one folder, with the batches and md5 per split.

    ``parse`` turns a batch into images and labels, or raises ValueError with the reason.
    """

    archive: Resource
    folder: str
    batches: dict[str, dict[str, str]]
    parse: Callable[[bytes], Arrays]


def _binary(label_bytes: int) -> Callable[[bytes], Arrays]:
    """Parser of records: ``label_bytes`` bytes, the last of which is the label, and an image."""
    record = label_bytes + _PIXELS

    def parse(data: bytes) -> Arrays:
        if not data or len(data) % record:
            raise ValueError(f"its records are not of {record} bytes each")
        records = np.frombuffer(data, np.uint8).reshape(-1, record)
        return records[:, label_bytes:], records[:, label_bytes - 1].astype(np.int64)

    return parse


def _python(key: bytes) -> Callable[[bytes], Arrays]:
    """Parser of a dictionary: ``data``, one row per image, and a list of labels called ``key``."""

    def parse(data: bytes) -> Arrays:
        batch = read_dictionary(data)
        images, labels = to_table(batch.get(b"data")), batch.get(key)
        if images is None or images.shape[1] != _PIXELS:
            raise ValueError(f"its data is not an array of {_PIXELS} bytes per image")
        if not isinstance(labels, list) or [*map(type, labels)] != [int] * len(images):
            raise ValueError(f"its {key.decode()} are not one integer per image")
        if not 0 <= min(labels) <= max(labels) < 256:
            raise ValueError(f"its {key.decode()} are not of 0 to 255")
        return images, np.array(labels, np.int64)

    return parse


# Binary batches come first: errors ask for their archive, and a download fetches it.
FORMS = {
    "cifar10": (
        Form(
            archive=Resource(
                name="cifar-10-binary.tar.gz",
                md5="c32a1d4ab5d03f1284b67883e8d87530",
                url=f"{_PAGE}cifar-10-binary.tar.gz",
            ),
            folder="cifar-10-batches-bin",
            batches={
                "train": {
                    "data_batch_1.bin": "5dd7e06a14cb22eb9f671a540d1b7c25",
                    "data_batch_2.bin": "5ea93a67294ea407fff1d09f752e9692",
                    "data_batch_3.bin": "942cd6a4bcdd0dd3c604fbe906cb4421",
                    "data_batch_4.bin": "ae636b3ba5c66a11e91e8cb52e771fcb",
                    "data_batch_5.bin": "53f37980c15c3d472c316c40844f3f0d",
                },
                "test": {"test_batch.bin": "803d5f7f4d78ea53de84dbe85f74fb6d"},
            },
            parse=_binary(1),
        ),
        Form(
            archive=Resource(name="cifar-10-python.tar.gz", md5="c58f30108f718f92721af3b95e74349a"),
            folder="cifar-10-batches-py",
            batches={
                "train": {
                    "data_batch_1": "c99cafc152244af753f735de768cd75f",
                    "data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
                    "data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
                    "data_batch_4": "634d18415352ddfa80567beed471001a",
                    "data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
                },
                "test": {"test_batch": "40351d587109b95175f43aff81a1287e"},
            },
            parse=_python(b"labels"),
        ),
    ),
    "cifar100": (
        Form(
            archive=Resource(
                name="cifar-100-binary.tar.gz",
                md5="03b5dce01913d631647c71ecec9e9cb8",
                url=f"{_PAGE}cifar-100-binary.tar.gz",
            ),
            folder="cifar-100-binary",
            batches={
                "train": {"train.bin": "6172c7755cfe09b2fe270c85cebc1b15"},
                "test": {"test.bin": "4499cfba6c016c1be1438163640a0898"},
            },
            parse=_binary(2),
        ),
        Form(
            archive=Resource(
                name="cifar-100-python.tar.gz", md5="eb9058c3a382ffc7106e4002c42a8d85"
            ),
            folder="cifar-100-python",
            batches={
                "train": {"train": "16019d7e3df5f24257cddd939b257f8d"},
                "test": {"test": "f0ef6b0ae62326f3e7ffdfab6717acfc"},
            },
            parse=_python(b"fine_labels"),
        ),
    ),
}


def _info(name: str, title: str, names: tuple[str, ...]) -> DatasetInfo:
    return DatasetInfo(
        name=name,
        shape=(3, 32, 32),
        class_names=names,
        temporal=False,
        max_value=255,
        source=f"{title}, {_PAGE}cifar.html",
        resources=(FORMS[name][0].archive,),
    )


CIFAR10, CIFAR100 = (
    _info("cifar10", "CIFAR-10", class_names.CIFAR10),
    _info("cifar100", "CIFAR-100", class_names.CIFAR100),
)


def read_cifar(info: DatasetInfo, root: Path, split: str, *, verify: bool) -> Arrays:
    """Images and labels from the first form of which a batch is found."""
    form, place = _find(info, root, split)
    names = form.batches[split]
    batches = _packed if place.is_file() else _unpacked
    images, labels = [], []
    for path, data in batches(info, form.archive, place, names, verify=verify):
        try:
            pixels, numbers = form.parse(data)
        except ValueError as error:
            raise info.corrupt(path, str(error), form.archive) from error
        if numbers.max() >= info.classes:
            raise info.corrupt(path, f"it has labels above {info.classes - 1}", form.archive)
        images.append(pixels.reshape(-1, *info.shape))
        labels.append(numbers)
    return np.concatenate(images), np.concatenate(labels)


def _find(info: DatasetInfo, root: Path, split: str) -> tuple[Form, Path]:
    """The form that is found, and its folder or archive."""
    binary, python = FORMS[info.name]
    for form in (binary, python):
        for folder in (root, root / form.folder):
            if any((folder / name).is_file() for name in form.batches[split]):
                return form, folder
        if (root / form.archive.name).is_file():
            return form, root / form.archive.name
    first = next(iter(binary.batches[split]))
    instead = f"name the folder in which torchvision has put {python.folder}"
    raise info.missing(root / first, binary.archive, instead=instead)


def _unpacked(
    info: DatasetInfo, archive: Resource, folder: Path, names: dict[str, str], *, verify: bool
) -> Iterator[tuple[str, bytes]]:
    """Path and contents of each batch in a folder."""
    for name, md5 in names.items():
        path = folder / name
        if not path.is_file():
            raise info.missing(path, archive)
        data = path.read_bytes()
        if verify:
            check_md5(data, md5, path, info, archive)
        yield str(path), data


def _packed(
    info: DatasetInfo, archive: Resource, path: Path, names: dict[str, str], *, verify: bool
) -> Iterator[tuple[str, bytes]]:
    """Path and contents of each batch in an archive; the md5 of the archive covers all batches."""
    packed, found = path.read_bytes(), {}
    if verify:
        check_md5(packed, archive.md5, path, info, archive)
    try:
        with tarfile.open(fileobj=io.BytesIO(packed), mode="r:gz") as opened:
            for member in opened:
                name = Path(member.name).name
                if name in names and (handle := opened.extractfile(member)):
                    found[name] = handle.read()
    except (OSError, EOFError, tarfile.TarError, zlib.error) as error:
        raise info.corrupt(path, "it is not a complete tar.gz file", archive) from error
    for name in names:
        if name not in found:
            raise info.corrupt(path, f"it has no {name}", archive)
        yield f"{path}:{name}", found[name]
