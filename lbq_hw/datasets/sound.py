"""Readers of spoken words, which a network sees through the filter bank of `lbq_hw.audio`.

A frame has one channel, one column per band, and one row per remembered frame: row k holds the
levels of `audio.GAP` * k frames ago. A recording has T frames, 8 ms apart; longer recordings are
cut off, shorter recordings are continued with silence.
"""

from __future__ import annotations

import hashlib
import wave
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from lbq_hw import audio
from lbq_hw.datasets import class_names
from lbq_hw.datasets.base import DatasetError, DatasetInfo, Resource

Arrays = tuple[np.ndarray, np.ndarray]

FSDD = DatasetInfo(
    name="fsdd",
    shape=(1, audio.ROWS, len(audio.BANDS)),
    class_names=class_names.DIGITS,
    temporal=True,
    max_value=audio.LEVELS,
    source="the Free Spoken Digit Dataset, https://github.com/Jakobovski/free-spoken-digit-dataset",
    resources=(
        Resource(
            name="recordings/",
            md5="2c93442f2c808e24d4d913f6be24d32c",
            unpacks_to="recordings",
        ),
    ),
)
_TESTED = 5  # test recordings per digit and speaker: the first ones, as in the official split


def read_fsdd(info: DatasetInfo, root: Path, split: str, *, timesteps: int, verify: bool) -> Arrays:
    """Levels and labels of every recording of a split, by file name."""
    paths, res = recordings(info, root), info.resources[0]
    if verify:
        total = hashlib.md5(usedforsecurity=False)
        for path in paths:
            total.update(path.read_bytes())
        if total.hexdigest() != res.md5:
            what = f"its {len(paths)} recordings, by name, have md5 {total.hexdigest()}"
            raise info.corrupt(root / res.unpacks_to, what, res)
    chosen = [path for path in paths if (_number(path) < _TESTED) == (split == "test")]
    if not chosen:
        folder = root / res.unpacks_to
        raise DatasetError(f"{folder} must hold {split} recordings of {info.name!r}, not none")
    return levels(info, chosen, frames=timesteps)


def recordings(info: DatasetInfo, root: Path) -> list[Path]:
    """The files DIGIT_SPEAKER_NUMBER.wav, by name."""
    res = info.resources[0]
    folder = root / res.unpacks_to
    if not folder.is_dir():
        raise info.missing(folder, res)
    return sorted(folder.glob("[0-9]_*_*.wav"))


def levels(info: DatasetInfo, paths: Sequence[Path], *, frames: int) -> Arrays:
    """Levels (n, frames, 1, rows, bands) and labels of recordings."""
    count = frames * audio.FRAME
    samples = np.zeros((len(paths), count), np.int16)
    for row, path in zip(samples, paths, strict=True):
        heard = _samples(info, path)[:count]
        row[: len(heard)] = heard
    heard = audio.FilterBank(len(paths)).levels(samples)
    labels = np.array([int(path.name[0]) for path in paths], np.int64)
    return audio.remembered(heard)[:, :, None], labels


def _number(path: Path) -> int:
    """The number of a recording of its digit and speaker; -1 if its name has no number."""
    last = path.stem.rpartition("_")[2]
    return int(last) if last.isdecimal() else -1


def _samples(info: DatasetInfo, path: Path) -> np.ndarray:
    """The samples of a .wav file: one channel of 16 bits, 8,000 samples per second."""
    res = info.resources[0]
    try:
        with wave.open(str(path), "rb") as file:
            form = (file.getnchannels(), file.getsampwidth(), file.getframerate())
            data = file.readframes(file.getnframes())
    except (wave.Error, EOFError, OSError) as error:
        raise info.corrupt(path, f"it is not a .wav file ({error})", res) from error
    if form != (1, 2, audio.RATE):
        what = f"it must have one channel of 16 bits and {audio.RATE} samples per second"
        raise info.corrupt(path, what, res)
    return np.frombuffer(data[: len(data) // 2 * 2], "<i2")
