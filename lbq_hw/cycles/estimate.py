"""Estimated cycles of an image, from its accumulations alone, before there is a program."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lbq_hw.config import CoreConfig
from lbq_hw.cycles.stages import NeuronTiming

if TYPE_CHECKING:
    from lbq_hw.compiler.lower import LoweredLayer

_LAYER_CYCLES = 40  # from one layer to the next: drain, read records, fill the queues


def estimate(
    layers: Sequence[LoweredLayer], config: CoreConfig, work: Sequence[float], timesteps: int
) -> float:
    """Estimated cycles per image: a layer takes as long as the slowest of lanes, scanner, neurons.

    `work` has the accumulations of each layer.
    """
    total = 0.0
    for lowered, accumulated in zip(layers, work, strict=True):
        channels, height, width = lowered.layer.shape
        runs = 1 if lowered.static else timesteps
        steps = lowered.tiles * height * width * runs
        requests = sum(len(lowered.paths[segment.path].runs) for segment in lowered.segments)
        lanes = lowered.tiles * accumulated / channels + steps
        total += max(lanes, steps * requests, _passes(lowered, config, steps, timesteps))
    return total + _LAYER_CYCLES * len(layers)


def _passes(lowered: LoweredLayer, config: CoreConfig, steps: int, timesteps: int) -> int:
    """Cycles of the neuron units: updates wait for membranes, and for the writes of planes."""
    layer, timing = lowered.layer, NeuronTiming.of(config)
    updates = steps * (timesteps if lowered.static else 1)
    emitting = updates * math.prod(layer.output_shape) // math.prod(layer.shape)
    waits = max(0, layer.capacity.bit_length() - timing.groups) * emitting
    continued = updates * (timesteps - 1) // timesteps
    return updates * timing.groups + max(waits, continued * max(0, timing.loop - timing.groups))
