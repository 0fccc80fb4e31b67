"""An integer network executed event by event in plain Python: slow, and written to be obvious.

Where golden gathers windows into matrix products, this scatters each set bit of each level to all
synapses that read it, and counts what it does. One image at a time; nothing here is shared with
`lbq_hw.golden` or `lbq_hw.golden.counts` but the description of the network.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbq_hw.network import INPUT, Input, Layer, Network, Path, Shape

Position = tuple[int, int, int]  # channel, y, x
Values = dict[Position, int]


@dataclass(kw_only=True)
class Execution:
    """All integers of one image: by layer a list over timesteps, and operations by layer."""

    acc: dict[str, list[Values]] = field(default_factory=lambda: defaultdict(list))
    u: dict[str, list[Values]] = field(default_factory=lambda: defaultdict(list))
    v: dict[str, list[Values]] = field(default_factory=lambda: defaultdict(list))
    levels: dict[str, list[Values]] = field(default_factory=lambda: defaultdict(list))
    output: dict[str, list[Values]] = field(default_factory=lambda: defaultdict(list))
    logits: list[int] = field(default_factory=list)
    operations: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))


def execute(network: Network, raw: NDArray[np.uint8]) -> Execution:
    """Run one raw image, ``(C, H, W)`` or ``(T, C, H, W)``."""
    done = Execution()
    for t in range(network.timesteps):
        frame = raw if network.input.static else raw[t]
        done.output[INPUT].append(quantize(network.input, frame.tolist()))
        for layer in network.layers:
            counted = t == 0 or not network.is_static(layer)
            acc = dict.fromkeys(positions(layer.shape), 0)
            for path in layer.paths:
                source = done.output[path.source][t]
                tally = scatter(path, network.source_shape(path), layer.shape, source, acc)
                if counted:
                    done.operations[layer.name] += tally
            done.acc[layer.name].append(acc)
            current = {p: acc[p] * 2**layer.fraction_bits + int(layer.bias[p[0]]) for p in acc}
            if layer.neuron is None:
                before = done.u[layer.name][-1] if t else dict.fromkeys(current, 0)
                done.u[layer.name].append({p: before[p] + current[p] for p in current})
                done.logits = [done.u[layer.name][-1][p] for p in positions(layer.shape)]
            else:
                fire(layer, current, done)
                formed = sum(s.bit_count() for s in done.output[layer.name][t].values())
                done.operations[layer.name]["formation"] += formed
    return done


def quantize(description: Input, frame: list[list[list[int]]]) -> Values:
    """Shift, clip and frame the raw pixels."""
    border = description.border
    levels = {}
    for c, y, x in positions(description.tensor_shape):
        row, column = y - border, x - border
        if 0 <= row < description.shape[1] and 0 <= column < description.shape[2]:
            value = frame[c][row][column] // 2**description.shift
            levels[c, y, x] = min(value, 2**description.bits - 1)
        else:
            levels[c, y, x] = description.border_value[c]
    return levels


def scatter(path: Path, source: Shape, target: Shape, levels: Values, acc: Values) -> Counter[str]:
    """Add every event of the source to the accumulators of all synapses that read it."""
    weight = path.weight.tolist()
    tally: Counter[str] = Counter()
    pooled = path.pooled_shape(source)
    for (c, y, x), level in levels.items():
        for k in range(level.bit_length()):
            if not level >> k & 1:
                continue
            for py, px in through_pool(path, pooled, y, x):
                for to, w in synapses(path, weight, target, c, py, px):
                    acc[to] += 2 ** (k + path.exponent) * w
                    tally["bit_sparse"] += 1
                    tally["unary"] += 2**k
                    tally["shifts"] += k > 0
    return tally


def through_pool(path: Path, pooled: Shape, y: int, x: int) -> Iterator[tuple[int, int]]:
    """Windows of the sum-pool that cover a position; the position itself without one."""
    if path.pool is None:
        yield y, x
        return
    pool = path.pool
    for py in covering(y, pool.kernel[0], pool.stride[0], pool.padding[0], pooled[1]):
        for px in covering(x, pool.kernel[1], pool.stride[1], pool.padding[1], pooled[2]):
            yield py, px


def synapses(
    path: Path, weight: Any, target: Shape, c: int, y: int, x: int
) -> Iterator[tuple[Position, int]]:
    """Neurons that read a (pooled) position, with their weights."""
    if path.is_identity:
        yield (c, y, x), weight[c]
        return
    for oy in covering(y, path.kernel[0], path.stride[0], path.padding[0], target[1]):
        for ox in covering(x, path.kernel[1], path.stride[1], path.padding[1], target[2]):
            ky = y + path.padding[0] - oy * path.stride[0]
            kx = x + path.padding[1] - ox * path.stride[1]
            for o in range(target[0]):
                yield (o, oy, ox), weight[o][c][ky][kx]


def covering(index: int, kernel: int, stride: int, padding: int, outputs: int) -> list[int]:
    """Windows along one axis that contain an index."""
    return [o for o in range(outputs) if 0 <= index + padding - o * stride < kernel]


def fire(layer: Layer, current: Values, done: Execution) -> None:
    """One timestep of the neurons and of the max-pool behind them."""
    neuron = layer.neuron
    assert neuron is not None
    history = done.v[layer.name]
    before = history[-1] if history else dict.fromkeys(current, 0)
    u, v, levels = {}, {}, {}
    for p, value in current.items():
        theta, reset = int(neuron.theta[p[0]]), int(neuron.reset[p[0]])
        u[p] = neuron.decay * before[p] // 2**neuron.decay_bits + value
        levels[p] = sum(u[p] >= k * theta for k in range(1, neuron.capacity + 1))
        v[p] = u[p] - (reset if levels[p] > 0 else 0)
        if neuron.to_zero and levels[p] > 0:
            v[p] = 0
        if neuron.floor is not None and v[p] < neuron.floor[p[0]]:
            v[p] = int(neuron.floor[p[0]])
    done.u[layer.name].append(u)
    done.v[layer.name].append(v)
    done.levels[layer.name].append(levels)
    done.output[layer.name].append(max_pool(layer, levels))


def max_pool(layer: Layer, levels: Values) -> Values:
    if layer.pool is None:
        return levels
    pool = layer.pool
    output = dict.fromkeys(positions(layer.output_shape), 0)
    for (c, y, x), level in levels.items():
        for oy in covering(
            y, pool.kernel[0], pool.stride[0], pool.padding[0], layer.output_shape[1]
        ):
            for ox in covering(
                x, pool.kernel[1], pool.stride[1], pool.padding[1], layer.output_shape[2]
            ):
                output[c, oy, ox] = max(output[c, oy, ox], level)
    return output


def positions(shape: Shape) -> Iterator[Position]:
    channels, height, width = shape
    return ((c, y, x) for c in range(channels) for y in range(height) for x in range(width))


def as_array(steps: list[Values], shape: Shape) -> NDArray[Any]:
    """Values over time as ``(T, C, H, W)``; object integers, so that none can overflow."""
    array = np.empty((len(steps), *shape), dtype=object)
    for t, values in enumerate(steps):
        for position, value in values.items():
            array[t, *position] = value
    return array
