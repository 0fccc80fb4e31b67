"""Shared by all readers: the dataset types, the one-sentence error, checksums, download."""

from __future__ import annotations

import hashlib
import os
import tempfile
import urllib.request
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lbq_hw.decode import printable

SPLITS = ("train", "test")
VALIDATION, WHOLE = "validation", "whole"


class DatasetError(Exception):
    """A dataset cannot be read; the message is one sentence with the path and the remedy.

    A path may have any characters; control characters are shown by their codes.
    """

    def __init__(self, text: str) -> None:
        super().__init__(printable(text))


class MissingFileError(DatasetError):
    """An official file is not in the folder that the user named."""


@dataclass(frozen=True, kw_only=True)
class Resource:
    """One official file; ``unpacks_to`` is the folder that unpacking the archive creates."""

    name: str
    md5: str
    url: str = ""
    unpacks_to: str = ""


@dataclass(frozen=True, kw_only=True)
class DatasetInfo:
    """Facts about a dataset that are known before any file is read.

    ``shape`` is (channels, height, width) of an image, or of one time slice of a recording;
    ``class_names`` are in the order of labels; ``max_value`` is the largest raw value and ``bits``
    the width that holds it; ``source`` says where the official files are.
    """

    name: str
    shape: tuple[int, int, int]
    class_names: tuple[str, ...]
    temporal: bool
    max_value: int
    source: str
    resources: tuple[Resource, ...] = ()

    @property
    def classes(self) -> int:
        return len(self.class_names)

    @property
    def full_scale(self) -> int | None:
        """The raw value of full scale; None for recordings, whose pixels count events."""
        return None if self.temporal else self.max_value

    @property
    def bits(self) -> int:
        return self.max_value.bit_length()

    def missing(self, path: Path, resource: Resource, *, instead: str = "") -> MissingFileError:
        """The error for a missing file; ``instead`` names an alternative."""
        others = f", or {instead}" if instead else ""
        return MissingFileError(f"{path} is missing; {self._mend(resource)}{others}")

    def corrupt(self, path: Path | str, what: str, resource: Resource) -> DatasetError:
        return DatasetError(f"{path} is corrupt: {what}; {self._mend(resource)}")

    def no_folder(self, root: Path | None) -> MissingFileError:
        """The error for files whose folder was not given, or does not exist."""
        needs = f"dataset {self.name!r} needs the folder of its files"
        what = needs if root is None else f"there is no folder {root}; {needs}"
        fetched = all(resource.url for resource in self.resources)
        mend = "give --data DIR" + (", or let lbq train --download fetch them" if fetched else "")
        return MissingFileError(f"{what}, which come from {self.source}: {mend}")

    def _mend(self, resource: Resource) -> str:
        return f"get {resource.name} (md5 {resource.md5}) from {self.source}"


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """How images were drawn: at random from ``of`` images, with this ``seed``."""

    of: int
    seed: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Dataset:
    """One split in memory: raw images as uint8, labels as int64.

    ``images`` is (n, C, H, W), or (n, T, C, H, W) for recordings cut into T time slices.
    ``class_names`` are in the order of labels, and empty if the classes only have numbers.
    ``full_scale`` is the raw value of full scale, None if it is unknown. ``split`` is train, test,
    validation (held out of the training images), or whole if the user's own data is not divided.
    ``drawn`` is set if the images are a random choice from more images. ``notes`` are sentences for
    the user about files that were found but not read.
    """

    name: str
    images: np.ndarray
    labels: np.ndarray
    classes: int
    class_names: tuple[str, ...] = ()
    full_scale: int | None = None
    split: str = WHOLE
    drawn: Drawn | None = None
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def temporal(self) -> bool:
        return self.images.ndim == 5

    @property
    def shape(self) -> tuple[int, int, int]:
        channels, height, width = self.images.shape[-3:]
        return channels, height, width

    def digest(self) -> str:
        """SHA-256 of images and labels, as they were read."""
        total = hashlib.sha256(str(self.images.shape).encode())
        total.update(np.ascontiguousarray(self.images).data)
        total.update(np.ascontiguousarray(self.labels, "<i8").data)
        return total.hexdigest()

    def at(self, places: NDArray[np.int64]) -> Dataset:
        """The images at these places, in their order."""
        return replace(self, images=self.images[places], labels=self.labels[places])


def check_md5(
    data: bytes, expected: str, path: Path | str, info: DatasetInfo, res: Resource
) -> None:
    """Raise unless ``data``, the contents of ``path``, has the md5 ``expected``."""
    found = hashlib.md5(data, usedforsecurity=False).hexdigest()
    if found != expected:
        raise info.corrupt(path, f"its contents have md5 {found} instead of {expected}", res)


def download(info: DatasetInfo, root: Path) -> None:
    """Download the official files that ``root`` lacks; only files with the right md5 go there."""
    for resource in info.resources:
        if not (root / (resource.unpacks_to or resource.name)).exists():
            _fetch(info, resource, root)


def _fetch(info: DatasetInfo, resource: Resource, root: Path) -> None:
    mend = f"get {resource.name} (md5 {resource.md5}) from {info.source} and "
    mend += f"unpack it in {root}" if resource.unpacks_to else f"put it in {root}"
    if not resource.url:
        raise DatasetError(f"dataset {info.name!r} has no direct download; {mend}")
    root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=root, prefix=".download-") as folder:
        part = Path(folder) / resource.name
        digest = hashlib.md5(usedforsecurity=False)
        try:
            with (
                urllib.request.urlopen(resource.url, timeout=60) as source,
                part.open("wb") as sink,
            ):
                while chunk := source.read(1 << 20):
                    digest.update(chunk)
                    sink.write(chunk)
        except OSError as error:
            reason = getattr(error, "reason", error)
            raise DatasetError(f"{resource.url} cannot be fetched ({reason}); {mend}") from error
        if digest.hexdigest() != resource.md5:
            raise DatasetError(
                f"{resource.url} gave a file with md5 {digest.hexdigest()} "
                f"instead of {resource.md5}; {mend}"
            )
        if not resource.unpacks_to:
            os.replace(part, root / resource.name)
            return
        with zipfile.ZipFile(part) as archive:
            archive.extractall(Path(folder) / "unpacked")
        os.replace(Path(folder) / "unpacked" / resource.unpacks_to, root / resource.unpacks_to)
