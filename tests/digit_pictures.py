"""The embedded digits as a user would bring them: as pictures, or as arrays of another range."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from lbq_hw import datasets

DIGITS = tuple("0123456789")
WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def whitened(images: np.ndarray) -> np.ndarray:
    """Digits of 0 to 16 as pictures have them, 0 to 255."""
    return ((images.astype(int) * 255 + 8) // 16).astype(np.uint8)


def write(root: Path, names: Sequence[str] = DIGITS, *, split: str = "test") -> Path:
    """Digits of a split as PNG files, one folder per class, which has its name in `names`."""
    digits = datasets.load("digits", split=split)
    for name in names:
        (root / name).mkdir(parents=True)
    pairs = zip(whitened(digits.images), digits.labels, strict=True)
    for number, (image, label) in enumerate(pairs):
        Image.fromarray(image[0]).save(root / names[int(label)] / f"{number:04}.png")
    return root
