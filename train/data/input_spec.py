"""From raw pixels to the input of a network."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class InputSpec:
    """How a raw uint8 input becomes the input of the first layer.

        q = min(raw >> shift, 2**bits - 1)      the integer that the hardware gets
        x = q / full_scale                      then (x - mean) / std per channel, if given

    ``shape`` is (channels, height, width) of an image or of one time slice; ``static`` says that
    one image serves every timestep. ``full_scale`` is 2**bits - 1 unless given.

    ``white`` is the raw value that means full scale; data with a full scale of its own, such as
    pictures, is scaled to it. It is ``raw_full_scale`` if given, else the largest raw value that
    becomes 1.0. If pixels are not scaled (``full_scale`` of at most 1), it is the largest raw value
    that is not saturated.
    """

    shape: tuple[int, int, int]
    static: bool
    bits: int
    shift: int = 0
    full_scale: float = 0.0
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    raw_full_scale: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", tuple(self.shape))
        object.__setattr__(self, "mean", tuple(self.mean))
        object.__setattr__(self, "std", tuple(self.std))
        if len(self.shape) != 3 or not all(isinstance(n, int) and n > 0 for n in self.shape):
            raise ValueError(f"shape must be three positive integers, not {self.shape!r}")
        if not isinstance(self.static, bool):
            raise TypeError(f"static must be a bool, not {self.static!r}")
        for name, low, high in (("bits", 1, 8), ("shift", 0, 7)):
            value = getattr(self, name)
            if not isinstance(value, int):
                raise TypeError(f"{name} must be an integer, not {value!r}")
            if not low <= value <= high:
                raise ValueError(f"{name} must be {low} to {high}, not {value!r}")
        if self.full_scale < 0:
            raise ValueError(f"full_scale must be positive, not {self.full_scale!r}")
        object.__setattr__(self, "full_scale", float(self.full_scale or 2**self.bits - 1))
        if int(self.full_scale) >= 2**self.bits:
            raise ValueError(
                f"full_scale must be at most {2**self.bits - 1}, the largest of {self.bits} bits, "
                f"not {self.full_scale:g}: give more bits, or shift"
            )
        largest = self.largest_raw
        if not isinstance(self.raw_full_scale, int) or not 0 <= self.raw_full_scale <= largest:
            raise ValueError(
                f"raw_full_scale must be an integer of 1 to {largest}, which {self.bits} bits and "
                f"a shift of {self.shift} keep, not {self.raw_full_scale!r}"
            )
        if len(self.mean) != len(self.std):
            raise ValueError(
                f"mean and std must be given together, not {self.mean!r} and {self.std!r}"
            )
        if len(self.mean) not in (0, self.shape[0]):
            raise ValueError(f"mean must have {self.shape[0]} values, not {self.mean!r}")
        if any(value <= 0 for value in self.std):
            raise ValueError(f"std must be positive, not {self.std!r}")

    @property
    def largest_raw(self) -> int:
        """The largest raw value that is not saturated."""
        return min(2 ** (self.bits + self.shift) - 1, 255)

    @property
    def white(self) -> int:
        """The raw value that means full scale."""
        if self.raw_full_scale:
            return self.raw_full_scale
        if self.full_scale <= 1:
            return self.largest_raw
        return min(((int(self.full_scale) + 1) << self.shift) - 1, self.largest_raw)

    def limits(self) -> tuple[Tensor, Tensor]:
        """The least and the largest input of the first layer, both (C, 1, 1)."""
        ends = torch.tensor((0, 255), dtype=torch.uint8).view(2, 1, 1, 1)
        low, high = self.normalize(ends.expand(2, self.shape[0], 1, 1))
        return low, high

    def normalize(self, raw: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
        """The input of the first layer for a raw uint8 tensor (..., C, H, W)."""
        if self.shift:
            raw = raw >> self.shift
        if self.bits + self.shift < 8:
            raw = raw.clamp(max=2**self.bits - 1)
        x = raw.to(dtype) / self.full_scale
        if not self.mean:
            return x
        # Python scalars, not tensors: a tensor made here would be copied to the device each time.
        channels = zip(x.unbind(-3), self.mean, self.std, strict=True)
        return torch.stack([(channel - mean) / std for channel, mean, std in channels], -3)
