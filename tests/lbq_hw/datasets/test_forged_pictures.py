"""Random folders of pictures, some broken: refused in a line, or read as they are listed."""

from __future__ import annotations

import io
import os
import random
import re
import shutil
from collections import Counter
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from lbq_hw import datasets, evaluate, zoo
from lbq_hw.datasets import Dataset, DatasetError, Reading
from lbq_hw.datasets.reading import Background, Shape
from tests.forged import ESCAPE, assert_a_line, assert_both, bounded, counts, read_or_refused

SHAPES: tuple[Shape, ...] = ((1, 4, 5), (3, 6, 4))
BACKGROUNDS: tuple[Background | None, ...] = (None, "black", "white")
FOLDERS = (
    "0", "1", "2", "10", "007", "cat", "Cat", "b c", "\u00fc", "train", "test", ".git", "__MACOSX",
    "x" * 200, "-", "a.png",
)  # fmt: skip
ODD_FOLDERS = (ESCAPE, "x" * 201, "a\nb", os.fsdecode(b"\xff"))
SUFFIXES = (".png", ".png", ".png", ".jpg", ".JPG", ".jpeg", ".gif", ".txt", "")
MODES = ("L", "L", "L", "RGB", "RGB", "P", "1", "RGBA", "CMYK")
ODD_MODES = ("LA", "RGBA", "I;16")
NEAR = 3
"""How far JPEG may move a gray."""
ODD = 0.02
"""How often a file or a folder is none that anybody would make."""
Grays = dict[str, float | None]
"""The gray of every picture by its path, None where it cannot be known."""


def painted(draw: random.Random, background: Background | None) -> tuple[bytes, float]:
    """A picture of one gray, and the gray."""
    odd = draw.random() < ODD
    mode, gray = draw.choice(ODD_MODES if odd else MODES), draw.randrange(256)
    gray = 255 * (gray > 127) if mode == "1" else gray
    alpha = draw.randrange(256) if odd else 255
    colours: dict[str, Any] = {
        "RGB": (gray, gray, gray), "RGBA": (gray, gray, gray, alpha), "LA": (gray, alpha),
        "CMYK": (0, 0, 0, 255 - gray), "I;16": gray << 8,
    }  # fmt: skip
    made = Image.new(
        "L" if mode == "P" else mode,
        (draw.randint(1, 40), draw.randint(1, 40)),
        colours.get(mode, gray),
    )
    made = made.convert("P") if mode == "P" else made
    jpeg = mode == "CMYK" or (mode in ("L", "RGB") and draw.random() < 0.5)
    data, options = io.BytesIO(), {"exif": b"Exif\0\0" + draw.randbytes(20)} if jpeg and odd else {}
    made.save(data, "JPEG" if jpeg else "PNG", **options)
    behind = 255 if background == "white" else 0
    return data.getvalue(), (gray * alpha + behind * (255 - alpha)) / 255


@cache
def large(width: int) -> bytes:
    """A small file with a picture of many pixels."""
    data = io.BytesIO()
    Image.new("1", (width, 9_000)).save(data, "PNG")
    return data.getvalue()


