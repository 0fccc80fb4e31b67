"""Random cores: the smallest for a network, with a drawn shape; and one core for many networks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import numpy as np

from lbq_hw.compiler import smallest_for
from lbq_hw.config import CoreConfig
from lbq_hw.network import Network


def random_core(network: Network, seed: int, *, lanes: int | None = None) -> CoreConfig:
    """P 4 to 64 (unless given), W and S and L whatever P allows."""
    random = np.random.default_rng(seed)

    def power(low: int, high: int) -> int:
        return 1 << int(random.integers(low.bit_length() - 1, high.bit_length()))

    lanes = lanes or power(4, 64)
    word = power(max(8, lanes), 128)
    return smallest_for(
        network, lanes=lanes, word=word, summary=power(1, min(word, 32)), units=power(1, lanes)
    )


def common_core(networks: Sequence[Network], *, lanes: int, **shape: int) -> CoreConfig:
    """The smallest core that runs every one of the networks, one at a time."""
    needed = [asdict(smallest_for(network, lanes=lanes, **shape)) for network in networks]
    return CoreConfig(**{name: max(core[name] for core in needed) for name in needed[0]})
