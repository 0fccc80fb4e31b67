"""The example for ImageNet runs from pictures in folders to an integer network."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from examples import example
from PIL import Image

from lbq_hw import load


def write_pictures(folder: Path, classes: int, each: int) -> None:
    """Pictures of noise in a shade of their class, none square and no two of one size."""
    random = np.random.default_rng(0)
    for split, name, number in np.ndindex(2, classes, each):
        place = folder / ("train", "val")[split] / f"n0000000{name}"
        place.mkdir(parents=True, exist_ok=True)
        shape = (40 + 3 * number, 50 + 2 * name, 3)
        pixels = random.integers(0, 60, shape) + 190 * name // max(1, classes - 1)
        Image.fromarray(pixels.astype(np.uint8)).save(place / f"picture_{number}.JPEG")


def test_a_folder_of_jpegs_is_trained_and_exported(tmp_path, capsys):
    write_pictures(tmp_path / "data", classes=3, each=4)
    small = ["--size", "32", "--widths", "4", "4", "8", "8", "--batch", "6", "--workers", "0"]
    words = ["--data", str(tmp_path / "data"), "--out", str(tmp_path / "run"), *small]
    assert example("imagenet").main([*words, "--epochs", "2", "--timesteps", "2"]) == 0
    told = capsys.readouterr().out.splitlines()[-1]
    assert told.startswith("resnet18: ")
    assert told.endswith(" % on 12 of them")
    network = load(tmp_path / "run" / "net.lbq")
    assert network.input.shape == (3, 32, 32)
    assert network.class_names == ("n00000000", "n00000001", "n00000002")
    assert len(network.layers) == 18  # the readout among them; shortcuts lead into layers
