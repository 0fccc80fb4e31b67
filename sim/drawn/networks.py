"""Random integer networks that use every feature and are small enough to execute by event."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbq_hw import numeric
from lbq_hw.network import INPUT, Input, Layer, Network, Neuron, Path, Shape, Window


def random_network(
    seed: int,
    *,
    static: bool | None = None,
    timesteps: int | None = None,
    capacity: int | None = None,
    weight_bits: int | None = None,
    layers: int | None = None,
    channels: int | None = None,
    side: int | None = None,
    floors: bool = True,
    max_pools: bool = True,
    biases: bool = True,
) -> Network:
    """A network drawn from `seed`; given arguments are kept, the rest is drawn.

    `channels` is the largest number of channels of a convolution and of classes; by default 4 and
    5. Images have `side` pixels per side; by default 3 to 6, drawn for each side. Strides, paddings
    and kernels are drawn for each axis. There are identity and projection shortcuts, sum-pools,
    exponents, max-pools, and readouts of one position or several. Without `floors`, no membrane has
    a floor, and all else is the same. Without `max_pools`, no layer has a max-pool. Without
    `biases`, neurons of two layers in three have no bias.
    """
    draw = _Draw(seed, channels, side, floors, max_pools, biases)
    return draw.network(static, timesteps, capacity, weight_bits, layers)


def with_narrow_layers(network: Network, seed: int) -> Network:
    """The same network, which has at least 5 weight bits, with weights of 2 to 4 bits in some of
    its layers, at least one.
    """
    random = np.random.default_rng(seed)
    bits = max(5, network.weight_bits)
    count = len(network.layers)
    drawn = np.where(random.random(count) < 0.6, random.integers(2, 5, count), bits)
    drawn[random.integers(count)] = random.integers(2, 5)
    layers = []
    for layer, own in zip(network.layers, drawn.tolist(), strict=True):
        limit = numeric.weight_limit(own)
        paths = tuple(
            path if path.is_identity else replace(path, weight=path.weight.clip(-limit, limit))
            for path in layer.paths
        )
        layers.append(replace(layer, paths=paths, weight_bits=own if own < bits else None))
    return replace(network, weight_bits=bits, layers=tuple(layers))


def random_images(network: Network, count: int, seed: int = 0) -> NDArray[np.uint8]:
    """Raw input of which about a third is black."""
    random = np.random.default_rng(seed)
    frames = () if network.input.static else (network.timesteps,)
    shape = (count, *frames, *network.input.shape)
    pixels = random.integers(0, 256, shape, dtype=np.uint8)
    return np.where(random.random(shape) < 1 / 3, np.uint8(0), pixels)


class _Draw:
    def __init__(
        self,
        seed: int,
        channels: int | None,
        side: int | None,
        floors: bool,
        max_pools: bool,
        biases: bool,
    ) -> None:
        self.random = np.random.default_rng(seed)
        self.resets = np.random.default_rng((seed, 1))
        self.floors = np.random.default_rng((seed, 2)) if floors else None
        self.max_pools = max_pools
        self.silent = None if biases else np.random.default_rng((seed, 3))
        self.channels, self.classes = channels or 4, channels or 5
        self.sides = (side, side) if side else (3, 6)

    def integer(self, low: int, high: int) -> int:
        return int(self.random.integers(low, high + 1))

    def chance(self, probability: float) -> bool:
        return bool(self.random.random() < probability)

    def network(
        self,
        static: bool | None,
        timesteps: int | None,
        capacity: int | None,
        weight_bits: int | None,
        layers: int | None,
    ) -> Network:
        source = self.input(self.chance(0.6) if static is None else static)
        self.limit = numeric.weight_limit(weight_bits or self.integer(2, 8))
        self.shapes: dict[str, Shape] = {INPUT: source.tensor_shape}
        self.capacities = {INPUT: source.capacity}
        spiking = [
            self.layer(f"layer{index}", capacity or self.integer(1, 31))
            for index in range(layers or self.integer(1, 4))
        ]
        return Network(
            name="random",
            input=source,
            timesteps=timesteps or self.integer(1, 4),
            weight_bits=self.limit.bit_length() + 1,
            layers=(*spiking, self.readout()),
        )

    def input(self, static: bool) -> Input:
        bits = self.integer(1, 8)
        channels = self.integer(1, 3)
        border = self.integer(0, 1)
        return Input(
            shape=(channels, self.integer(*self.sides), self.integer(*self.sides)),
            static=static,
            bits=bits,
            shift=self.integer(0, 8 - bits),
            border=border,
            border_value=tuple(self.integer(0, (1 << bits) - 1) for _ in range(channels * border)),
        )

    def layer(self, name: str, capacity: int) -> Layer:
        source = self.source()
        if self.chance(0.4):
            paths = [self.same_conv(source)]
        else:
            paths = [self.conv(source, self.integer(1, self.channels))]
        shape = paths[0].output_shape(self.shapes[paths[0].source])
        if self.chance(0.5):
            paths.append(self.shortcut(shape))
        fraction_bits = self.integer(0, 8)
        step = max(1, int(self.spread(paths) * 2 / capacity * (1 << fraction_bits)))
        decay, decay_bits = numeric.to_ratio(self.random.random(), self.integer(0, 4))
        neuron = Neuron(
            capacity=capacity,
            theta=self.random.integers(max(1, step // 2), step + 2, shape[0]),
            reset=self.random.integers(0, step + 2, shape[0]),
            decay=decay,
            decay_bits=decay_bits,
        )
        if self.resets.random() < 0.25:
            neuron = replace(neuron, to_zero=True, reset=np.zeros(shape[0], np.int64))
        if self.floors and self.floors.random() < 0.25:  # some are never reached, some always
            low = -int(step * 4.0 ** self.floors.integers(-2, 3))
            neuron = replace(neuron, floor=self.floors.integers(low, 1, shape[0]))
        bias = self.random.integers(-step, step + 1, shape[0])
        pool = self.window(shape) if self.chance(0.3) else None
        if self.silent and self.silent.random() < 2 / 3:
            bias = np.zeros_like(bias)
        layer = Layer(
            name=name,
            shape=shape,
            paths=tuple(paths),
            bias=bias,
            fraction_bits=fraction_bits,
            neuron=neuron,
            pool=pool if self.max_pools else None,
        )
        self.shapes[name] = layer.output_shape
        self.capacities[name] = capacity
        return layer

    def readout(self) -> Layer:
        source = list(self.shapes)[-1]
        pool = self.window(self.shapes[source]) if self.chance(0.3) else None
        channels, height, width = (pool.output_shape if pool else lambda s: s)(self.shapes[source])
        kernel = (height, width) if self.chance(0.8) else (1, 1)
        path = Path(
            source=source,
            weight=self.weights(self.integer(2, self.classes), channels, *kernel),
            pool=pool,
        )
        shape = path.output_shape(self.shapes[source])
        return Layer(
            name="logits",
            shape=shape,
            paths=(path,),
            bias=self.random.integers(-50, 51, shape[0]),
            fraction_bits=self.integer(0, 4),
            neuron=None,
        )

    def source(self) -> str:
        """A tensor to read, the newest most often."""
        names = list(self.shapes)
        return names[-1] if self.chance(0.7) else names[self.integer(0, len(names) - 1)]

    def conv(self, source: str, outputs: int) -> Path:
        pool = self.window(self.shapes[source]) if self.chance(0.2) else None
        channels, *sides = (pool.output_shape if pool else lambda s: s)(self.shapes[source])
        axes = [self.axis(side) for side in sides]
        kernel, stride, padding = zip(*axes, strict=True)
        return Path(
            source=source,
            weight=self.weights(outputs, channels, *kernel),
            stride=stride,
            padding=padding,
            exponent=self.integer(0, 3),
            pool=pool,
        )

    def same_conv(self, source: str) -> Path:
        """A convolution that keeps the shape, so that an identity shortcut can bypass it."""
        channels, side = self.shapes[source][0], 2 * self.integer(0, 1) + 1
        return Path(
            source=source,
            weight=self.weights(channels, channels, side, side),
            padding=(side // 2, side // 2),
        )

    def axis(self, side: int) -> tuple[int, int, int]:
        """Kernel, stride and padding that leave at least one output."""
        padding = self.integer(0, 2)
        return self.integer(1, min(4, side + 2 * padding)), self.integer(1, 3), padding

    def shortcut(self, shape: Shape) -> Path:
        """An identity if a tensor has the right shape, else a projection to this shape."""
        same = [name for name, other in self.shapes.items() if other == shape]
        if same:
            weight = self.random.integers(-300, 301, shape[0])
            return Path(source=same[-1], weight=weight, exponent=self.integer(0, 2))
        source = self.source()
        strides, paddings, kernels = [], [], []
        for side, wanted in zip(self.shapes[source][1:], shape[1:], strict=True):
            stride = self.integer(1, 2)
            padding = max(0, (stride * (wanted - 1) + 2 - side) // 2)
            strides.append(stride)
            paddings.append(padding)
            kernels.append(side + 2 * padding - stride * (wanted - 1))
        return Path(
            source=source,
            weight=self.weights(shape[0], self.shapes[source][0], *kernels),
            stride=(strides[0], strides[1]),
            padding=(paddings[0], paddings[1]),
            exponent=self.integer(0, 3),
        )

    def window(self, shape: Shape) -> Window:
        axes = []
        for side in shape[1:]:
            kernel = self.integer(1, min(3, side))
            axes.append((kernel, self.integer(1, 3), self.integer(0, min(1, kernel - 1))))
        kernel, stride, padding = zip(*axes, strict=True)
        return Window(kernel=kernel, stride=stride, padding=padding)

    def weights(self, *shape: int) -> NDArray[Any]:
        return self.random.integers(-self.limit, self.limit + 1, shape)

    def spread(self, paths: list[Path]) -> float:
        """The approximate spread of the accumulator around 0."""
        total = 0.0
        for path in paths:
            level = self.capacities[path.source] * (path.pool.taps if path.pool else 1) / 3
            rows = path.weight.reshape(len(path.weight), -1).astype(np.float64)
            total += (level * 2**path.exponent) ** 2 * float((rows**2).sum(axis=1).mean())
        return total**0.5
