"""The layout of a tensor in the activation memory: one bit plane after the other.

    word = base + ((t * K + k) * H + y) * row_words + (x * pitch + c) // W
    bit  = (x * pitch + c) % W

A tensor that the core writes has a pitch such that no tile's chunk straddles a word.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbq_hw.network import Shape

Bits = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class Tensor:
    """One tensor in memory: `frames` is T, or 1 if it is the same at every timestep.

    `born` and `dies` are the numbers of the first and last layer during which the tensor must be
    kept; the input is born at -1.
    """

    name: str
    shape: Shape
    planes: int
    frames: int
    pitch: int
    word: int
    born: int
    dies: int
    base: int = 0

    @property
    def row_bits(self) -> int:
        return self.shape[2] * self.pitch

    @property
    def row_words(self) -> int:
        return -(-self.row_bits // self.word)

    @property
    def plane_words(self) -> int:
        return self.shape[1] * self.row_words

    @property
    def frame_words(self) -> int:
        return self.planes * self.plane_words

    @property
    def words(self) -> int:
        return self.frames * self.frame_words

    @property
    def end(self) -> int:
        return self.base + self.words

    def pack(self, levels: NDArray[Any]) -> Bits:
        """Levels ``(frames, C, H, W)`` -> bits ``(words, word)``; bits outside the tensor are 0."""
        channels, height, width = self.shape
        if levels.shape != (self.frames, *self.shape):
            raise ValueError(
                f"levels of {self.name!r} must be of shape {(self.frames, *self.shape)}, "
                f"not {levels.shape}"
            )
        rows = np.zeros((self.frames, self.planes, height, self.row_words * self.word), np.bool_)
        pixels = rows[..., : self.row_bits].reshape(*rows.shape[:3], width, self.pitch)
        for plane in range(self.planes):
            pixels[:, plane, ..., :channels] = np.moveaxis(levels >> plane & 1, 1, -1)
        rows[..., : self.row_bits] = pixels.reshape(*rows.shape[:3], -1)
        return rows.reshape(self.words, self.word)

    def unpack(self, bits: Bits) -> NDArray[np.uint8]:
        """The inverse of `pack`, whatever the bits outside the tensor are."""
        channels, height, width = self.shape
        rows = bits.reshape(self.frames, self.planes, height, self.row_words * self.word)
        pixels = rows[..., : self.row_bits].reshape(*rows.shape[:3], width, self.pitch)
        levels = np.zeros((self.frames, *self.shape), np.uint8)
        for plane in range(self.planes):
            levels |= np.moveaxis(pixels[:, plane, ..., :channels], -1, 1).astype(np.uint8) << plane
        return levels


def pack_slices(bits: Bits) -> NDArray[np.uint32]:
    """Words of bits ``(words, W)`` -> 32-bit slices ``(words, slices)``, lowest bits first."""
    slices = -(-bits.shape[1] // 32)
    padded = np.zeros((len(bits), slices * 32), np.bool_)
    padded[:, : bits.shape[1]] = bits
    return np.packbits(padded, axis=1, bitorder="little").view("<u4").astype(np.uint32)
