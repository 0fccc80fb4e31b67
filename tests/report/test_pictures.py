from __future__ import annotations

import base64
import io

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from lbq_hw.report.pictures import picture, png


def decoded(data: bytes) -> NDArray[np.uint8]:
    return np.asarray(Image.open(io.BytesIO(data)))


@pytest.mark.parametrize("channels", [1, 3])
def test_a_png_has_the_pixels_that_it_was_made_of(channels: int) -> None:
    pixels = np.random.default_rng(1).integers(0, 256, (5, 7, channels), np.uint8)
    assert np.array_equal(decoded(png(pixels)).reshape(pixels.shape), pixels)


def test_the_brightest_value_is_white() -> None:
    raw = np.array([[[0, 4], [8, 16]]], np.uint8)
    found = decoded(base64.b64decode(picture(raw)))
    assert found.tolist() == [[0, 63], [127, 255]]
    assert decoded(base64.b64decode(picture(np.zeros_like(raw)))).max() == 0


def test_frames_and_polarities_of_a_recording_are_added_up() -> None:
    raw = np.zeros((3, 2, 2, 2), np.uint8)
    raw[:, 0, 0, 0] = 1
    raw[0, 1, 1, 1] = 1
    found = decoded(base64.b64decode(picture(raw)))
    assert found.tolist() == [[255, 0], [0, 85]]
