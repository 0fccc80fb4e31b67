"""Random temporal networks and recordings for the streaming core."""

from __future__ import annotations

import numpy as np
from networks import random_network
from numpy.typing import NDArray

from lbq_hw.network import INPUT, Input, Layer, Network, Path


def stream_network(seed: int, *, channels: int | None = None) -> Network:
    """A random network that a streaming core can execute; see `random_network`."""
    return random_network(seed, static=False, max_pools=False, biases=False, channels=channels)


def recording(network: Network, steps: int, seed: int = 0) -> NDArray[np.uint8]:
    """Raw frames ``(steps, C, H, W)``: bursts of events, and steps with few or none."""
    random = np.random.default_rng((seed, 7))
    shape = (steps, *network.input.shape)
    busy = random.choice([0.0, 0.05, 0.4], size=steps, p=[0.4, 0.4, 0.2])
    pixels = random.integers(0, 256, shape, dtype=np.uint8)
    return np.where(random.random(shape) < busy[:, None, None, None], pixels, np.uint8(0))


def counting_network() -> Network:
    """One pixel, whose events are counted without end."""
    layer = Layer(
        name="logits",
        shape=(1, 1, 1),
        paths=(Path(source=INPUT, weight=np.ones((1, 1, 1, 1), np.int8)),),
        bias=np.zeros(1, np.int64),
        fraction_bits=0,
        neuron=None,
    )
    source = Input(shape=(1, 1, 1), static=False, bits=1)
    return Network(name="counting", input=source, timesteps=4, weight_bits=2, layers=(layer,))
