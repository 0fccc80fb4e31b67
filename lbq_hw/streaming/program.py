"""The contents of a streaming core's memories for one network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lbq_hw.isa.record import SLICE
from lbq_hw.network import Input
from lbq_hw.numeric import Integers
from lbq_hw.streaming import records
from lbq_hw.streaming.config import StreamConfig
from lbq_hw.streaming.records import StreamRegion


@dataclass(frozen=True, kw_only=True)
class Tensor:
    """Place of a tensor: its first level word, its map's first row, its planes, its words per
    pixel.
    """

    shape: tuple[int, int, int]
    base: int
    map: int
    planes: int
    pixel: int


@dataclass(frozen=True, kw_only=True, eq=False)
class StreamProgram:
    """A network compiled for one core; it runs for any number of steps.

    Members: `image`, the entries of every region that a step does not change; `tensors` by name;
    `logits`, the first word of the readout's membranes, and their `shape` (K, H, W); `proven`, the
    number of steps for which no membrane can overflow (None: it never can). After that the core
    reports an overflow.
    """

    name: str
    config: StreamConfig
    input: Input
    image: Mapping[StreamRegion, Sequence[int]]
    tensors: Mapping[str, Tensor]
    logits: int
    shape: tuple[int, int, int]
    proven: int | None

    def events(self, frame: NDArray[np.uint8]) -> list[int]:
        """Words for EVENTS of one raw frame ``(C, H, W)``: all planes of every pixel that is not
        empty.
        """
        levels = self.input.quantize(frame[None, None])[0, 0].astype(np.int64)
        bits = np.arange(len(levels))[:, None, None]
        values = [((levels >> p & 1) << bits).sum(axis=0) for p in range(self.input.bits)]
        rows, columns = np.nonzero(levels.any(axis=0))
        return [
            records.event_word(x, y, plane, int(value[y, x]))
            for y, x in zip(rows.tolist(), columns.tolist(), strict=True)
            for plane, value in enumerate(values)
        ]

    @property
    def logit_words(self) -> int:
        """Number of words of the readout's membranes, which are consecutive."""
        classes, height, width = self.shape
        return height * width * -(-classes // self.config.units)

    def read_logits(self, words: Sequence[int]) -> Integers:
        """Logits from the words of the readout's membranes, in the order of the golden model."""
        c, (classes, height, width) = self.config, self.shape
        bits = c.membrane_bits
        values = [
            (word >> (bits * unit) & ((1 << bits) - 1)) for word in words for unit in range(c.units)
        ]
        signed = [value - (value >> (bits - 1) << bits) for value in values]
        pixels = np.array(signed, np.int64).reshape(height, width, -1)[..., :classes]
        return np.moveaxis(pixels, -1, 0).ravel()

    def read_levels(
        self, name: str, maps: Sequence[int], words: Sequence[int]
    ) -> NDArray[np.uint8]:
        """A tensor ``(C, H, W)`` from its map's rows and its level words."""
        tensor, lanes = self.tensors[name], self.config.lanes
        channels, height, width = tensor.shape
        planes, count = tensor.planes, tensor.pixel
        levels = np.zeros(tensor.shape, np.uint8)
        for y, x in np.ndindex(height, width):
            if maps[y] >> x & 1:
                pixel = words[(y * width + x) * count :][:count]
                for c in range(channels):
                    tile, lane = divmod(c, lanes)
                    bits = (pixel[tile * planes + p] >> lane & 1 for p in range(planes))
                    levels[c, y, x] = sum(bit << p for p, bit in enumerate(bits))
        return levels

    def writes(self) -> list[tuple[int, list[int]]]:
        """Addresses and 32-bit words that load the program into a core."""
        found = []
        for region, entries in self.image.items():
            parts = records.slices(self.config, region)
            for entry, value in enumerate(entries):
                words = [value >> (SLICE * part) & ((1 << SLICE) - 1) for part in range(parts)]
                found.append((records.address(self.config, region, entry), words))
        return found
