"""How tensors lie in the activation memory, and where: one bit plane after the other.

    word = base + ((t * K + k) * H + y) * row_words + (x * pitch + c) // W
    bit  = (x * pitch + c) % W

A tensor that the core writes has a pitch such that no tile's chunk straddles a word.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbq_hw import numeric
from lbq_hw.config import CoreConfig
from lbq_hw.network import INPUT, Network, Shape

Bits = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class Tensor:
    """One tensor in memory: `frames` is T, or 1 if it is the same at every timestep.

    `born` and `dies` are the numbers of the first and last layer during which it must be kept;
    the input is born at -1.
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
        """Levels ``(frames, C, H, W)`` -> bits ``(words, word)``; all that is not a level is 0."""
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


def core_pitch(channels: int, config: CoreConfig) -> int:
    """Bits from one pixel to the next in a tensor that the core writes."""
    if channels > config.lanes // 2:
        return -(-channels // config.lanes) * config.lanes
    return 1 << (max(channels, config.granule) - 1).bit_length()


def lay_out(network: Network, config: CoreConfig) -> dict[str, Tensor]:
    """Every tensor of the network, with its lifetime; not yet placed."""
    dies = {
        path.source: index for index, layer in enumerate(network.layers) for path in layer.paths
    }
    by_identity = any(
        path.is_identity and path.source == INPUT
        for layer in network.layers
        for path in layer.paths
    )
    channels = network.input.shape[0]
    tensors = {
        INPUT: Tensor(
            name=INPUT,
            shape=network.input.tensor_shape,
            planes=network.input.bits,
            frames=1 if network.input.static else network.timesteps,
            pitch=core_pitch(channels, config) if by_identity else channels,
            word=config.word,
            born=-1,
            dies=dies.get(INPUT, -1),
        )
    }
    for index, layer in enumerate(network.layers[:-1]):
        tensors[layer.name] = Tensor(
            name=layer.name,
            shape=layer.output_shape,
            planes=numeric.plane_count(layer.capacity),
            frames=network.timesteps,
            pitch=core_pitch(layer.shape[0], config),
            word=config.word,
            born=index,
            dies=dies.get(layer.name, index),
        )
    return tensors


def place(tensors: dict[str, Tensor], align: int) -> dict[str, Tensor]:
    """Give every tensor a base, a multiple of `align`; tensors alive together do not overlap.

    First fit, once with the largest first and once in the order of birth: the better one is taken.
    """
    in_order = list(tensors.values())
    by_size = sorted(in_order, key=lambda tensor: -tensor.words)
    plans = [_first_fit(order, align) for order in (by_size, in_order)]
    best = min(plans, key=lambda plan: max(tensor.end for tensor in plan.values()))
    return {name: best[name] for name in tensors}


def _first_fit(order: Sequence[Tensor], align: int) -> dict[str, Tensor]:
    placed: dict[str, Tensor] = {}
    for tensor in order:
        base = 0
        others = [o for o in placed.values() if o.born <= tensor.dies and tensor.born <= o.dies]
        for other in sorted(others, key=lambda other: other.base):
            if base + tensor.words <= other.base:
                break
            base = max(base, -(-other.end // align) * align)
        placed[tensor.name] = replace(tensor, base=base)
    return placed
