"""The layout of the input's pixels, on their way in and in the plane memory."""

from dataclasses import dataclass
from math import ceil, gcd

import numpy as np
from numpy.typing import NDArray

from lbq_hw.config import CoreConfig
from lbq_hw.isa.record import SLICE


@dataclass(frozen=True, kw_only=True)
class PixelLayout:
    """The pixels of a picture, or of the frames of a recording, and the tensor that they become.

    `channels`, `height`, `width` and `bits` are those of the pixels, `frames` how many pictures a
    run reads. A `border` of so many pixels on each side holds `border_value[channel]`. The tensor
    has one pixel per field of view: `kernel`, `stride` and `padding` as (rows, columns), with the
    tap (y, x) of channel c in channel ``(y * columns + x) * channels + c``; a kernel of (1, 1)
    leaves the picture as it is. `base`, `pitch`, `row_words` and `word` say where the tensor lies,
    in words and bits of the plane memory.
    """

    channels: int
    height: int
    width: int
    bits: int
    frames: int
    border: int
    border_value: tuple[int, ...]
    kernel: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[int, int]
    base: int
    pitch: int
    row_words: int
    word: int

    def __post_init__(self) -> None:
        for name in ("channels", "height", "width", "bits", "frames", "row_words"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)!r}")
        for name, least in (("kernel", 1), ("stride", 1), ("padding", 0)):
            if min(getattr(self, name)) < least:
                raise ValueError(f"{name} must be at least {least}, not {getattr(self, name)!r}")
        for name in ("border", "base"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must be at least 0, not {getattr(self, name)!r}")
        if self.bits > 8:
            raise ValueError(f"bits must be at most 8, not {self.bits!r}")
        if self.word < 8 or self.word & (self.word - 1):
            raise ValueError(f"word must be a power of two from 8 on, not {self.word!r}")
        if self.pitch < self.taps * self.channels:
            raise ValueError(
                f"pitch must be at least {self.taps * self.channels}, the channels of a field of "
                f"view, not {self.pitch!r}"
            )
        if len(self.border_value) != (self.channels if self.border else 0):
            raise ValueError(
                "border_value must have one level per channel, and none without a border, "
                f"not {self.border_value!r}"
            )
        if not all(0 <= level < 1 << self.bits for level in self.border_value):
            raise ValueError(
                f"border_value must be 0 to {(1 << self.bits) - 1}, not {self.border_value!r}"
            )
        if min(self.outputs) < 1:
            raise ValueError(f"kernel must be at most {self.padded}, not {self.kernel!r}")

    @property
    def pixel_bits(self) -> int:
        """Bits of a pixel: its channels side by side, the first one lowest."""
        return self.channels * self.bits

    @property
    def taps(self) -> int:
        return self.kernel[0] * self.kernel[1]

    @property
    def padded(self) -> tuple[int, int]:
        """Rows and columns of the picture with its border and the padding of the kernel."""
        (rows, columns), border = self.padding, self.border
        return self.height + 2 * (border + rows), self.width + 2 * (border + columns)

    @property
    def outputs(self) -> tuple[int, int]:
        """Rows and columns of the tensor."""
        rows, columns = (
            (side - kernel) // stride + 1
            for side, kernel, stride in zip(self.padded, self.kernel, self.stride, strict=True)
        )
        return rows, columns

    def fits(self, config: CoreConfig) -> bool:
        """Whether the tensor has room in the plane memory of a core, and a row in its words."""
        rows, columns = self.outputs
        end = self.base + self.frames * self.bits * rows * self.row_words
        held = columns * self.pitch <= self.row_words * self.word
        return held and self.word == config.word and end <= config.plane_words

    @property
    def slice_bits(self) -> int:
        """Bits of a plane word that one write at the host port carries."""
        return min(SLICE, self.word)

    @property
    def parts(self) -> int:
        """Slices of a plane word."""
        return self.word // self.slice_bits

    @property
    def granule(self) -> int:
        """Bits of a plane that are moved in a cycle: the most that divide a field of view and a
        slice.
        """
        return gcd(self.pitch, self.slice_bits)

    @property
    def spread_cycles(self) -> int:
        """About how many cycles a core takes to spread the pixels of a 32-bit word, a quarter more
        than in the mean of a picture.
        """
        return ceil(1.25 * self._each * SLICE / self.pixel_bits)

    @property
    def run_cycles(self) -> int:
        """About how many cycles a core takes to spread the pixels of a run."""
        return ceil(self._each * self.frames * self.height * self.width)

    @property
    def _each(self) -> float:
        """About how many cycles a core takes to spread a pixel."""
        slices = -(-self.pitch // self.slice_bits) * self.bits
        windows = self.outputs[0] * self.outputs[1] / (self.height * self.width)
        return 1 + windows * (2 + self.pitch // self.granule + 5 * slices)

    @property
    def words(self) -> int:
        """32-bit words that hold the pixels of a run."""
        return -(-self.frames * self.height * self.width * self.pixel_bits // SLICE)

    def packed(self, levels: NDArray[np.uint8]) -> NDArray[np.uint32]:
        """Levels ``(frames, C, H, W)`` as words without gaps, lowest bits first."""
        pixels = np.moveaxis(levels, 1, -1).reshape(-1, 1)
        bits = np.unpackbits(pixels, axis=1, count=self.bits, bitorder="little").ravel()
        whole = np.zeros(self.words * SLICE, np.uint8)
        whole[: len(bits)] = bits
        return np.packbits(whole, bitorder="little").view("<u4").astype(np.uint32)

    @property
    def row_slices(self) -> int:
        return self.row_words * self.parts
