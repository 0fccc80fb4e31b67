"""Random modules of supported layers, of structures that nobody would think of together.

A module is a list of instructions on named values, drawn from a seed: convolutions, norms with
negative, tiny and zero gains, sums of several paths behind pools and without, pixels beside levels,
layers with several consumers, pre-activation blocks, joined levels and joined currents, groups,
dilation, padding of one side, linear layers, recordings as input. Some have layers along one axis.
"""

import random
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from lbq_hw.train import neurons
from lbq_hw.train.data import InputSpec
from lbq_hw.train.layers import MergeTime, Repeat, TimeMean

Shape = tuple[int, int, int]


class RandomModule(nn.Module):
    """Executes ``(result, layer or None, operands)``; without a layer, operands are added, for the
    layer "cat" they are joined, and for "squeeze" an image of one row loses its row."""

    def __init__(self, layers: dict[str, nn.Module], program: list[tuple[str, str | None, Any]]):
        super().__init__()
        for name, layer in layers.items():
            self.add_module(name, layer)
        self.program = program

    def forward(self, x: Tensor) -> Tensor:
        values = {"x": x}
        for result, layer, operands in self.program:
            if layer is None:
                total = values[operands[0]]
                for operand in operands[1:]:
                    total = total + values[operand]
                values[result] = total
            elif layer == "cat":
                values[result] = torch.cat([values[operand] for operand in operands], 1)
            elif layer == "squeeze":
                values[result] = values[operands[0]].squeeze(2)
            else:
                values[result] = getattr(self, layer)(values[operands[0]])
        return values[self.program[-1][0]]


def draw(seed: int) -> tuple[RandomModule, InputSpec, list[str]]:
    """A module, its input and the names of the structures that it has."""
    return _Drawing(seed).module()


def draw_line(seed: int) -> tuple[RandomModule, InputSpec, list[str]]:
    """The same of layers along one axis: it takes images of one row."""
    return _Lines(seed).module()


@dataclass(frozen=True, kw_only=True)
class _Kinds:
    """The layers along two axes, or along one."""

    conv: Any
    norm: Any
    mean: Any
    largest: Any
    adaptive: Any


IMAGES = _Kinds(
    conv=nn.Conv2d,
    norm=nn.BatchNorm2d,
    mean=nn.AvgPool2d,
    largest=nn.MaxPool2d,
    adaptive=nn.AdaptiveMaxPool2d,
)
LINES = _Kinds(
    conv=nn.Conv1d,
    norm=nn.BatchNorm1d,
    mean=nn.AvgPool1d,
    largest=nn.MaxPool1d,
    adaptive=nn.AdaptiveMaxPool1d,
)


