"""The integer network in torch: the golden model's twin, for GPUs.

Sums run in float64, where they are exact and where no library takes a Winograd short cut; all else
is int64. Every level, at every layer and timestep, equals `lbq_hw.golden`'s.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lbq_hw import numeric
from lbq_hw.network import INPUT, Layer, Network, Path, Window

Observer = Callable[[Layer, Tensor], None]


class IntegerNetwork(nn.Module):
    """Runs raw uint8 images ``(n, C, H, W)`` or frames ``(n, T, C, H, W)`` to integer logits."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network
        for index, layer in enumerate(network.layers):
            for number, path in enumerate(layer.paths):
                # refuses sums that float64 cannot hold
                numeric.exact_float_dtype(network.path_bound(path))
                self.register_buffer(f"weight{index}_{number}", torch.tensor(path.weight).double())
            self.register_buffer(f"bias{index}", torch.tensor(layer.bias).reshape(-1, 1, 1))
            if layer.neuron is not None:
                for name, values in layer.neuron.vectors.items():
                    self.register_buffer(f"{name}{index}", torch.tensor(values).reshape(-1, 1, 1))

    @torch.no_grad()
    def forward(self, raw: Tensor, observe: Observer | None = None) -> Tensor:
        """Logits ``(n, classes)`` int64. `observe` sees each layer's levels ``(T, n, C, H, W)``,
        before its max-pool."""
        tensors = {INPUT: self.quantize(raw)}
        for index, layer in enumerate(self.network.layers):
            current = self._current(index, layer, tensors)
            if layer.neuron is None:
                steps = self.network.timesteps // current.shape[0]
                return (current.sum(0) * steps).flatten(1)
            levels = self._fire(index, layer, current)
            if observe is not None:
                observe(layer, levels)
            tensors[layer.name] = max_pool(levels, layer.pool) if layer.pool else levels
        raise AssertionError("a checked network ends in a readout")

    def quantize(self, raw: Tensor) -> Tensor:
        """The levels ``(T', n, C, H, W)`` that the first layers read; T' is 1 for images."""
        spec = self.network.input
        frames = raw[None] if spec.static else raw.transpose(0, 1)
        levels = (frames >> spec.shift).clamp(max=spec.capacity).long()
        if not spec.border:
            return levels
        b = spec.border
        value = torch.tensor(spec.border_value, device=raw.device).reshape(-1, 1, 1)
        padded = value.expand(*levels.shape[:2], *spec.tensor_shape).clone()
        padded[..., b:-b, b:-b] = levels
        return padded

    def _current(self, index: int, layer: Layer, tensors: dict[str, Tensor]) -> Tensor:
        """``acc * 2**F + bias``; its leading size is 1 where nothing changes over time."""
        acc: Tensor | int = 0
        for number, path in enumerate(layer.paths):
            weight = self.get_buffer(f"weight{index}_{number}")
            acc = acc + (path_sum(tensors[path.source], weight, path) << path.exponent)
        assert isinstance(acc, Tensor)
        return (acc << layer.fraction_bits) + self.get_buffer(f"bias{index}")

    def _fire(self, index: int, layer: Layer, current: Tensor) -> Tensor:
        neuron = layer.neuron
        assert neuron is not None
        theta = self.get_buffer(f"theta{index}")
        rules = [
            (rule, self.get_buffer(f"{rule.name}{index}") if rule.per_channel else None)
            for rule in neuron.rules
        ]
        v, levels = torch.zeros_like(current[0]), []
        for t in range(self.network.timesteps):
            u = numeric.decay(v, neuron.decay, neuron.decay_bits) + current[t % len(current)]
            level = torch.zeros_like(u)
            for k in range(1, neuron.capacity + 1):
                level += u >= k * theta
            v = u
            for rule, values in rules:
                v = rule.apply(v, level, values)
            levels.append(level)
        return torch.stack(levels)


def path_sum(levels: Tensor, weight: Tensor, path: Path) -> Tensor:
    steps = levels.shape[0]
    x = levels.flatten(0, 1).double()
    if path.pool:
        pool = path.pool
        x = F.avg_pool2d(x, pool.kernel, pool.stride, pool.padding, divisor_override=1)
    if path.is_identity:
        y = x * weight.reshape(-1, 1, 1)
    else:
        y = F.conv2d(x, weight, stride=path.stride, padding=path.padding)
    return y.long().unflatten(0, (steps, -1))


def max_pool(levels: Tensor, window: Window) -> Tensor:
    """Levels on their way out of a layer that pools them."""
    x = levels.flatten(0, 1).float()  # levels below 2**24 are exact
    y = F.max_pool2d(F.pad(x, _sides(window)), window.kernel, window.stride)
    return y.long().unflatten(0, (levels.shape[0], -1))


def _sides(window: Window) -> list[int]:
    vertical, horizontal = window.padding
    return [horizontal, horizontal, vertical, vertical]
