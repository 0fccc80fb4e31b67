"""The network's input: how raw images or frames become the integers that paths read."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lbq_hw.network import limits
from lbq_hw.network.base import Shape, require

INPUT = "input"  # the name under which paths refer to the network's input


@dataclass(frozen=True, kw_only=True)
class Input:
    """Unsigned integer input: ``min(raw >> shift, 2**bits - 1)``, then a border.

    Members: `shape` of the raw image; `static` (one image for all timesteps) or one frame per
    timestep; `bits` planes; `border` pixels on each side with the value `border_value[channel]`,
    which stands for the zero padding of a network that was trained on mean-subtracted images;
    `full_scale`, the raw value of white, or None if unknown. `full_scale` serves only to map
    pictures to raw values.
    """

    shape: Shape
    static: bool
    bits: int
    shift: int = 0
    border: int = 0
    border_value: tuple[int, ...] = ()
    full_scale: int | None = None

    def __post_init__(self) -> None:
        limits.check_shape(self.shape, INPUT)
        require(1 <= self.bits <= 8, f"input bits must be between 1 and 8, not {self.bits!r}")
        require(0 <= self.shift < 8, f"input shift must be between 0 and 7, not {self.shift!r}")
        require(
            0 <= self.border <= limits.MAX_SIDE,
            f"input border must be 0..{limits.MAX_SIDE}, not {self.border!r}",
        )
        require(
            len(self.border_value) == (self.shape[0] if self.border else 0)
            and all(0 <= value <= self.capacity for value in self.border_value),
            f"input border_value must be one level 0..{self.capacity} per channel, and empty "
            f"without a border, not {self.border_value!r}",
        )
        limits.check_shape(self.tensor_shape, "input with its border")
        most = self.largest_raw
        require(
            self.full_scale is None
            or (type(self.full_scale) is int and 1 <= self.full_scale <= most),
            f"input full_scale must be an integer of 1..{most}, which {self.bits} bits and a shift "
            f"of {self.shift} keep, not {self.full_scale!r}",
        )

    @property
    def capacity(self) -> int:
        """Largest value a pixel takes."""
        return (1 << self.bits) - 1

    @property
    def largest_raw(self) -> int:
        """Largest raw value that is not saturated."""
        return min((1 << (self.bits + self.shift)) - 1, 255)

    @property
    def tensor_shape(self) -> Shape:
        """Shape of the tensor that paths see, border included."""
        channels, height, width = self.shape
        return channels, height + 2 * self.border, width + 2 * self.border

    def quantize(self, raw: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Raw uint8 images ``(n, C, H, W)`` or frames ``(n, T, C, H, W)`` -> ``(T', n, C, H, W)``.

        T' is 1 for a static input. Temporal frames become time-major, as golden wants them.
        """
        raw = np.asarray(raw)
        if raw.dtype != np.uint8:
            raise TypeError(f"raw input must be uint8, not {raw.dtype}")
        expected = 4 if self.static else 5
        if raw.ndim != expected or raw.shape[-3:] != self.shape:
            kind = "(n, C, H, W)" if self.static else "(n, T, C, H, W)"
            raise ValueError(
                f"raw input must be {kind} with (C, H, W) = {self.shape}, not {raw.shape}"
            )
        frames = raw[np.newaxis] if self.static else raw.swapaxes(0, 1)
        levels = np.minimum(frames >> self.shift, self.capacity).astype(np.uint8)
        if not self.border:
            return levels
        b = self.border
        padded = np.empty((*levels.shape[:2], *self.tensor_shape), dtype=np.uint8)
        padded[:] = np.asarray(self.border_value, dtype=np.uint8)[:, None, None]
        padded[..., b:-b, b:-b] = levels
        return padded
