"""Readers of event-camera recordings, and their integration into frames.

A recording becomes T frames: the time from its first to its last event is cut into T slices of
equal duration, and a frame counts the events of its slice per polarity and pixel (channel 0: off,
darker; channel 1: on, brighter), saturated at 255.
"""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lbq_hw.datasets import class_names
from lbq_hw.datasets.base import DatasetError, DatasetInfo, Resource

Arrays = tuple[np.ndarray, np.ndarray]

_NMNIST_FILES = "https://data.mendeley.com/public-files/datasets/468j46mzdv/files/"

NMNIST = DatasetInfo(
    name="nmnist",
    shape=(2, 34, 34),
    class_names=class_names.DIGITS,
    temporal=True,
    max_value=255,
    source="N-MNIST, https://www.garrickorchard.com/datasets/n-mnist",
    resources=(
        Resource(
            name="Train.zip",
            md5="20959b8e626244a1b502305a9e6e2031",
            url=f"{_NMNIST_FILES}39c25547-014b-4137-a934-9d29fa53c7a0/file_downloaded",
            unpacks_to="Train",
        ),
        Resource(
            name="Test.zip",
            md5="69ca8762b2fe404d9b9bad1103e97832",
            url=f"{_NMNIST_FILES}05a4d654-7e03-4c15-bdfa-9bb2bcbea494/file_downloaded",
            unpacks_to="Test",
        ),
    ),
)
_NMNIST_COUNTS = {"train": 60000, "test": 10000}

DVS128_GESTURE = DatasetInfo(
    name="dvs128-gesture",
    shape=(2, 128, 128),
    class_names=class_names.DVS128_GESTURE,
    temporal=True,
    max_value=255,
    source="DVS128 Gesture, https://research.ibm.com/interactive/dvsgesture/",
    resources=(
        Resource(
            name="DvsGesture.tar.gz",
            md5="8a5c71fb11e24e5ca5b11866ca6c00a1",
            unpacks_to="DvsGesture",
        ),
    ),
)

_FIGSHARE = "https://ndownloader.figshare.com/files/"
_CIFAR10_DVS_CLASSES = {
    "airplane": ("7712788", "0afd5c4bf9ae06af762a77b180354fdd"),
    "automobile": ("7712791", "8438dfeba3bc970c94962d995b1b9bdd"),
    "bird": ("7712794", "a9c207c91c55b9dc2002dc21c684d785"),
    "cat": ("7712812", "52c63c677c2b15fa5146a8daf4d56687"),
    "deer": ("7712815", "b6bf21f6c04d21ba4e23fc3e36c8a4a3"),
    "dog": ("7712818", "f379ebdf6703d16e0a690782e62639c3"),
    "frog": ("7712842", "cad6ed91214b1c7388a5f6ee56d08803"),
    "horse": ("7712851", "e7cbbf77bec584ffbf913f00e682782a"),
    "ship": ("7712836", "41c7bd7d6b251be82557c6cce9a7d5c9"),
    "truck": ("7712839", "89f3922fd147d9aeff89e76a2b0b70a7"),
}
_CIFAR10_DVS_PER_CLASS, _CIFAR10_DVS_TRAIN = 1000, 900

