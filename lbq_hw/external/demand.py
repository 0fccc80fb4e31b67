"""What the layers of a network ask of a core with external memory: blocks of weight rows, events.

A *block* is what is fetched at once: the weight rows of one tap of one path and of some of its
channels, for one tile; or the rows of an identity. Its events in one row of the output are counted
from the levels of a sample, exactly, but for those of an identity, which are averaged over tiles.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbq_hw.compiler import patches, weights
from lbq_hw.compiler.windows import ONE_PIXEL
from lbq_hw.config import CoreConfig
from lbq_hw.network import INPUT, Layer, Network, Path, Window
from lbq_hw.numeric import plane_count, signed_width, sum_bounds

Levels = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, kw_only=True, eq=False)
class Block:
    """Weight rows of one tile that are fetched at once.

    `path`: number of the path in its layer. `runs`: RUN records that read it. `requests` of one
    step. `events` of each row of the output, all timesteps together.
    """

    path: int
    rows: int
    runs: int
    requests: int
    events: NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class LayerDemand:
    """One layer: `steps` of each output row of one tile; `segments` by path; `blocks` of a tile;
    `partial_bits`, signed, which the sums of its convolutions are proven to fit.
    """

    name: str
    tiles: int
    rows: int
    steps: NDArray[np.int64]
    segments: tuple[int, ...]
    nulls: float
    partial_bits: int
    blocks: tuple[Block, ...]
    resident: tuple[Block, ...]
    """Blocks that stay while their layer runs: those of identities, which are small."""

    @property
    def events(self) -> float:
        """Of all tiles."""
        return self.tiles * sum(float(b.events.sum()) for b in (*self.blocks, *self.resident))


def demands(
    network: Network, config: CoreConfig, levels: Levels, *, block_rows: int
) -> tuple[LayerDemand, ...]:
    """Every layer of the network; `levels` of every tensor by name, ``(frames, C, H, W)``.

    Those of the input are as the network has them; they are gathered here if the compiler does so.
    """
    gathered, how = patches.rewrite(network, config)
    tensors = dict(levels)
    if how is not None:
        tensors[INPUT] = how.gather(np.asarray(levels[INPUT]))
    most = {layer.name: layer.capacity for layer in gathered.layers}
    most[INPUT] = gathered.input.capacity
    return tuple(
        _layer(layer, gathered.is_static(layer), gathered.timesteps, tensors, most, config,
               block_rows)
        for layer in gathered.layers
    )  # fmt: skip


def _layer(
    layer: Layer,
    static: bool,
    timesteps: int,
    tensors: Levels,
    most: dict[str, int],
    config: CoreConfig,
    block_rows: int,
) -> LayerDemand:
    planes = {name: plane_count(level) for name, level in most.items()}
    pool = layer.pool or ONE_PIXEL
    _, height, width = layer.output_shape
    positions = _over(np.ones(layer.shape[1:]), pool, (height, width))
    times = 1 if static else timesteps
    blocks: list[Block] = []
    resident: list[Block] = []
    for number, path in enumerate(layer.paths):
        source = np.asarray(tensors[path.source])
        repeat = times if len(source) == 1 else 1  # a static source is read at every timestep
        made = _identity if path.is_identity else _conv
        for rows, runs, events in made(layer, path, source, config, block_rows):
            block = Block(
                path=number,
                rows=rows,
                runs=runs,
                requests=runs * planes[path.source],
                events=repeat * _over(events, pool, (height, width)).sum(axis=1),
            )
            (resident if path.is_identity else blocks).append(block)
    return LayerDemand(
        name=layer.name,
        tiles=weights.tile_count(layer.shape[0], config.lanes),
        rows=height,
        steps=(times * positions.sum(axis=1)).astype(np.int64),
        segments=tuple(planes[path.source] for path in layer.paths),
        nulls=5.0 if resident else 1.0,
        partial_bits=_partial_bits(layer, most),
        blocks=tuple(blocks),
        resident=tuple(resident),
    )


def _partial_bits(layer: Layer, most: dict[str, int]) -> int:
    """Passes that leave partial sums have no identity: it comes with the last."""
    low = high = np.zeros(layer.shape[0], np.int64)
    for path in layer.paths:
        if not path.is_identity:
            taps = path.pool.taps if path.pool else 1
            least, largest = sum_bounds(path.weight, taps * most[path.source])
            low, high = low + (least << path.exponent), high + (largest << path.exponent)
    return signed_width(int(low.min()), int(high.max()))


def _conv(
    layer: Layer, path: Path, source: NDArray[Any], config: CoreConfig, block_rows: int
) -> list[tuple[int, int, NDArray[np.float64]]]:
    """Weight rows, runs and events by pixel of each tap and range of channels."""
    del config
    bits = np.bitwise_count(source.astype(np.uint16)).sum(axis=0).astype(np.float64)
    channels = len(bits)
    starts = range(0, channels, block_rows)
    counts = np.stack([bits[start : start + block_rows].sum(axis=0) for start in starts])
    if path.pool is not None:
        counts = _over(counts, path.pool, path.pooled_shape(source.shape[1:])[1:])
    runs = path.pool.taps if path.pool else 1
    return [
        (min(block_rows, channels - start), runs, _tap(part, path, tap, layer.shape[1:]))
        for tap in product(range(path.kernel[0]), range(path.kernel[1]))
        for start, part in zip(starts, counts, strict=True)
    ]


def _identity(
    layer: Layer, path: Path, source: NDArray[Any], config: CoreConfig, block_rows: int
) -> list[tuple[int, int, NDArray[np.float64]]]:
    """One block of all limbs; a plane of a pixel and a tile is one event if any bit is set."""
    del block_rows
    limbs = len(weights.limbs(path.weight, lanes=config.lanes, weight_bits=config.weight_bits))
    tiles = weights.tile_count(len(path.weight), config.lanes)
    padded = np.pad(source, ((0, 0), (0, -source.shape[1] % config.lanes), (0, 0), (0, 0)))
    grouped = padded.reshape(len(source), tiles, config.lanes, *source.shape[2:])
    seen = sum(
        (grouped >> plane & 1).any(axis=2).sum(axis=(0, 1))
        for plane in range(int(source.max(initial=1)).bit_length())
    )
    counts = np.asarray(seen, np.float64)
    if path.pool is not None:
        counts = _over(counts, path.pool, layer.shape[1:])
    taps = path.pool.taps if path.pool else 1
    return [(limbs, taps, limbs * counts / tiles)]


def _over(values: NDArray[Any], window: Window, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Sums over the taps of a window that moves, ``(..., H, W)`` -> ``(..., *shape)``."""
    taps = product(range(window.kernel[0]), range(window.kernel[1]))
    return np.sum([_tap(values, window, tap, shape) for tap in taps], axis=0)


def _tap(
    values: NDArray[Any], window: Window | Path, tap: tuple[int, int], shape: tuple[int, ...]
) -> NDArray[np.float64]:
    """What one tap of a window meets at each of its places; 0 outside."""
    found = values.astype(np.float64)
    for axis in (0, 1):
        size = values.shape[axis - 2]
        at = np.arange(shape[axis]) * window.stride[axis] + tap[axis] - window.padding[axis]
        inside = (at >= 0) & (at < size)
        found = np.take(found, np.clip(at, 0, size - 1), axis=axis - 2)
        found = found * (inside[:, None] if axis == 0 else inside)
    return found
