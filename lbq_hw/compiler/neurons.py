"""Neuron parameters in the format of a core."""

from __future__ import annotations

from lbq_hw import isa, numeric
from lbq_hw.config import CoreConfig
from lbq_hw.network import Layer
from lbq_hw.network.neuron import FLAGS, PARAMETERS


def output_planes(layer: Layer) -> int:
    """Bit planes of the levels; 1 for the readout, which has no levels but needs a legal record."""
    return max(1, numeric.plane_count(layer.capacity))


def decay(layer: Layer) -> tuple[int, int]:
    """m and bits of the leak ``m / 2**bits`` in lowest terms; a readout does not leak."""
    if layer.neuron is None:
        return 1, 0
    m, bits = layer.neuron.decay, layer.neuron.decay_bits
    while bits > 0 and m % 2 == 0:
        m, bits = m // 2, bits - 1
    return m, bits


def flags(layer: Layer) -> dict[str, int]:
    """The flags of a LAYER record, for rules that hold for a whole layer."""
    rules = layer.neuron.rules if layer.neuron else ()
    return {rule.name: int(rule in rules) for rule in FLAGS}


def params(layer: Layer, tiles: int, config: CoreConfig) -> list[int]:
    """One PARAM record per channel; channels that fill up the last tile never spike.

    A threshold that no membrane can reach is stored as the largest number, which none can reach
    either: the membrane is proven to stay below it.
    """
    bits, records, slots = config.membrane_bits, [], isa.PARAM.slots(config)
    vectors = layer.neuron.vectors if layer.neuron else {}
    for channel in range(tiles * config.lanes):
        there = channel < layer.shape[0]
        values = {name: int(vector[channel]) for name, vector in vectors.items() if there}
        record = {
            "bias": _wrap(int(layer.bias[channel]), bits) if there else 0,
            "theta": min(values.get("theta", 1), (1 << (bits - 1)) - 1),
        }
        for rule in PARAMETERS:
            kept = slots[rule.name].width > 0
            record[rule.name] = rule.encode(values.get(rule.name), bits) if kept else 0
        records.append(isa.PARAM.encode(config, record))
    return records


def _wrap(value: int, bits: int) -> int:
    half = 1 << (bits - 1)
    return (value + half) % (2 * half) - half
