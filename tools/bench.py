"""The speed of the golden model, relative to torch's float32 forward of the same network.

``python -m tools.bench [--json FILE]`` times both in turns in one run, on the same images and with
the same number of threads, and keeps the best time of each. Torch gets every optimization that does
not change its result: norms and steps are folded into its weights, and the faster of its two memory
layouts counts.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path as FilePath
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits
from torch import Tensor

from lbq_hw import golden
from lbq_hw.commands.parser import Parser
from lbq_hw.golden import counts
from lbq_hw.network import INPUT, Input, Layer, Network, Neuron, Path, Shape, Window

TARGET_RATIO = 2.0


def resnet20(seed: int = 0) -> Network:
    """The paper's ResNet-20 for CIFAR-10 at T = 2, N = 5, with random 8-bit weights."""
    make = _Maker(name="resnet20", timesteps=2, capacity=5, shape=(3, 32, 32), seed=seed)
    previous = make.layer("stem", (128, 32, 32), [make.conv(INPUT, 3, 128, 3, 1)])
    before, size = 128, 32
    for stage, width in enumerate((128, 256, 512)):
        for block in range(3):
            stride = 2 if stage and not block else 1
            size //= stride
            shape = (width, size, size)
            name = f"block{3 * stage + block}"
            middle = make.layer(f"{name}.1", shape, [make.conv(previous, before, width, 3, stride)])
            if stride == 1:
                shortcut = make.identity(previous, width)
            else:
                shortcut = make.conv(previous, before, width, 1, stride)
            paths = [make.conv(middle, width, width, 3, 1), shortcut]
            previous, before = make.layer(f"{name}.2", shape, paths), width
    return make.network(
        make.linear(previous, (512, 1, 1), 10, pool=Window(kernel=(8, 8), stride=(8, 8)))
    )


def mnist(seed: int = 0) -> Network:
    """Three 3x3 stride-2 convolutions of 8, 16 and 32 channels and a linear layer, T = 2."""
    make = _Maker(name="mnist", timesteps=2, capacity=5, shape=(1, 28, 28), seed=seed)
    previous, before = INPUT, 1
    for width, size in ((8, 14), (16, 7), (32, 4)):
        path = make.conv(previous, before, width, 3, 2)
        previous, before = make.layer(f"conv{width}", (width, size, size), [path]), width
    return make.network(make.linear(previous, (32, 4, 4), 10))


