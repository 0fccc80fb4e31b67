"""Forged .npz files and names: each is read, or refused in one sentence."""

from __future__ import annotations

import io
import random
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lbq_hw import datasets
from lbq_hw.datasets import Dataset, DatasetError
from tests.forged import ESCAPE, assert_both, counts, read_or_refused

SHAPE = (1, 4, 5)


def member(array: object) -> bytes:
    data = io.BytesIO()
    np.lib.format.write_array(data, np.asarray(array), allow_pickle=True)
    return data.getvalue()


def packed(members: dict[str, bytes]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return data.getvalue()


def honest() -> dict[str, bytes]:
    images = np.arange(6 * 20, dtype=np.uint8).reshape(6, *SHAPE)
    return {"images.npy": member(images), "labels.npy": member(np.arange(6) % 3)}


def flip(source: random.Random) -> bytes:
    data = bytearray(packed(honest()))
    for _ in range(source.randint(1, 8)):
        data[source.randrange(len(data))] ^= 1 << source.randrange(8)
    return bytes(data)


def cut(source: random.Random) -> bytes:
    data = packed(honest())
    return data[: source.randrange(len(data))]


def flip_inside(source: random.Random) -> bytes:
    """The archive is whole, and an array is not."""
    members = honest()
    name = source.choice(sorted(members))
    data = bytearray(members[name])
    for _ in range(source.randint(1, 4)):
        data[source.randrange(len(data))] ^= 1 << source.randrange(8)
    return packed(members | {name: bytes(data)})


def other_arrays(source: random.Random) -> bytes:
    values = (
        np.zeros(()), np.zeros((0, 1, 4, 5), np.uint8), np.array(["a", "b"]), np.array([None]),
        np.full(6, -1), np.full(6, 1 << 40), np.full((6, *SHAPE), 0.5), np.array([True] * 6),
        np.zeros((6,) + (1,) * 20, np.uint8),
    )  # fmt: skip
    names = ("images", "labels", "layout", "class_names", "full_scale", "test_images")
    return packed(honest() | {f"{source.choice(names)}.npy": member(source.choice(values))})


def other_members(source: random.Random) -> bytes:
    name = source.choice(("images", "labels.txt", "../labels.npy", "images.npy/", ESCAPE))
    return packed(honest() | {name: source.randbytes(source.randrange(40))})


def huge_header(source: random.Random) -> bytes:
    """An array that says it is larger than any memory."""
    length = source.choice((10**9, 10**12, 1 << 62))
    text = str({"descr": "|u1", "fortran_order": False, "shape": (length, 1, 4, 5)}).ljust(117)
    header = b"\x93NUMPY\x01\x00" + (len(text) + 1).to_bytes(2, "little") + text.encode() + b"\n"
    return packed(honest() | {"images.npy": header + bytes(50)})


FORGERIES: tuple[Callable[[random.Random], bytes], ...] = (
    flip, cut, flip_inside, other_arrays, other_members, huge_header,
)  # fmt: skip


def assert_means(dataset: Dataset, path: Path) -> None:
    """A dataset has the numbers that numpy reads from the file."""
    with np.load(path) as arrays:
        part = "test_" if {"test_images", "test_labels"} & set(arrays) else ""
        images, labels = arrays[f"{part}images"], arrays[f"{part}labels"]
    assert images.dtype == dataset.images.dtype == np.uint8
    assert images.ravel().tolist() == dataset.images.ravel().tolist()  # no axis is moved
    assert labels.tolist() == dataset.labels.tolist()
    assert len(dataset.images) == len(dataset.labels) > 0
    assert 0 <= dataset.labels.min() <= dataset.labels.max() < dataset.classes


@counts(120)
def test_a_forged_file_is_refused_in_one_sentence_or_means_what_it_says(
    count: int, tmp_path: Path
) -> None:
    ends: Counter[str] = Counter()
    path = tmp_path / "forged.npz"
    for seed in range(count):
        path.write_bytes(FORGERIES[seed % len(FORGERIES)](random.Random(seed)))
        dataset = read_or_refused(
            lambda: datasets.load("npz", path, split="test"), DatasetError, path, ends
        )
        if dataset is not None:
            assert_means(dataset, path)
    assert_both(ends, count)


def refusal(path: Path) -> str:
    with pytest.raises(DatasetError) as caught:
        datasets.load("npz", path, split="test")
    return str(caught.value)


def test_a_member_that_is_no_array_is_named(tmp_path: Path) -> None:
    path = tmp_path / "data.npz"
    path.write_bytes(packed(honest() | {"readme.txt": b"hello"}))
    assert refusal(path) == (
        f"{path} cannot be read ('readme.txt' in it is not an array): write it with "
        "numpy.savez(file, images=..., labels=...)"
    )


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "data.npz"
    zeros = np.lib.format.header_data_from_array_1_0(np.zeros((1, *SHAPE), np.uint8))
    zeros["shape"] = (1 << 24, *SHAPE)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open("images.npy", "w") as stream:
            np.lib.format.write_array_header_1_0(stream, zeros)
            for _ in range(20):
                stream.write(bytes(1 << 24))
        archive.writestr("labels.npy", honest()["labels.npy"])
    assert path.stat().st_size < 1 << 20
    text = refusal(path)
    assert text.startswith(f"{path} cannot be read ('images.npy' in it would take 320 MB of memory")


def test_large_arrays_that_are_not_packed_are_read() -> None:
    entry = zipfile.ZipInfo("images.npy")
    entry.file_size = entry.compress_size = 1 << 34
    datasets.own._check_entry(entry)


def test_names_of_files_and_folders_do_not_reach_the_terminal_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / f"{ESCAPE}.npz"
    path.write_bytes(b"nothing")
    text = refusal(path)
    assert text.isprintable()
    assert r"\x1b[31mred\x1b]0;title\x07.npz" in text
    folder = tmp_path / "pictures" / "class"
    folder.mkdir(parents=True)
    Image.new("L", (4, 4)).save(folder / "one.png")
    (folder / f"{ESCAPE}.txt").touch()
    [note] = datasets.load("images", folder.parent, split="test", shape=SHAPE).notes
    assert note.isprintable()
    assert r"class/\x1b[31mred" in note
