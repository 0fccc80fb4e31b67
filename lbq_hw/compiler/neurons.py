"""Neuron parameters as a core holds them."""

from __future__ import annotations

import numpy as np

from lbq_hw import isa, numeric
from lbq_hw.config import CoreConfig
from lbq_hw.network import Layer


def output_planes(layer: Layer) -> int:
    """Bit planes of the levels; 1 for the readout, which has none but needs a legal record."""
    return max(1, numeric.plane_count(layer.capacity))


def decay(layer: Layer) -> tuple[int, int]:
    """m and bits of the leak ``m / 2**bits`` in lowest terms; a readout does not leak."""
    if layer.neuron is None:
        return 1, 0
    m, bits = layer.neuron.decay, layer.neuron.decay_bits
    while bits > 0 and m % 2 == 0:
        m, bits = m // 2, bits - 1
    return m, bits


def resets_to_zero(layer: Layer) -> bool:
    """Whether a spike leaves nothing of the membrane."""
    return layer.neuron is not None and layer.neuron.to_zero


def needs_reset(layer: Layer) -> bool:
    """Whether a channel that can spike is reset by something else than its threshold."""
    if layer.neuron is None or layer.neuron.to_zero:
        return False
    return not np.array_equal(layer.neuron.theta, layer.neuron.reset)


def params(layer: Layer, tiles: int, config: CoreConfig) -> list[int]:
    """One PARAM record per channel; channels that fill up the last tile never spike.

    A threshold beyond every membrane becomes the largest number, which is beyond them too: the
    membrane is proven to stay below it.
    """
    bits, records = config.membrane_bits, []
    for channel in range(tiles * config.lanes):
        record = {"bias": 0, "theta": 1, "reset": 0}
        if channel < layer.shape[0]:
            record["bias"] = _wrap(int(layer.bias[channel]), bits)
            if layer.neuron is not None:
                record["theta"] = min(int(layer.neuron.theta[channel]), (1 << (bits - 1)) - 1)
                record["reset"] = _wrap(int(layer.neuron.reset[channel]), bits)
        records.append(isa.PARAM.encode(config, record))
    return records


def _wrap(value: int, bits: int) -> int:
    half = 1 << (bits - 1)
    return (value + half) % (2 * half) - half