def damaged(draw: random.Random, data: bytes) -> bytes:
    """A file that was cut off or altered, or is none; or one that says it is larger than it is."""
    kind = draw.choice(("cut", "flip", "flip", "other", "large"))
    if kind == "cut":
        return data[: draw.randrange(len(data))]
    if kind == "other":
        return draw.choice((b"", b"hello", b"GIF89a" + data, data[:8] + draw.randbytes(100)))
    if kind == "large":
        return large(draw.choice((8_000, 11_000, 20_000)))
    altered = bytearray(data)
    for _ in range(draw.randint(1, 4)):
        altered[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    return bytes(altered)


def forge(draw: random.Random, root: Path, background: Background | None) -> Grays:
    """A folder with folders, now and then with train and test between; the grays of its files."""
    grays: Grays = {}
    parts = draw.choice(((".",), (".",), ("train", "test"), ("test",), ("train",)))
    for part in parts:
        names = draw.sample(FOLDERS, draw.randint(0 if draw.random() < 0.1 else 1, 4))
        names += [draw.choice(ODD_FOLDERS)] if draw.random() < ODD else []
        for name in names:
            folder = root / part / name
            folder.mkdir(parents=True, exist_ok=True)
            for number in range(draw.randint(0, 3)):
                put(draw, folder / f"{number}{draw.choice(SUFFIXES)}", grays, background)
    if draw.random() < 0.2:
        put(draw, root / "more.png", grays, background)
    if draw.random() < 5 * ODD and not (root / "link").exists():
        (root / "link").symlink_to(draw.choice((".", "nowhere", "link", "/dev", *FOLDERS[:6])))
    return grays


def put(draw: random.Random, path: Path, grays: Grays, background: Background | None) -> None:
    """Write a picture, or what is none."""
    data, gray = painted(draw, background)
    kind = draw.random()
    if kind < ODD:
        path.write_bytes(damaged(draw, data))
        grays[str(path)] = None
    elif kind < 2 * ODD and grays:
        other = draw.choice(sorted(grays))
        path.symlink_to(other)
        grays[str(path)] = grays[other]
    elif kind < 3 * ODD:
        make: Callable[[Path], object] = draw.choice(
            (os.mkfifo, os.mkdir, lambda link: os.symlink("/dev/zero", link), lambda _: None)
        )
        make(path)
    else:
        path.write_bytes(data)
        grays[str(path)] = gray


def folders(place: Path) -> set[str]:
    found = set(os.listdir(place)) if place.is_dir() else set()
    return {name for name in found - {"__MACOSX", ".git"} if os.path.isdir(place / name)}


def assert_listed(dataset: Dataset, root: Path, shape: Shape, grays: Grays) -> None:
    """A dataset has what a listing of its folder says, and pictures their grays."""
    parts = {split: folders(root / split) for split in ("train", "test")}
    divided = any(parts.values())
    names = parts["train"] | parts["test"] if divided else folders(root)
    numbers = all(re.fullmatch("[0-9]+", name) for name in names)
    classes = sorted(names, key=lambda name: (int(name) if numbers else 0, name))
    place = root / "test" if divided else root
    found = [
        (label, place / name / one)
        for label, name in enumerate(classes)
        if (place / name).is_dir()
        for one in sorted(os.listdir(place / name))
        if one.lower().endswith((".png", ".jpg", ".jpeg"))
    ]
    assert dataset.class_names == tuple(classes)
    assert dataset.labels.tolist() == [label for label, _ in found]
    assert dataset.images.shape == (len(found), *shape)
    for image, (_, path) in zip(dataset.images, found, strict=True):
        gray = grays.get(str(path))
        assert gray is None or abs(image.astype(int) - gray).max() <= NEAR, path
    assert all(map(str.isprintable, classes))


@counts(60)
def test_a_forged_folder_is_refused_in_a_line_or_read_as_it_is_listed(
    count: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ends: Counter[str] = Counter()
    root = tmp_path / "pictures"
    for seed in range(count):
        draw = random.Random(seed)
        root.mkdir()
        shape, background = draw.choice(SHAPES), draw.choice(BACKGROUNDS)
        grays = forge(draw, root, background)
        options = {"shape": shape, "reading": Reading(background=background)}
        load = partial(datasets.load, "images", root, split="test", **options)
        dataset = read_or_refused(load, DatasetError, root, ends)
        if dataset is not None:
            assert_listed(dataset, root, shape, grays)
        else:
            words = ["--model", str(zoo.find("digits")), "--dataset", "images", "--data", str(root)]
            words += [] if background is None else ["--background", background]
            with bounded():
                assert evaluate.main(words) == 2
            out, err = capsys.readouterr()
            assert out == ""
            assert_a_line(err.removesuffix("\n"), root)
        shutil.rmtree(root)
    assert_both(ends, count)