CIFAR10_DVS = DatasetInfo(
    name="cifar10-dvs",
    shape=(2, 128, 128),
    class_names=tuple(_CIFAR10_DVS_CLASSES),
    temporal=True,
    max_value=255,
    source="CIFAR10-DVS, https://figshare.com/articles/dataset/CIFAR10-DVS_New/4724671",
    resources=tuple(
        Resource(name=f"{name}.zip", md5=md5, url=f"{_FIGSHARE}{number}", unpacks_to=name)
        for name, (number, md5) in _CIFAR10_DVS_CLASSES.items()
    ),
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Events:
    """One recording: column, row, polarity (1: brighter) and time in microseconds, as int64."""

    x: np.ndarray
    y: np.ndarray
    p: np.ndarray
    t: np.ndarray

    def between(self, start: int, end: int) -> Events:
        """The events with ``start <= t < end``."""
        chosen = (self.t >= start) & (self.t < end)
        return Events(x=self.x[chosen], y=self.y[chosen], p=self.p[chosen], t=self.t[chosen])

    def inside(self, height: int, width: int) -> bool:
        """Whether every event lies on a sensor of this size."""
        return not len(self.t) or bool(self.x.max() < width and self.y.max() < height)


def integrate(
    events: Events, *, timesteps: int, height: int, width: int, block: int = 1
) -> np.ndarray:
    """Frames (timesteps, 2, height // block, width // block) of event counts, saturated at 255.

    Slices are equal in duration: an event at ``t`` falls into slice
    ``(t - first) * timesteps // (last - first + 1)``. Squares of block x block pixels are summed.
    """
    shape = (timesteps, 2, height // block, width // block)
    if not len(events.t):
        return np.zeros(shape, np.uint8)
    first = events.t.min()
    slices = (events.t - first) * timesteps // (events.t.max() - first + 1)
    place = ((slices * 2 + events.p) * shape[2] + events.y // block) * shape[3] + events.x // block
    counts = np.bincount(place, minlength=timesteps * 2 * shape[2] * shape[3])
    return np.minimum(counts, 255).astype(np.uint8).reshape(shape)


def read_events(
    info: DatasetInfo, root: Path, split: str, *, timesteps: int, block: int, verify: bool
) -> Arrays:
    """Frames (n, T, 2, H, W) and labels of every recording of a split."""
    _, height, width = info.shape
    frames, labels = [], []
    for events, label in _RECORDINGS[info.name](info, root, split, verify):
        frames.append(
            integrate(events, timesteps=timesteps, height=height, width=width, block=block)
        )
        labels.append(label)
    if not frames:
        raise DatasetError(f"{root} must hold {split} recordings of {info.name!r}, not none")
    return np.stack(frames), np.array(labels, np.int64)


def _nmnist(
    info: DatasetInfo, root: Path, split: str, verify: bool
) -> Iterator[tuple[Events, int]]:
    """From Train/ and Test/ with one folder per digit, ordered by file number, or from one .npz."""
    res = info.resources[0 if split == "train" else 1]
    folder = root / res.unpacks_to
    packed = sorted(root.glob("*.npz"))
    if not folder.is_dir() and len(packed) == 1:
        yield from _packed(info, packed[0], split, res)
        return
    if not folder.is_dir():
        raise info.missing(folder, res)
    paths = sorted(folder.glob("[0-9]/*.bin"), key=lambda path: path.name)
    if verify and len(paths) != _NMNIST_COUNTS[split]:
        what = f"it has {len(paths)} recordings instead of {_NMNIST_COUNTS[split]}"
        raise info.corrupt(folder, what, res)
    for path in paths:
        events = parse_nmnist(path.read_bytes())
        if events is None or not events.inside(34, 34):
            raise info.corrupt(path, "it is not a list of 40-bit events on 34x34 pixels", res)
        yield events, int(path.parent.name)


def parse_nmnist(data: bytes) -> Events | None:
    """Entries of 40 bits: x, y, then polarity and 23 bits of time. An entry with row 240 is not an
    event: it adds 2**13 us to all later times.
    """
    if len(data) % 5:
        return None
    raw = np.frombuffer(data, np.uint8).reshape(-1, 5).astype(np.int64)
    time = (raw[:, 2] & 127) << 16 | raw[:, 3] << 8 | raw[:, 4]
    overflow = raw[:, 1] == 240
    time += np.cumsum(overflow) << 13
    raw, time = raw[~overflow], time[~overflow]
    return Events(x=raw[:, 0], y=raw[:, 1], p=raw[:, 2] >> 7, t=time)


def _packed(
    info: DatasetInfo, path: Path, split: str, res: Resource
) -> Iterator[tuple[Events, int]]:
    """From one .npz, for each split: ``<split>_events`` (a structured array with the integer fields
    x, y, p, t of all recordings, one after the other), ``<split>_offsets`` (n + 1 indices:
    recording i is ``events[offsets[i]:offsets[i + 1]]``) and ``<split>_labels`` (n)."""
    _, height, width = info.shape
    try:
        with path.open("rb") as handle, np.load(handle, allow_pickle=False) as arrays:
            events = arrays[f"{split}_events"]
            offsets = arrays[f"{split}_offsets"]
            labels = arrays[f"{split}_labels"]
        whole = len(offsets) == len(labels) + 1 and offsets[-1] == len(events)
        whole = whole and offsets[0] == 0 and bool((np.diff(offsets) >= 0).all())
        for values, bound in (
            (events["x"], width),
            (events["y"], height),
            (events["p"], 2),
            (labels, info.classes),
        ):
            whole = whole and bool(((values >= 0) & (values < bound)).all())
    except (OSError, EOFError, LookupError, TypeError, ValueError, zipfile.BadZipFile) as error:
        what = f"it is not an .npz of packed {split} events"
        raise info.corrupt(path, what, res) from error
    if not whole:
        what = f"its packed {split} events, offsets and labels do not fit together"
        raise info.corrupt(path, what, res)
    for start, end, label in zip(offsets[:-1], offsets[1:], labels, strict=True):
        part = events[start:end]
        yield Events(**{field: part[field].astype(np.int64) for field in "xypt"}), int(label)


def _dvs128_gesture(
    info: DatasetInfo, root: Path, split: str, _verify: bool
) -> Iterator[tuple[Events, int]]:
    """From the .aedat files named in trials_to_<split>.txt; each row of <name>_labels.csv (class
    from 1, start and end in microseconds) is one recording."""
    res = info.resources[0]
    folder = root / res.unpacks_to if (root / res.unpacks_to).is_dir() else root
    trials = folder / f"trials_to_{split}.txt"
    if not trials.is_file():
        raise info.missing(trials, res)
    for name in trials.read_text().split():
        path = folder / name
        table = path.with_name(f"{path.stem}_labels.csv")
        for file in (path, table):
            if not file.is_file():
                raise info.missing(file, res)
        events = parse_aedat3(path.read_bytes())
        if events is None or not events.inside(128, 128):
            raise info.corrupt(path, "it is not a complete AEDAT 3.1 file of 128x128 pixels", res)
        try:
            rows = [[int(cell) for cell in row.split(",")] for row in _lines(table)[1:]]
            trials_of_file = [(label - 1, start, end) for label, start, end in rows]
        except ValueError as error:
            raise info.corrupt(table, "its rows are not class,start,end", res) from error
        for label, start, end in trials_of_file:
            if not 0 <= label < info.classes:
                raise info.corrupt(table, f"it has classes outside 1..{info.classes}", res)
            yield events.between(start, end), label


def _lines(path: Path) -> list[str]:
    return [line for line in path.read_text().splitlines() if line.strip()]


def parse_aedat3(data: bytes) -> Events | None:
    """The valid polarity events of an AEDAT 3.1 file; None when the file is not complete."""
    marker = b"#!END-HEADER\r\n"
    place = data.find(marker)
    if not data.startswith(b"#!AER-DAT3.1") or place < 0:
        return None
    place += len(marker)
    address, time = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    while place < len(data):
        if place + 28 > len(data):
            return None
        kind, _, size, _, overflow, capacity, number, _ = struct.unpack_from(
            "<hhiiiiii", data, place
        )
        place += 28
        if min(size, number) < 0 or number > capacity or place + capacity * size > len(data):
            return None
        if kind == 1 and size == 8:
            packet = np.frombuffer(data, "<u4", 2 * number, place).reshape(-1, 2).astype(np.int64)
            address.append(packet[:, 0])
            time.append(packet[:, 1] | overflow << 31)
        place += capacity * size
    words, times = np.concatenate(address), np.concatenate(time)
    words, times = words[words & 1 == 1], times[words & 1 == 1]
    return Events(x=words >> 17, y=words >> 2 & 0x7FFF, p=words >> 1 & 1, t=times)


def _cifar10_dvs(
    info: DatasetInfo, root: Path, split: str, verify: bool
) -> Iterator[tuple[Events, int]]:
    """From one folder of .aedat files per class. There is no official split: of each class, by
    number, the first 900 recordings are for training and the last 100 for testing.
    """
    for label, res in enumerate(info.resources):
        folder = root / res.unpacks_to
        if not folder.is_dir():
            raise info.missing(folder, res)
        paths = sorted(folder.glob("*.aedat"), key=lambda path: (len(path.name), path.name))
        if verify and len(paths) != _CIFAR10_DVS_PER_CLASS:
            what = f"it has {len(paths)} recordings instead of {_CIFAR10_DVS_PER_CLASS}"
            raise info.corrupt(folder, what, res)
        cut = len(paths) * _CIFAR10_DVS_TRAIN // _CIFAR10_DVS_PER_CLASS
        for path in paths[:cut] if split == "train" else paths[cut:]:
            events = parse_aedat2(path.read_bytes())
            if events is None:
                raise info.corrupt(path, "it is not a complete AEDAT 2.0 file", res)
            yield events, label


def parse_aedat2(data: bytes) -> Events | None:
    """The events of a DVS128 in an AEDAT 2.0 file, upright; None when the file is not complete.

    Bits 1 to 7 of an address are the sensor's column and bits 8 to 14 its row, counted from the
    opposite corner, since the camera lay on its side. Bit 0 is 1 for a darker pixel.
    """
    if not data.startswith(b"#!AER-DAT2.0"):
        return None
    place = 0
    while data[place : place + 1] == b"#":
        place = data.find(b"\n", place) + 1
        if place == 0:
            return None
    if (len(data) - place) % 8:
        return None
    raw = np.frombuffer(data, ">u4", offset=place).reshape(-1, 2).astype(np.int64)
    address, time = raw[:, 0], raw[:, 1]
    return Events(
        x=127 - (address >> 8 & 127), y=127 - (address >> 1 & 127), p=1 - (address & 1), t=time
    )


_RECORDINGS = {
    "nmnist": _nmnist,
    "dvs128-gesture": _dvs128_gesture,
    "cifar10-dvs": _cifar10_dvs,
}
