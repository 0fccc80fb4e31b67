"""Input patches: the host gathers the taps of each field of view of the first layer in one word.

A pixel of the input has few channels, and a field of view touches a word in each of its rows for
every bit plane, so the scanner would read far more words than there are events. After gathering, a
field of view is one pixel of ``kh * kw * C`` channels, filled up to a power of two so that no pixel
straddles a word. The convolution becomes 1x1, and each bit plane of a field of view costs one read.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbq_hw.config import CoreConfig
from lbq_hw.network import INPUT, Input, Network, Pair, Path


@dataclass(frozen=True, kw_only=True)
class Patches:
    """Gathers an input ``(T, C, H, W)`` into ``(T, channels, rows, columns)``: one pixel per field
    of view.
    """

    kernel: Pair
    stride: Pair
    padding: Pair
    channels: int

    def gather(self, levels: NDArray[Any]) -> NDArray[Any]:
        """Channel ``(ky * kw + kx) * C + c`` of a pixel is tap (ky, kx) of channel c."""
        (kh, kw), (sy, sx), (py, px) = self.kernel, self.stride, self.padding
        frames = np.pad(levels, ((0, 0), (0, 0), (py, py), (px, px)))
        windows = np.lib.stride_tricks.sliding_window_view(frames, (kh, kw), axis=(2, 3))
        taps = windows[:, :, ::sy, ::sx].transpose(0, 4, 5, 1, 2, 3)
        taps = taps.reshape(len(levels), -1, *taps.shape[4:])
        spare = self.channels - taps.shape[1]
        return np.pad(taps, ((0, 0), (0, spare), (0, 0), (0, 0)))


@dataclass(frozen=True, kw_only=True, eq=False)
class Rewritten:
    """A `network` made from `source`; it reads the input as gathered by `patches` (None: as is)."""

    source: Network
    network: Network
    patches: Patches | None = None


def rewrite(network: Network, config: CoreConfig) -> tuple[Rewritten, ...]:
    """Every possible form of a network, the preferred form first.

    The input is gathered if all its readers have the same kernel and the taps fit in a word. With
    external memory the form without gathering is possible, too.
    """
    plain = Rewritten(source=network, network=network)
    readers = [path for layer in network.layers for path in layer.paths if path.source == INPUT]
    first = readers[0]
    shared = {(path.kernel, path.stride, path.padding) for path in readers}
    taps = network.input.shape[0] * first.kernel[0] * first.kernel[1]
    channels = 1 << (taps - 1).bit_length()
    gathers = len(shared) == 1 and first.kernel != (1, 1) and channels <= config.word
    if not gathers or any(path.is_identity or path.pool for path in readers):
        return (plain,)
    kernel, stride, padding = shared.pop()
    patches = Patches(kernel=kernel, stride=stride, padding=padding, channels=channels)
    _, height, width = first.output_shape(network.input.tensor_shape)
    source = Input(
        shape=(channels, height, width), static=network.input.static, bits=network.input.bits
    )
    layers = tuple(
        replace(layer, paths=tuple(_gathered(path, channels) for path in layer.paths))
        for layer in network.layers
    )
    made = replace(network, input=source, layers=layers)
    gathered = Rewritten(source=network, network=made, patches=patches)
    return (gathered, plain) if config.external else (gathered,)


def _gathered(path: Path, channels: int) -> Path:
    if path.source != INPUT:
        return path
    rows = path.weight.transpose(0, 2, 3, 1).reshape(len(path.weight), -1)
    rows = np.pad(rows, ((0, 0), (0, channels - rows.shape[1])))
    return replace(path, weight=rows[:, :, None, None], stride=(1, 1), padding=(0, 0))
