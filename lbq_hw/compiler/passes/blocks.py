"""The blocks of weight rows of every layer, with their expected number of events.

Events are counted exactly from the levels of a sample; only an identity's events are averaged over
tiles. Without levels, a fixed share of all bits is assumed to be set.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbq_hw.compiler.lower import Lowered, LoweredLayer
from lbq_hw.compiler.passes.demand import ASSUMED, Block, LayerDemand, Piece
from lbq_hw.compiler.passes.split import Room
from lbq_hw.compiler.tensors import Tensor
from lbq_hw.compiler.windows import ONE_PIXEL
from lbq_hw.config import CoreConfig
from lbq_hw.network import INPUT, Layer, Network, Path, Window
from lbq_hw.numeric import signed_width, sum_bounds

Levels = Mapping[str, NDArray[Any]]
Counts = NDArray[np.float64]
MOST_ROWS = 64
LEAST_BLOCKS = 8


def block_rows(weight_rows: int) -> int:
    """Most rows of a block: 64, or fewer if the weight memory would hold fewer than 8 blocks."""
    return max(1, min(MOST_ROWS, 1 << (weight_rows // LEAST_BLOCKS).bit_length() >> 1))


def pass_room(config: CoreConfig) -> Room:
    """The room that a core with external memory has for passes."""
    rows = block_rows(config.weight_rows)
    return Room(
        slots=config.weight_rows // rows,
        block_rows=rows,
        partial_words=config.partial_words,
        partial_bits=config.partial_bits,
        groups=config.groups,
        pairs=config.pairs > 0,
    )


def demands(
    lowered: Lowered, config: CoreConfig, levels: Levels | None, *, block_rows: int
) -> tuple[LayerDemand, ...]:
    """The demand of every layer; `levels` of every tensor by name, ``(frames, C, H, W)``.

    The levels of the input are not gathered: they are as in the source network.
    """
    if levels is not None and lowered.patches is not None:
        levels = {**levels, INPUT: lowered.patches.gather(np.asarray(levels[INPUT]))}
    return tuple(
        _layer(lowered.network, layer, config, levels, block_rows) for layer in lowered.layers
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Source:
    """Activity of a tensor over all frames: the number of set `bits` of each channel and pixel, and
    the number of nonzero `words` (one per plane and tile) of each pixel.
    """

    tensor: Tensor
    bits: Counts
    words: Counts

    @classmethod
    def of(cls, tensor: Tensor, levels: Levels | None, lanes: int) -> _Source:
        tiles = -(-tensor.shape[0] // lanes)
        if levels is None:
            share = ASSUMED * tensor.planes * tensor.frames
            words = np.full(tensor.shape[1:], float(tiles * tensor.planes * tensor.frames))
            return cls(tensor=tensor, bits=np.full(tensor.shape, share), words=words)
        values = np.asarray(levels[tensor.name])
        padded = np.pad(values, ((0, 0), (0, -values.shape[1] % lanes), (0, 0), (0, 0)))
        grouped = padded.reshape(len(values), tiles, lanes, *values.shape[2:])
        words = sum(
            (grouped >> plane & 1).any(axis=2).sum(axis=(0, 1)) for plane in range(tensor.planes)
        )
        bits = np.bitwise_count(values.astype(np.uint16)).sum(axis=0)
        return cls(tensor=tensor, bits=bits.astype(np.float64), words=np.asarray(words, np.float64))


def _layer(
    network: Network,
    lowered: LoweredLayer,
    config: CoreConfig,
    levels: Levels | None,
    block_rows: int,
) -> LayerDemand:
    layer = lowered.layer
    pool = layer.pool or ONE_PIXEL
    _, height, width = layer.output_shape
    positions = _over(np.ones(layer.shape[1:]), pool, (height, width))
    times = 1 if lowered.static else network.timesteps
    blocks: list[Block] = []
    resident: list[Block] = []
    for number, path in enumerate(layer.paths):
        source = _Source.of(lowered.sources[number], levels, config.lanes)
        # A static source is read at every timestep.
        repeat = times if source.tensor.frames == 1 else 1
        made = _identity if path.is_identity else _conv
        bits = None if path.is_identity else config.row_bits(network.layer_bits(layer))
        for block in made(lowered, number, source, block_rows):
            events = repeat * _over(block.events, pool, (height, width)).sum(axis=1)
            fields = vars(block) | {"events": events, "bits": bits}
            (resident if path.is_identity else blocks).append(Block(**fields))
    return LayerDemand(
        name=layer.name,
        tiles=lowered.tiles,
        rows=height,
        steps=(times * positions.sum(axis=1)).astype(np.int64),
        segments=tuple(
            sum(segment.path == record for segment in lowered.segments)
            for record in range(len(lowered.paths))
        ),
        nulls=5.0 if resident else 1.0,
        partial_bits=_partial_bits(network, layer),
        blocks=tuple(blocks),
        resident=tuple(resident),
    )


def _partial_bits(network: Network, layer: Layer) -> int:
    """Bits of the partial sums. Identities do not count: they come in the last pass, which stores
    no partial sums.
    """
    low = high = np.zeros(layer.shape[0], np.int64)
    for path in layer.paths:
        if not path.is_identity:
            taps = path.pool.taps if path.pool else 1
            least, largest = sum_bounds(path.weight, taps * network.source_capacity(path))
            low, high = low + (least << path.exponent), high + (largest << path.exponent)
    return signed_width(int(low.min()), int(high.max()))


def _pieces(
    lowered: LoweredLayer, number: int, tap: tuple[int, int], *, channel: int = 0, offset: int = 0
) -> tuple[Piece, ...]:
    """Runs of one tap of a path from one channel on: one for each tap of its sum-pool."""
    path, source = lowered.layer.paths[number], lowered.sources[number]
    stride = (path.pool or ONE_PIXEL).stride
    return tuple(
        Piece(
            record,
            (tap[0] * stride[0] + ty) * source.row_words,
            (tap[1] * stride[1] + tx) * source.pitch + channel,
            offset,
        )
        for record, made in enumerate(lowered.paths)
        if made.number == number
        for ty, tx in product(*made.taps)
    )


def _conv(lowered: LoweredLayer, number: int, source: _Source, block_rows: int) -> Iterator[Block]:
    """The blocks of a convolution: a tap and a range of channels, or several taps, with their
    events by pixel.
    """
    layer, path, tensor = lowered.layer, lowered.layer.paths[number], source.tensor
    channels, pitch, (height, width) = tensor.shape[0], tensor.pitch, path.kernel
    taps = list(product(range(height), range(width)))
    starts = range(0, channels, block_rows)
    counts = np.stack([source.bits[start : start + block_rows].sum(axis=0) for start in starts])
    if path.pool is not None:
        counts = _over(counts, path.pool, path.pooled_shape(tensor.shape)[1:])
    counts = _padded(counts, path, layer.shape[1:])
    together = max(1, block_rows // pitch)
    for index in range(0, len(taps), together):
        some = taps[index : index + together]
        for start, part in zip(starts, counts, strict=True):
            # Taps that share a block take all rows of a pixel, so that their runs can be merged.
            size = pitch if together > 1 else min(block_rows, channels - start)
            pieces = tuple(
                piece
                for place, tap in enumerate(some)
                for piece in _pieces(lowered, number, tap, channel=start, offset=place * pitch)
            )
            row = lowered.weight_first[number] + index * pitch + start
            yield Block(
                pieces=pieces,
                length=size,
                requests=tensor.planes * len(pieces if path.pool else {ky for ky, _ in some}),
                events=np.sum([_tap(part, path, tap, layer.shape[1:]) for tap in some], axis=0),
                weights=range(row, row + (len(some) - 1) * pitch + size),
                tile_rows=len(taps) * pitch,
            )


def _identity(
    lowered: LoweredLayer, number: int, source: _Source, block_rows: int
) -> Iterator[Block]:
    """The blocks of an identity's limbs. A plane of a pixel and a tile makes one event per limb if
    any bit is set.
    """
    layer, path, tensor = lowered.layer, lowered.layer.paths[number], source.tensor
    (record,) = (index for index, made in enumerate(lowered.paths) if made.number == number)
    limbs = 1 + max(one.limb for one in lowered.segments if one.path == record)
    counts = source.words
    if path.pool is not None:
        counts = _over(counts, path.pool, layer.shape[1:])
    first = lowered.weight_first[number]
    for start in range(0, limbs, block_rows):
        pieces = _pieces(lowered, number, (0, 0)) if not start else ()
        size = min(block_rows, limbs - start)
        end = first + (start + size) * lowered.tiles
        yield Block(
            pieces=pieces,
            length=tensor.pitch,
            requests=len(pieces) * tensor.planes,
            events=size * counts / lowered.tiles,
            weights=range(first + start * lowered.tiles, end, lowered.tiles),
            tile_rows=1,
            limb=(record, start),
        )


def _over(values: NDArray[Any], window: Window, shape: tuple[int, ...]) -> Counts:
    """Sums over the taps of a window that moves, ``(..., H, W)`` -> ``(..., *shape)``."""
    padded = _padded(values, window, shape)
    taps = product(range(window.kernel[0]), range(window.kernel[1]))
    return np.sum([_tap(padded, window, tap, shape) for tap in taps], axis=0)


def _padded(values: NDArray[Any], window: Window | Path, shape: tuple[int, ...]) -> Counts:
    """The values padded with zeros, so that each tap of a window is a plain array slice."""
    pads = [(0, 0)] * (values.ndim - 2)
    for axis in (0, 1):
        before, size = window.padding[axis], values.shape[axis - 2]
        end = (shape[axis] - 1) * window.stride[axis] + window.kernel[axis]
        pads.append((before, max(0, end - before - size)))
    return np.pad(values.astype(np.float64), pads)


def _tap(
    padded: Counts, window: Window | Path, tap: tuple[int, int], shape: tuple[int, ...]
) -> Counts:
    """The values under one tap of a window, at each position of the window."""
    rows, columns = (
        slice(first, first + (count - 1) * stride + 1, stride)
        for first, count, stride in zip(tap, shape, window.stride, strict=True)
    )
    return padded[..., rows, columns]