class _Maker:
    """Builds random networks whose neurons are neither silent nor saturated."""

    def __init__(
        self, *, name: str, timesteps: int, capacity: int, shape: Shape, seed: int
    ) -> None:
        self.name, self.timesteps, self.capacity = name, timesteps, capacity
        self.input = Input(shape=shape, static=True, bits=8)
        self.random = np.random.default_rng(seed)
        self.layers: list[Layer] = []

    def conv(self, source: str, before: int, after: int, kernel: int, stride: int) -> Path:
        weight = self.random.integers(-127, 128, (after, before, kernel, kernel), np.int8)
        return Path(
            source=source,
            weight=weight,
            stride=(stride, stride),
            padding=(kernel // 2, kernel // 2),
        )

    def identity(self, source: str, channels: int) -> Path:
        return Path(source=source, weight=self.random.integers(100, 1000, channels))

    def linear(self, source: str, shape: Shape, after: int, pool: Window | None = None) -> Path:
        weight = self.random.integers(-127, 128, (after, *shape), np.int8)
        return Path(source=source, weight=weight, pool=pool)

    def layer(self, name: str, shape: Shape, paths: list[Path]) -> str:
        fraction_bits = 4
        fan_in = paths[0].weight[0].size
        level = 128 if paths[0].source == INPUT else 1
        step = int(60 * level * fan_in**0.5) << fraction_bits  # about the spread of the current
        theta = self.random.integers(step // 2, step, shape[0])
        neuron = Neuron(
            capacity=self.capacity, theta=theta, reset=theta.copy(), decay=1, decay_bits=1
        )
        bias = self.random.integers(-step // 4, step // 4, shape[0])
        self.layers.append(
            Layer(
                name=name,
                shape=shape,
                paths=tuple(paths),
                bias=bias,
                fraction_bits=fraction_bits,
                neuron=neuron,
            )
        )
        return name

    def network(self, readout: Path) -> Network:
        classes = len(readout.weight)
        layer = Layer(
            name="logits",
            shape=(classes, 1, 1),
            paths=(readout,),
            bias=np.zeros(classes, np.int64),
            fraction_bits=0,
            neuron=None,
        )
        return Network(
            name=self.name,
            input=self.input,
            timesteps=self.timesteps,
            weight_bits=8,
            layers=(*self.layers, layer),
        )


class TorchForward:
    """The network as a float32 torch forward, each layer's step scaled to 1 by its weights."""

    def __init__(self, network: Network, memory_format: torch.memory_format) -> None:
        self.network, self.memory_format = network, memory_format
        self.weights: dict[Path, Tensor] = {}
        self.biases: dict[str, Tensor] = {}
        for layer in network.layers:
            unit = np.ones(layer.shape[0])
            if layer.neuron is not None:
                if not np.array_equal(layer.neuron.theta, layer.neuron.reset):
                    raise ValueError("the torch forward only has resets by one step")
                unit = 2.0**-layer.fraction_bits * layer.neuron.theta
            bias = layer.bias * 2.0**-layer.fraction_bits / unit
            self.biases[layer.name] = torch.tensor(bias, dtype=torch.float32)
            for path in layer.paths:
                rows = path.weight.reshape(len(unit), -1) * (2.0**path.exponent / unit)[:, None]
                rows *= path.pool.taps if path.pool else 1
                weight = torch.tensor(rows, dtype=torch.float32)
                if path.is_identity:
                    self.weights[path] = weight.reshape(1, -1, 1, 1)
                else:
                    weight = weight.reshape(path.weight.shape)
                    self.weights[path] = weight.to(memory_format=memory_format)

    @torch.inference_mode()
    def __call__(self, images: NDArray[np.uint8]) -> NDArray[np.int64]:
        """Predicted classes of raw static images."""
        levels = self.network.input.quantize(images)[0]
        pixels = torch.from_numpy(levels).to(torch.float32, memory_format=self.memory_format)
        tensors = {INPUT: pixels}
        logits = pixels
        for layer in self.network.layers:
            current = self.current(layer, layer.paths[0], tensors, self.biases[layer.name])
            for path in layer.paths[1:]:
                current += self.current(layer, path, tensors)
            if layer.neuron is None:
                logits = current.unflatten(0, (self.network.timesteps, -1)).sum(0).flatten(1)
            else:
                tensors[layer.name] = self.fire(layer.neuron, current, len(pixels))
        return logits.argmax(1).numpy()

    def current(
        self, layer: Layer, path: Path, tensors: dict[str, Tensor], bias: Tensor | None = None
    ) -> Tensor:
        x, weight = tensors[path.source], self.weights[path]
        if path.pool is not None:
            x = F.avg_pool2d(x, path.pool.kernel, path.pool.stride, path.pool.padding)
        if path.is_identity:
            return x * weight
        if layer.shape[1:] == (1, 1) and path.padding == (0, 0):
            return F.linear(x.flatten(1), weight.flatten(1), bias)[..., None, None]
        return F.conv2d(x, weight, bias, path.stride, path.padding)

    def fire(self, neuron: Neuron, current: Tensor, images: int) -> Tensor:
        """Levels of all timesteps, merged into the batch; a static current is used T times."""
        steps = current.unflatten(0, (-1, images))
        beta = neuron.decay / (1 << neuron.decay_bits)
        levels, v = [], None
        for t in range(self.network.timesteps):
            u = steps[t if len(steps) > 1 else 0]
            if v is not None:
                u = torch.add(u, v, alpha=beta)
            s = torch.floor(u).clamp_(0, neuron.capacity)
            levels.append(s)
            if t + 1 < self.network.timesteps:
                v = u - (s > 0).to(torch.float32)
        return torch.cat(levels) if len(levels) > 1 else levels[0]


def measure(network: Network, *, images: int, repeats: int, threads: int) -> dict[str, Any]:
    """The best time of each over `repeats` turns, in seconds, and their ratio."""
    shape = (images, *network.input.shape)
    raw = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    runs: dict[str, Callable[[NDArray[np.uint8]], NDArray[np.int64]]] = {
        "golden": lambda x: golden.predict(network, x),
        "torch": TorchForward(network, torch.contiguous_format),
        "torch_channels_last": TorchForward(network, torch.channels_last),
    }
    seconds = dict.fromkeys(runs, float("inf"))
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        with threadpool_limits(threads, user_api="blas"):
            answers = {name: run(raw) for name, run in runs.items()}  # also warms up
            for _ in range(repeats):
                for name, run in runs.items():
                    start = time.perf_counter()
                    run(raw)
                    seconds[name] = min(seconds[name], time.perf_counter() - start)
    finally:
        torch.set_num_threads(before)
    return {
        "network": network.name,
        "macs_per_step": counts.macs(network),
        "timesteps": network.timesteps,
        "images": images,
        "threads": threads,
        "seconds": seconds,
        "ratio": seconds["golden"] / min(seconds["torch"], seconds["torch_channels_last"]),
        "same_classes": float(np.mean(answers["golden"] == answers["torch"])),
    }


def main(arguments: list[str] | None = None) -> int:
    parser = Parser(
        prog="python -m tools.bench",
        description="Time golden against torch's float32 forward of the same random networks.",
    )
    parser.add_argument("--json", type=FilePath, metavar="FILE", help="write the figures here")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="for both sides")
    parser.add_argument("--repeats", type=int, default=5, help="turns; the best one counts")
    options = parser.parse_args(arguments)
    console = Console()
    with console.status("timing golden and torch"):
        results = [
            measure(network, images=images, repeats=options.repeats, threads=options.threads)
            for network, images in ((resnet20(), 8), (mnist(), 2000))
        ]
    table = Table(title=f"one image, ms ({options.threads} threads, best of {options.repeats})")
    for column in ("network", "golden", "torch", "torch channels-last", "golden / torch"):
        table.add_column(column, justify="left" if column == "network" else "right")
    for result in results:
        times = [f"{1e3 * s / result['images']:.3f}" for s in result["seconds"].values()]
        table.add_row(result["network"], *times, f"{result['ratio']:.2f}")
    console.print(table)
    report = {
        "machine": platform.machine(),
        "numpy": np.__version__,
        "torch": torch.__version__,
        "target_ratio": TARGET_RATIO,
        "results": results,
    }
    if options.json is not None:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    slow = [result["network"] for result in results if result["ratio"] > TARGET_RATIO]
    if slow:
        console.print(f"golden is over {TARGET_RATIO:g} times torch on {', '.join(slow)}")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
