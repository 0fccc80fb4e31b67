"""Counts an integer network's levels where it runs: only sums leave the device.

counter = DeviceCounter(network)
counter.see_input(model.quantize(raw))
model(raw, counter.see_layer)
counter.counts()        # equal to lbq_hw.golden.counts on the same images
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lbq_hw import numeric
from lbq_hw.golden import counts
from lbq_hw.golden.counts import Activity
from lbq_hw.network import INPUT, Layer, Network
from lbq_hw.train.deploy.integer import max_pool


class DeviceCounter:
    """Sums of a network's levels that stay on the device, as ``lbq_hw.golden.counts`` needs them.

    A tensor gets its set bits by plane and position ``(K, H, W)`` and its nonzero levels
    ``(H, W)``, both after max-pooling; its neurons a histogram by timestep ``(T, N + 1)``, before.
    """

    def __init__(self, network: Network) -> None:
        self._network, self._images = network, 0
        self._sums: dict[str, tuple[Tensor, Tensor, Tensor]] = {}

    def see_input(self, levels: Tensor) -> None:
        """Count the input ``(T', n, C, H, W)`` of a batch."""
        self._images += levels.shape[1]
        self._add(INPUT, levels, levels, self._network.input.capacity)

    def see_layer(self, layer: Layer, levels: Tensor) -> None:
        """Count the levels of a layer: the observer of `IntegerNetwork`."""
        output = max_pool(levels, layer.pool) if layer.pool else levels
        self._add(layer.name, levels, output, layer.capacity)

    def _add(self, name: str, levels: Tensor, output: Tensor, capacity: int) -> None:
        levels, output = levels.to(torch.uint8), output.to(torch.uint8)
        planes = [_by_position((output >> k) & 1) for k in range(numeric.plane_count(capacity))]
        sums = (torch.stack(planes), _by_position(output > 0), _histogram(levels, capacity))
        before = self._sums.get(name)
        if before is not None:
            sums = tuple(old.add_(new) for old, new in zip(before, sums, strict=True))
        self._sums[name] = sums[0], sums[1], sums[2]

    def histograms(self) -> dict[str, NDArray[np.int64]]:
        """Neurons at each level, by timestep, of every spiking layer."""
        return {
            name: histogram.cpu().numpy()
            for name, (_, _, histogram) in self._sums.items()
            if name != INPUT
        }

    def counts(self) -> counts.Counts:
        """Means per image of all that was seen."""
        counter = counts.Counter(self._network)
        for name, (planes, nonzero, histogram) in self._sums.items():
            levels = histogram.sum(0).cpu().numpy()
            activity = Activity(
                planes=planes.cpu().numpy(),
                nonzero=nonzero.cpu().numpy(),
                active=int(levels[1:].sum()),
                level_sum=int(levels @ np.arange(len(levels))),
            )
            counter.add(name, activity, images=self._images)
        return counter.counts()


def _by_position(marks: Tensor) -> Tensor:
    return marks.sum((0, 1, 2), dtype=torch.int64)


def _histogram(levels: Tensor, capacity: int) -> Tensor:
    found = [torch.bincount(step.flatten(), minlength=capacity + 1) for step in levels]
    return torch.stack(found)
