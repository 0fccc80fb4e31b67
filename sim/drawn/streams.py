"""Random temporal networks and recordings for streaming cores, and cores for several networks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from lbq_hw.network import Network
from lbq_hw.sim.drawn.networks import random_network
from lbq_hw.streaming.compiler import compile_stream
from lbq_hw.streaming.config import StreamConfig
from lbq_hw.streaming.program import StreamProgram

HORIZON = 256
"""Steps for which membranes are proven to fit; small, to save time in the proof."""
ROOM = 1 << 12


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


def shared_core(networks: Sequence[Network], *, lanes: int, units: int) -> StreamConfig:
    """A core that runs every one of the networks, one at a time."""
    alone = [compiled(network, lanes=lanes, units=units) for network in networks]
    config = reduce(StreamConfig.joined, (program.config for program in alone))
    # A core with more features has larger records and input pixels.
    return replace(config, record_words=ROOM, level_words=ROOM)


def compiled(
    network: Network, config: StreamConfig | None = None, *, lanes: int, units: int
) -> StreamProgram:
    """A program for a shared core, or for the smallest one."""
    return compile_stream(network, lanes=lanes, units=units, horizon=HORIZON, config=config)
