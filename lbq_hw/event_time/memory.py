"""Bits that a network keeps on the chip, with all timesteps of every layer or with one timestep."""

from __future__ import annotations

from dataclasses import dataclass, replace

from lbq_hw.compiler import smallest_for
from lbq_hw.event_time.visits import rests
from lbq_hw.network import Network, Neuron, Shape


@dataclass(frozen=True, kw_only=True)
class MemoryBits:
    """Bits by kind. `maps` have one bit per pixel and plane that tells whether it is empty;
    `stamps` have the timestep of each position's last visit, in layers where leaks can be owed.
    """

    weights: int
    levels: int
    maps: int
    membranes: int
    stamps: int


def memory_bits(network: Network, *, lanes: int, block: int, membrane_bits: int) -> MemoryBits:
    """The bits for blocks of `block` timesteps; membranes are kept if there are several blocks."""
    config = smallest_for(replace(network, timesteps=block), lanes=lanes)
    maps = sum(planes * shape[1] * shape[2] for shape, planes in _tensors(network))
    spiking = [layer for layer in network.layers if layer.neuron is not None]
    kept = block < network.timesteps
    neurons = sum(layer.shape[0] * layer.shape[1] * layer.shape[2] for layer in spiking)
    leaky = [layer for layer in spiking if rests(layer) and _leaks(layer.neuron)]
    positions = sum(layer.shape[1] * layer.shape[2] for layer in leaky)
    return MemoryBits(
        weights=config.weight_rows * lanes * network.weight_bits,
        levels=config.plane_words * config.word,
        maps=maps * block,
        membranes=kept * neurons * membrane_bits,
        stamps=kept * positions * network.timesteps.bit_length(),
    )


def _tensors(network: Network) -> list[tuple[Shape, int]]:
    """Shape and planes of every tensor of levels."""
    spiking = [layer for layer in network.layers if layer.neuron is not None]
    return [
        (network.input.tensor_shape, network.input.bits),
        *((layer.output_shape, layer.capacity.bit_length()) for layer in spiking),
    ]


def _leaks(neuron: Neuron | None) -> bool:
    return neuron is not None and neuron.decay != 1 << neuron.decay_bits
