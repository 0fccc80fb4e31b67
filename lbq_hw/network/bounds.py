"""Proven ranges of a layer's integers, from its weights alone, for any input.

A `capacity` is the largest level of a path's source. The widths of a core, and the use of floats in
golden, rely on these ranges, so they must hold for every input and every timestep.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lbq_hw import numeric
from lbq_hw.network.layer import Layer, Path
from lbq_hw.numeric import Integers


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """Proven ranges of one layer's integers, over every possible input, per channel."""

    acc_low: Integers
    acc_high: Integers
    u_low: Integers
    u_high: Integers

    @property
    def acc_bits(self) -> int:
        return numeric.signed_width(int(self.acc_low.min()), int(self.acc_high.max()))

    @property
    def membrane_bits(self) -> int:
        return numeric.signed_width(int(self.u_low.min()), int(self.u_high.max()))


def path_bound(path: Path, capacity: int) -> int:
    """Largest magnitude of any partial sum of this path, exponent not applied."""
    low, high = numeric.sum_bounds(path.weight, 1)
    return int((high - low).max()) * _pooled(path, capacity)


def prove(layer: Layer, capacities: Sequence[int], timesteps: int) -> Bounds:
    """The ranges of a layer over `timesteps`; `capacities` has one entry per path, in order."""
    check_int64(layer, capacities, timesteps)
    channels = layer.shape[0]
    acc_low, acc_high = np.zeros(channels, np.int64), np.zeros(channels, np.int64)
    for path, capacity in zip(layer.paths, capacities, strict=True):
        low, high = numeric.sum_bounds(path.weight, _pooled(path, capacity))
        acc_low += low << path.exponent
        acc_high += high << path.exponent
    current_low = (acc_low << layer.fraction_bits) + layer.bias
    current_high = (acc_high << layer.fraction_bits) + layer.bias
    if layer.neuron is None:
        return Bounds(
            acc_low=acc_low,
            acc_high=acc_high,
            u_low=np.minimum(current_low, current_low * timesteps),
            u_high=np.maximum(current_high, current_high * timesteps),
        )
    neuron = layer.neuron
    v_low = v_high = np.zeros(channels, np.int64)
    u_low, u_high = current_low, current_high
    for _ in range(timesteps):
        before = v_low, v_high
        step_low = numeric.decay(v_low, neuron.decay, neuron.decay_bits) + current_low
        step_high = numeric.decay(v_high, neuron.decay, neuron.decay_bits) + current_high
        u_low, u_high = np.minimum(u_low, step_low), np.maximum(u_high, step_high)
        v_low, v_high = step_low, step_high
        fires = step_high >= neuron.theta
        silent = step_low, np.minimum(step_high, neuron.theta - 1)
        fired = np.maximum(step_low, neuron.theta), step_high
        for rule in neuron.rules:  # the intermediate value after each rule must fit, too
            values = getattr(neuron, rule.name)
            silent = rule.apply(silent[0], 0, values), rule.apply(silent[1], 0, values)
            fired = rule.apply(fired[0], 1, values), rule.apply(fired[1], 1, values)
            v_low = np.where(fires, np.minimum(silent[0], fired[0]), silent[0])
            v_high = np.where(fires, np.maximum(silent[1], fired[1]), silent[1])
            u_low, u_high = np.minimum(u_low, v_low), np.maximum(u_high, v_high)
        if np.array_equal(v_low, before[0]) and np.array_equal(v_high, before[1]):
            break  # the ranges do not change any more
    return Bounds(acc_low=acc_low, acc_high=acc_high, u_low=u_low, u_high=u_high)


def _pooled(path: Path, capacity: int) -> int:
    """Largest value by which the weights of the path are multiplied."""
    return capacity * (path.pool.taps if path.pool else 1)


def check_int64(layer: Layer, capacities: Sequence[int], timesteps: int) -> None:
    """OverflowError if an integer of golden, or of these bounds, might wrap.

    The check uses Python's unbounded integers: per timestep a membrane moves by at most a current,
    a reset and a rounding, and the leak multiplies it before the shift.
    """
    pairs = zip(layer.paths, capacities, strict=True)
    acc = sum(path_bound(path, capacity) << path.exponent for path, capacity in pairs)
    current = (acc << layer.fraction_bits) + int(np.abs(layer.bias).max())
    reset, leak, thresholds = 0, 1, 0
    if (neuron := layer.neuron) is not None:
        reset, leak = neuron.move, max(neuron.decay, 1)
        thresholds = neuron.capacity * int(neuron.theta.max())
    if max((current + reset + 1) * timesteps * leak, thresholds) >= 1 << 62:
        raise OverflowError(f"layer {layer.name!r}: its sums may pass 62 bits")
