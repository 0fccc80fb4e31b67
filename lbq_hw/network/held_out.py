"""Which images of a user's undivided data a network was not trained on."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lbq_hw.network import limits
from lbq_hw.network.base import require

_SHA256 = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True, kw_only=True)
class HeldOut:
    """Images that were held out in training, so that the network can be tested on them.

    Members: `data`, the SHA-256 (hex) of the whole dataset as it was read; `count`, how many images
    it has; `indices` of those held out, counted from 0, in ascending order.
    """

    data: str
    count: int
    indices: tuple[int, ...]

    def __post_init__(self) -> None:
        require(
            isinstance(self.data, str) and _SHA256.fullmatch(self.data) is not None,
            f"held_out data must be a SHA-256 in lower-case hexadecimal, not {self.data!r}",
        )
        require(
            type(self.count) is int and 1 <= self.count <= limits.MAX_IMAGES,
            f"held_out count must be an integer of 1..{limits.MAX_IMAGES}, not {self.count!r}",
        )
        require(
            1 <= len(self.indices) <= limits.MAX_HELD_OUT,
            f"held_out indices must be 1 to {limits.MAX_HELD_OUT}, not {len(self.indices)}",
        )
        ascending = all(a < b for a, b in zip(self.indices, self.indices[1:], strict=False))
        require(
            all(type(index) is int for index in self.indices)
            and ascending
            and self.indices[0] >= 0
            and self.indices[-1] < self.count,
            f"held_out indices must be integers of 0..{self.count - 1}, in ascending order",
        )
