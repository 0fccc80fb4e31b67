"""Where a layer has work at a timestep: events, visited positions, owed leaks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from lbq_hw import golden
from lbq_hw.golden import Trace
from lbq_hw.network import Layer, Network, Pair, Path
from lbq_hw.numeric import Integers

Bools = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True, eq=False)
class LayerVisits:
    """One layer and one recording, each array ``(T, H, W)``.

    `events`: weight rows that a tile of the position adds. `hot`: positions that would fire without
    an event, because a membrane still reaches its threshold after the previous step. `visited`:
    positions that must be executed; in a layer that does not rest, all positions. `owed`: leaks
    that a visited position has missed since its last visit. `taps`: set bits by plane and tap,
    ``(planes, T, H, W, taps)``. `emitted`: levels ``(T, C, H, W)``; none for a readout.
    `membranes`: the smallest and the largest value of U or V.
    """

    layer: Layer
    taps: Integers
    emitted: NDArray[np.uint8]
    events: Integers
    hot: Bools
    visited: Bools
    owed: Integers
    membranes: tuple[int, int]

    def words(self, t: int, y: int, x: int) -> Integers:
        """Events of one visit, ``(planes, pixels)``, only for the pixels that are not empty."""
        taps = self.taps[:, t, y, x]
        return taps[:, taps.any(axis=0)]


def rests(layer: Layer) -> bool:
    """Whether a position without an event needs no visit; its leak can be made up for later.

    Neurons must not have a bias. A readout can always rest: its biases are added once, at the end.
    """
    return layer.neuron is None or not layer.bias.any()


def visits(network: Network, raw: NDArray[np.uint8]) -> list[LayerVisits]:
    """The visits of every layer for the frames ``(T, C, H, W)`` of one recording.

    ValueError for a static input, and for max-pools, whose windows would be visited as a whole.
    """
    if network.input.static:
        raise ValueError(f"network {network.name!r} has a static input: give one for recordings")
    pools = [layer.name for layer in network.layers if layer.pool is not None]
    if pools:
        raise ValueError(f"layers {pools} have max-pools: give a network without")
    traces = golden.run(network, raw[None], keep="all").traces
    return [_layer(layer, traces) for layer in network.layers]


def _layer(layer: Layer, traces: Mapping[str, Trace]) -> LayerVisits:
    parts = [_taps(path, _output(traces[path.source])) for path in layer.paths]
    planes = max(len(part) for part in parts)
    parts = [np.pad(part, ((0, planes - len(part)), *[(0, 0)] * 4)) for part in parts]
    taps = np.concatenate(parts, axis=-1)
    events = taps.sum(axis=(0, -1))
    hot = np.zeros(events.shape, np.bool_)
    leaks, low, high = False, 0, 0
    emitted = np.zeros((len(events), 0, 0, 0), np.uint8)
    if layer.neuron is not None:
        neuron, trace = layer.neuron, traces[layer.name]
        u, v = trace.u, trace.v
        assert u is not None
        assert v is not None
        low, high = min(int(u.min()), int(v.min())), max(int(u.max()), int(v.max()))
        leaks = neuron.decay != 1 << neuron.decay_bits
        left = (v[:-1, 0].astype(np.int64) * neuron.decay) >> neuron.decay_bits
        hot[1:] = (left >= neuron.theta[:, None, None]).any(axis=1)
        emitted = _output(traces[layer.name])
    visited = (events > 0) | hot if rests(layer) else np.ones(events.shape, np.bool_)
    owed = _missed(visited) if leaks else np.zeros(events.shape, np.int64)
    return LayerVisits(
        layer=layer,
        taps=taps,
        emitted=emitted,
        events=events,
        hot=hot,
        visited=visited,
        owed=owed,
        membranes=(low, high),
    )


def _output(trace: Trace) -> NDArray[np.uint8]:
    assert trace.output is not None
    return np.asarray(trace.output[:, 0], np.uint8)


def _taps(path: Path, levels: NDArray[np.uint8]) -> Integers:
    """Set bits of every plane at every tap of every position; an identity has one tap, and one
    event for all its lanes.
    """
    planes = max(1, int(levels.max(initial=0)).bit_length())
    bits = levels[None] >> np.arange(planes, dtype=np.uint8)[:, None, None, None, None] & 1
    sums = bits.any(axis=2) if path.is_identity else bits.sum(axis=2)
    pixels: Integers = np.asarray(sums, np.int64)
    kernel, stride, padding = path.kernel, path.stride, path.padding
    if path.pool is not None:  # a pooled pixel has the taps of its window
        pool = path.pool
        pixels = _windows(pixels, pool.kernel, pool.stride, pool.padding)
    return _windows(pixels, kernel, stride, padding)


def _windows(x: Integers, kernel: Pair, stride: Pair, padding: Pair) -> Integers:
    """``(planes, T, H, W, ...)`` -> ``(planes, T, H', W', taps * ...)``."""
    sides = [(0, 0), (0, 0), *((side, side) for side in padding), *[(0, 0)] * (x.ndim - 4)]
    views = sliding_window_view(np.pad(x, sides), kernel, axis=(2, 3))  # pyright: ignore
    views = views[:, :, :: stride[0], :: stride[1]]
    return views.reshape(*views.shape[:4], -1)


def _missed(visited: Bools) -> Integers:
    """Timesteps missed between a visit and the previous one; 0 for the first, when all is 0."""
    times = np.arange(1, len(visited) + 1)[:, None, None]
    last = np.maximum.accumulate(np.where(visited, times, 0), axis=0)
    before = np.concatenate((np.zeros_like(last[:1]), last[:-1]))
    return np.where(visited & (before > 0), times - before - 1, 0)
