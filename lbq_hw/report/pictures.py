"""Inputs as small PNG pictures for the page; browsers enlarge them without smoothing."""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np
from numpy.typing import NDArray

_GREY, _COLOUR = 0, 2  # colour types of PNG


def picture(raw: NDArray[np.uint8]) -> str:
    """A raw input ``(C, H, W)``, or its frames ``(T, C, H, W)``, as PNG in base64.

    Three channels are colours; others, and the frames of a recording, are added up. The brightest
    value is white.
    """
    values = raw.astype(np.int64)
    if values.ndim == 4:
        values = values.sum(axis=0)
    if values.shape[0] != 3:
        values = values.sum(axis=0, keepdims=True)
    values = values * 255 // max(int(values.max()), 1)
    return base64.b64encode(png(np.moveaxis(values, 0, -1).astype(np.uint8))).decode("ascii")


def png(pixels: NDArray[np.uint8]) -> bytes:
    """A PNG file of pixels ``(H, W, 1)`` or ``(H, W, 3)``."""
    height, width, channels = pixels.shape
    kind = _COLOUR if channels == 3 else _GREY
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)  # each row unfiltered
    parts = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)),
        (b"IDAT", zlib.compress(rows, 9)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in parts
    )