class _Drawing:
    kinds = IMAGES
    input_padding = 1  # of layers on an input from which a mean is subtracted

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.generator = torch.Generator().manual_seed(seed)
        torch.manual_seed(seed)
        self.layers: dict[str, nn.Module] = {}
        self.program: list[tuple[str, str | None, Any]] = []
        self.shapes: dict[str, Shape] = {}
        self.features: list[str] = []
        self.timesteps = self.random.choice((1, 1, 2, 3))
        self.static = self.timesteps == 1 or self.random.random() < 0.7
        if self.timesteps == 1:
            self.static = self.random.random() < 0.8
        side = self.random.choice((4, 6, 8))
        bits = self.random.choice((8, 8, 4, 2))
        options: dict[str, Any] = {}
        shape = self._shape(self.random.randint(1, 3), side)
        if self.random.random() < 0.15:
            self.features.append("mean")
            options = {"mean": (1 / 3,) * shape[0], "std": (0.3,) * shape[0]}
            bits = 8  # a third is a whole level then
        self.spec = InputSpec(shape=shape, static=self.static, bits=bits, **options)
        self.pad_input = self.input_padding if options else None
        self.shapes["x"] = shape

    # Layers

    def _shape(self, channels: int, side: int) -> Shape:
        return channels, side, side

    def _zeros(self, sides: tuple[int, ...]) -> nn.Module:
        return nn.ZeroPad2d(sides)

    def _begin(self) -> None:
        """What comes before the first layer."""

    def _call(self, layer: nn.Module, operand: str, shape: Shape) -> str:
        name = f"{type(layer).__name__.lower()}{len(self.layers)}"
        self.layers[name] = layer
        result = f"v{len(self.program)}"
        self.program.append((result, name, [operand]))
        self.shapes[result] = shape
        return result

    def _add(self, operands: list[str]) -> str:
        if len(operands) == 1:
            return operands[0]
        result = f"v{len(self.program)}"
        self.program.append((result, None, operands))
        self.shapes[result] = self.shapes[operands[0]]
        if operands[0] in self.flat:
            self.flat.add(result)
        return result

    def _norm(self, value: str, *, rarely: bool = False) -> str:
        if self.random.random() < (0.7 if rarely else 0.25):
            return value
        channels = self.shapes[value][0]
        flat = self.shapes[value][1:] == (1, 1) and value in self.flat
        norm = nn.BatchNorm1d(channels) if flat else self.kinds.norm(channels)
        assert norm.running_mean is not None
        assert norm.running_var is not None
        norm.running_mean.copy_(0.2 * torch.randn(channels, generator=self.generator))
        norm.running_var.copy_(0.2 + torch.rand(channels, generator=self.generator))
        gains = 0.3 + torch.rand(channels, generator=self.generator)
        for channel in range(channels):
            kind = self.random.random()
            if kind < 0.25:
                gains[channel] *= -1
            elif kind < 0.32:
                gains[channel] = 0.0
                self.features.append("zero gain")
            elif kind < 0.42:
                gains[channel] *= 10.0 ** -self.random.randint(1, 9)
                self.features.append("tiny gain")
            elif kind < 0.45:
                gains[channel] *= 50
        norm.weight.data.copy_(gains)
        norm.bias.data.copy_(0.2 * torch.randn(channels, generator=self.generator))
        result = self._call(norm, value, self.shapes[value])
        if flat:
            self.flat.add(result)
        return result

    def _conv(self, value: str, channels: int, target: int | None = None) -> str:
        """A convolution to `channels`, to a side of `target` where that is given."""
        source = value
        fixed = value == "x" and self.pad_input is not None
        if target is None and not fixed and self.random.random() < 0.12:
            value = self._pad(value)
        inputs, _, side = self.shapes[value]
        if fixed:
            kernel, padding, stride = 3, self.pad_input, 1
        else:
            kernel = self.random.choice([k for k in (1, 2, 3) if k <= side])
            padding = self.random.randint(0, kernel // 2) if kernel > 1 else 0
            stride = self.random.choice((1, 1, 2))
        if target is not None:
            fits = [
                (k, s, p)
                for k in (1, 2, 3)
                for s in (1, 2, 3, 4, 8)
                for p in range(k // 2 + 1)
                if (side + 2 * p - k) // s + 1 == target and side + 2 * p >= k
                if not fixed or p == self.pad_input
            ]
            if not fits:
                return ""
            kernel, stride, padding = self.random.choice(fits)
        options: dict[str, int] = {}
        if not fixed:
            shared = 1 if source in self.joined else inputs  # a group must not read two parts
            options = self._spread(shared, channels, kernel, side + 2 * padding, target)
        layer = self.kinds.conv(inputs, channels, kernel, stride=stride, padding=padding, **options)
        kernel = options.get("dilation", 1) * (kernel - 1) + 1
        layer.bias = None if self.random.random() < 0.5 else layer.bias
        layer.weight.data *= 2.0 ** self.random.uniform(-1, 3)
        size = (side + 2 * padding - kernel) // stride + 1
        result = self._call(layer, value, self._shape(channels, size))
        return self._in_time(result, source)

    def _spread(
        self, inputs: int, outputs: int, kernel: int, side: int, target: int | None
    ) -> dict[str, int]:
        """Groups, or taps apart, of a convolution."""
        shared = [groups for groups in range(2, inputs + 1) if inputs % groups == 0]
        shared = [groups for groups in shared if outputs % groups == 0]
        if shared and self.random.random() < 0.3:
            groups = self.random.choice(shared)
            self.features.append("depthwise" if groups == inputs else "groups")
            return {"groups": groups}
        if target is None and kernel > 1 and 2 * kernel - 1 <= side and self.random.random() < 0.2:
            self.features.append("dilation")
            return {"dilation": 2}
        return {}

    def _pad(self, value: str) -> str:
        """Zeros on two sides of four."""
        channels, _, side = self.shapes[value]
        self.features.append("padding")
        sides = self.random.choice(((0, 1, 1, 0), (1, 0, 1, 0), (2, 0, 1, 1)))
        side += sides[0] + sides[1]
        return self._call(self._zeros(sides), value, self._shape(channels, side))

    def _join(self, values: list[str]) -> str:
        """The channels of several values side by side."""
        result = f"v{len(self.program)}"
        self.program.append((result, "cat", values))
        _, height, width = self.shapes[values[0]]
        self.shapes[result] = (sum(self.shapes[value][0] for value in values), height, width)
        self.joined.add(result)
        return result

    def _in_time(self, current: str, value: str) -> str:
        """A static input's current, repeated where it meets others that have timesteps."""
        if self.static and (value == "x" or value in self.input_pools):
            repeat = Repeat(self.timesteps)
            result = self._call(repeat, current, self.shapes[current])
            if current in self.flat:
                self.flat.add(result)
            return result
        return current

    def _neuron(self, value: str) -> str:
        neuron = neurons.build(
            "lbq",
            timesteps=self.timesteps,
            capacity=self.random.choice((1, 3, 5, 7)),
            gamma0=self.random.uniform(0.15, 0.9),
            beta=self.random.choice((0.5, 0.5, 0.25, 0.0, 1.0)),
            alpha=self.random.choice((1.0, 1.0, 0.5)),
        )
        result = self._call(neuron, value, self.shapes[value])
        if value in self.flat:
            self.flat.add(result)
        else:
            self.levels.append(result)
        return result

    def _pool(self, value: str) -> str:
        channels, _, side = self.shapes[value]
        size = self.random.choice([k for k in (2, 3) if k <= side] or [1])
        layer = self.kinds.mean(size, stride=size)
        result = self._call(layer, value, self._shape(channels, side // size))
        self.joined |= {result} if value in self.joined else set()
        if value == "x":
            self.input_pools.add(result)
        self.features.append("pooled path")
        return result

    # Structures

    def _sum_of_paths(self) -> str:
        """Paths from up to four places into one current: the last levels, earlier ones, pixels."""
        channels, _, side = self.shapes[self.levels[-1]]
        keep = self.random.random() < 0.5  # the shape, so that an identity fits
        channels = channels if keep else self.random.randint(2, 6)
        source = self.levels[-1]
        others = [v for v in self.levels[:-1] if self.shapes[v][2] == side]
        if others and self.random.random() < 0.4:
            self.features.append("join")
            source = self._join(self.random.sample([source, self.random.choice(others)], 2))
        first = self._norm(self._conv(source, channels, side if keep else None))
        currents, side = [first], self.shapes[first][2]
        for _ in range(self.random.choice((0, 1, 1, 2, 3))):
            source = self.random.choice([*self.levels, "x"])
            plain = source != "x" or self.pad_input is None
            if plain and self.random.random() < 0.4 and self.shapes[source][2] > 1:
                source = self._pool(source)
            path = self._conv(source, channels, side)
            if not path:
                continue
            if source == "x" or source in self.input_pools:
                self.features.append("pixel skip")
            currents.append(self._norm(path))
        same = [
            v for v in self.levels if self.shapes[v] == self.shapes[first] and v not in self.joined
        ]
        if same and self.random.random() < 0.5:
            self.features.append("identity")
            currents.append(self.random.choice(same))
        if len(currents) > 1:
            self.features.append("several paths")
        self.random.shuffle(currents)
        return self._norm(self._add(currents), rarely=True)

    def _dense(self) -> None:
        """Currents side by side, in front of a norm and a neuron."""
        self.features.append("joined currents")
        source = self.levels[-1]
        first = self._conv(source, self.random.randint(1, 4))
        second = self._conv(source, self.random.randint(1, 4), self.shapes[first][2])
        parts = [first, self._norm(second)] if second else [first]
        levels = self._neuron(self._norm(self._join(parts)))
        self.joined |= {levels}

    def _pre_activation(self) -> None:
        """A stream of currents that several neurons read, each through a norm of its own."""
        self.features.append("pre-activation")
        channels = self.random.randint(2, 5)
        stream = self._conv(self.levels[-1], channels)
        side = self.shapes[stream][2]
        for _ in range(self.random.randint(1, 3)):
            levels = self._neuron(self._norm(stream))
            branch = ""
            while not branch:
                branch = self._conv(levels, channels, side)
            stream = self._add([stream, branch])
        self._neuron(self._norm(stream))

    def _max_pool(self) -> None:
        value = self.levels[-1]
        channels, _, side = self.shapes[value]
        read = any(value in operands for _, _, operands in self.program)
        if side < 4 or read or value in self.pooled:
            return
        pool, left = self.kinds.largest(2), side // 2
        if side % 2 == 0 and self.random.random() < 0.4:
            left = self.random.choice((side // 2, 1))
            pool = self.kinds.adaptive(left)
            self.features.append("adaptive max-pool")
        pooled = self._call(pool, value, self._shape(channels, left))
        self.joined |= {pooled} if value in self.joined else set()
        self.levels[-1] = pooled
        self.pooled.add(pooled)
        self.features.append("max-pool")

    def _linear(self, value: str, outputs: int) -> str:
        channels, height, width = self.shapes[value]
        if value not in self.flat:
            value = self._call(nn.Flatten(), value, self.shapes[value])
        layer = nn.Linear(channels * height * width, outputs, bias=self.random.random() < 0.7)
        layer.weight.data *= 2.0 ** self.random.uniform(0, 2)
        result = self._call(layer, value, (outputs, 1, 1))
        self.flat.add(result)
        return result

    def _readout(self) -> str:
        last = self.levels[-1]
        if self.random.random() < 0.4:
            self.features.append("hidden linear")
            hidden = self._norm(self._linear(last, self.random.randint(3, 8)))
            last = self._neuron(hidden)
        currents = [self._linear(last, 5)]
        if self.random.random() < 0.4:
            self.features.append("readout of several")
            source = self.levels[-1]
            side = self.shapes[source][2]
            mean = self._call(self.kinds.mean(side), source, (self.shapes[source][0], 1, 1))
            currents.append(self._linear(mean, 5))
        if self.random.random() < 0.25 and self.pad_input is None:
            self.features.append("pixels in the readout")
            currents.append(
                self._in_time(self._linear("x" if self.static else self.merged, 5), "x")
            )
        total = self._add(currents)
        if self.random.random() < 0.3:
            self.features.append("norm behind the readout")
            total = self._norm(total)
        return self._call(TimeMean(self.timesteps), total, self.shapes[total])

    def module(self) -> tuple[RandomModule, InputSpec, list[str]]:
        self.flat: set[str] = set()
        self.input_pools: set[str] = set()
        self.pooled: set[str] = set()
        self.joined: set[str] = set()
        self.levels: list[str] = []
        self.merged = "x"
        if not self.static:
            self.features.append("recording")
            self.merged = self._call(MergeTime(), "x", self.spec.shape)
            self.program[-1] = ("x", self.program[-1][1], ["x"])
            self.shapes["x"] = self.spec.shape
            self.merged = "x"
        self._begin()
        stem = self._norm(self._conv("x", self.random.randint(2, 6)))
        self._neuron(stem)
        for _ in range(self.random.randint(1, 4)):
            kind = self.random.random()
            if kind < 0.15:
                self._max_pool()
            elif kind < 0.33:
                self._pre_activation()
            elif kind < 0.43:
                self._dense()
            else:
                self._neuron(self._sum_of_paths())
        self._readout()
        module = RandomModule(self.layers, self.program)
        return module.eval(), self.spec, self.features


class _Lines(_Drawing):
    kinds = LINES
    input_padding = 0  # a border would have to be as wide on the sides that a line has not

    def _shape(self, channels: int, side: int) -> Shape:
        return channels, 1, side

    def _zeros(self, sides: tuple[int, ...]) -> nn.Module:
        return nn.ZeroPad1d(sides[:2])

    def _begin(self) -> None:
        self.features.append("lines")
        self.program.append(("x", "squeeze", ["x"]))
