"""Layouts of pixels, and what a plane memory holds of random pictures, by the compiler's code."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbq_hw.compiler.patches import Patches
from lbq_hw.compiler.tensors import Tensor, pack_slices
from lbq_hw.isa.pixels import PixelLayout

PLAIN = PixelLayout(
    channels=1, height=4, width=5, bits=2, frames=1, border=0, border_value=(), kernel=(1, 1),
    stride=(1, 1), padding=(0, 0), base=3, pitch=1, row_words=1, word=32,
)  # fmt: skip


def layout(**changes: Any) -> PixelLayout:
    """`PLAIN` but for `changes`, with as many words per row as it needs."""
    made = dataclasses.replace(PLAIN, **changes)
    return dataclasses.replace(made, row_words=-(-made.outputs[1] * made.pitch // made.word))


LAYOUTS = {
    "a picture as it is": layout(),
    "pixels that straddle slices": layout(channels=3, bits=3, pitch=3, width=13),
    "a pitch of 12 bits": layout(channels=3, pitch=12, width=5, word=64),
    "gathered taps": layout(kernel=(3, 3), padding=(1, 1), pitch=16, bits=4),
    "a stride that leaves rows over": layout(
        kernel=(3, 3), stride=(2, 2), padding=(1, 1), pitch=16, height=6, width=8
    ),
    "stride 3, kernel 2": layout(kernel=(2, 2), stride=(3, 3), pitch=4, height=7, width=9),
    "narrow words": layout(kernel=(2, 3), pitch=8, word=8, bits=1),
    "words of two slices": layout(channels=2, kernel=(3, 3), padding=(1, 1), pitch=32, word=64),
    "a field of view of two slices": layout(channels=5, kernel=(3, 3), pitch=64, word=64),
    "frames": layout(frames=2, kernel=(3, 3), padding=(0, 1), pitch=16),
    "a border": layout(
        channels=2, border=1, border_value=(1, 2), kernel=(3, 3), padding=(1, 1), pitch=32
    ),
    "one column": layout(width=1, kernel=(3, 1), padding=(1, 0), pitch=4),
}


def random_picture(shape: PixelLayout, seed: int) -> NDArray[np.uint8]:
    """Levels ``(frames, C, H, W)``."""
    size = (shape.frames, shape.channels, shape.height, shape.width)
    return np.random.default_rng(seed).integers(0, 1 << shape.bits, size, dtype=np.uint8)


def pixels(shape: PixelLayout, picture: NDArray[np.uint8]) -> list[int]:
    """A picture's pixels in their order, each as one number."""
    rows = np.moveaxis(picture, 1, -1).reshape(-1, shape.channels).tolist()
    return [sum(level << shape.bits * c for c, level in enumerate(pixel)) for pixel in rows]


def packed(shape: PixelLayout, numbers: list[int], word_bits: int) -> list[int]:
    """Pixels as words without gaps."""
    whole = sum(number << shape.pixel_bits * at for at, number in enumerate(numbers))
    count = -(-len(numbers) * shape.pixel_bits // word_bits)
    return [whole >> word_bits * at & (1 << word_bits) - 1 for at in range(count)]


def expected(shape: PixelLayout, picture: NDArray[np.uint8]) -> dict[int, int]:
    """Slices of the plane memory by their addresses."""
    levels = picture
    if b := shape.border:
        levels = np.pad(picture, ((0, 0), (0, 0), (b, b), (b, b)))
        frame = np.array(shape.border_value, np.uint8)[:, None, None]
        levels[:] = frame
        levels[..., b:-b, b:-b] = picture
    if shape.kernel != (1, 1):
        taps = shape.taps * shape.channels
        gather = Patches(
            kernel=shape.kernel, stride=shape.stride, padding=shape.padding, channels=taps
        )
        levels = gather.gather(levels)
    tensor = Tensor(
        name="input", shape=levels.shape[1:], planes=shape.bits, frames=shape.frames,
        pitch=shape.pitch, word=shape.word, born=-1, dies=0, base=shape.base,
    )  # fmt: skip
    assert tensor.row_words == shape.row_words
    slices = pack_slices(tensor.pack(levels)).reshape(-1).tolist()
    first = shape.base * shape.parts
    return {first + at: value for at, value in enumerate(slices)}
