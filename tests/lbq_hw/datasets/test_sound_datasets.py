"""The reader of spoken digits against files made here, and the real ones if any."""

from __future__ import annotations

import os
import wave
from pathlib import Path

import numpy as np
import pytest

from lbq_hw import audio, datasets
from lbq_hw.datasets import DatasetError

SOURCE = "the Free Spoken Digit Dataset, https://github.com/Jakobovski/free-spoken-digit-dataset"


def write(
    path: Path, samples: np.ndarray, *, rate: int = 8000, channels: int = 1, width: int = 2
) -> None:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(width)
        file.setframerate(rate)
        file.writeframes(samples.astype("<i2").tobytes())


def noise(count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-9000, 9000, count)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two digits of two speakers, number 4 to test on and number 5 to train on."""
    (tmp_path / "recordings").mkdir()
    for digit in (3, 7):
        for speaker in ("ann", "bob_b"):
            for number in (4, 5):
                path = tmp_path / "recordings" / f"{digit}_{speaker}_{number}.wav"
                write(path, noise(300 * number, digit * number))
    return tmp_path


def message(root: Path, *, verify: bool = False) -> str:
    with pytest.raises(DatasetError) as caught:
        datasets.load("fsdd", root, split="test", timesteps=10, verify=verify)
    return str(caught.value)


@pytest.mark.parametrize(("split", "number"), [("train", 5), ("test", 4)])
def test_recordings_are_the_levels_of_the_filter_bank(
    folder: Path, split: str, number: int
) -> None:
    """Cut off where they are long, and with silence behind where they are short."""
    read = datasets.load("fsdd", folder, split=split, timesteps=20, verify=False)
    assert read.labels.tolist() == [3, 3, 7, 7]
    assert read.images.shape == (4, 20, 1, audio.ROWS, len(audio.BANDS))
    for image, digit in zip(read.images, read.labels.tolist(), strict=True):
        samples = np.zeros((1, 20 * audio.FRAME), np.int16)
        heard = noise(300 * number, digit * number)[: samples.size]
        samples[0, : len(heard)] = heard
        levels = audio.FilterBank().levels(samples)
        np.testing.assert_array_equal(image[:, 0], audio.remembered(levels)[0])


def test_other_recordings_than_the_official_ones_are_told(folder: Path) -> None:
    told = message(folder, verify=True)
    assert told.startswith(f"{folder}/recordings is corrupt: its 8 recordings, by name, have md5 ")
    assert told.endswith(f"get recordings/ (md5 2c93442f2c808e24d4d913f6be24d32c) from {SOURCE}")


def test_a_missing_folder_is_told(tmp_path: Path) -> None:
    assert message(tmp_path).startswith(f"{tmp_path}/recordings is missing; get recordings/ ")


def test_a_split_without_recordings_is_told(folder: Path) -> None:
    for path in (folder / "recordings").glob("*_4.wav"):
        path.unlink()
    told = message(folder)
    assert told == f"{folder}/recordings must hold test recordings of 'fsdd', not none"


@pytest.mark.parametrize("contents", [b"", b"RIFF", b"RIFF\x00\x00\x00\x00WAVEjunk" * 4])
def test_a_file_that_is_no_wav_is_told(folder: Path, contents: bytes) -> None:
    path = folder / "recordings" / "3_ann_4.wav"
    path.write_bytes(contents)
    assert message(folder).startswith(f"{path} is corrupt: it is not a .wav file (")


@pytest.mark.parametrize("form", [{"rate": 16000}, {"channels": 2}, {"width": 1}])
def test_another_form_of_sound_is_told(folder: Path, form: dict[str, int]) -> None:
    path = folder / "recordings" / "3_ann_4.wav"
    write(path, noise(100, 0), **form)
    assert message(folder).startswith(
        f"{path} is corrupt: it must have one channel of 16 bits and 8000 samples per second; "
    )


def test_the_size_of_a_frame_is_fixed(folder: Path) -> None:
    datasets.load("fsdd", folder, split="test", timesteps=2, size=8, verify=False)
    with pytest.raises(ValueError, match="size must be 8 for spoken digits, not 4"):
        datasets.load("fsdd", folder, split="test", timesteps=2, size=4, verify=False)


@pytest.mark.parametrize(("split", "count"), [("train", 2700), ("test", 300)])
def test_real_recordings(split: str, count: int) -> None:
    root = Path(os.environ.get("LBQ_DATA", "")) / "fsdd"
    if "LBQ_DATA" not in os.environ or not (root / "recordings").is_dir():
        pytest.skip("LBQ_DATA names no folder that holds fsdd/recordings")
    dataset = datasets.load("fsdd", root, split=split, timesteps=64)
    assert dataset.images.shape == (count, 64, 1, 8, 16)
    assert np.bincount(dataset.labels).tolist() == [count // 10] * 10
