"""Random cores: the smallest core of a drawn shape for a network, or one core for many networks."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import asdict
from functools import reduce
from typing import Any

import numpy as np

from lbq_hw.compiler import smallest_for
from lbq_hw.config import CoreConfig, Profile
from lbq_hw.network import Network


def random_core(network: Network, seed: int, *, lanes: int | None = None) -> CoreConfig:
    """A core with a drawn P of 4 to 64 (unless given), and any W, S, L and profile for this P."""
    random = np.random.default_rng(seed)

    def power(low: int, high: int) -> int:
        return 1 << int(random.integers(low.bit_length() - 1, high.bit_length()))

    lanes = lanes or power(4, 64)
    word = power(max(8, lanes), 128)
    shape = {"word": word, "summary": power(1, min(word, 32)), "units": power(1, lanes)}
    profile = list(Profile)[random.integers(len(Profile))]
    return smallest_for(network, lanes=lanes, **shape, profile=profile)


def common_core(networks: Sequence[Network], *, lanes: int, **shape: Any) -> CoreConfig:
    """The smallest core that runs every one of the networks, one at a time."""
    return _common([smallest_for(network, lanes=lanes, **shape) for network in networks])


def common_external_core(networks: Sequence[Network], seed: int) -> CoreConfig:
    """A small core with external memory, its shape drawn from `seed`, that runs every network."""
    return _common([external_core(network, seed) for network in networks])


def _common(cores: Sequence[CoreConfig]) -> CoreConfig:
    needed = [asdict(core) for core in cores]
    sizes = {name: max(core[name] for core in needed) for name in needed[0] if name != "profile"}
    sizes["narrow"] = reduce(operator.or_, (core["narrow"] for core in needed))
    spread = any(core.spread for core in cores)
    return CoreConfig(**sizes, profile=Profile.SPREAD if spread else cores[0].profile)


def external_core(network: Network, seed: int, **fixed: int) -> CoreConfig:
    """A small core with external memory: few weight rows, table entries and partial sums."""
    random = np.random.default_rng(seed)

    def one_of(*values: int) -> int:
        return int(random.choice(values))

    lanes = fixed.pop("lanes", 0) or one_of(8, 16)
    drawn = {
        "word": lanes,
        "summary": one_of(1, 4, 8),
        "units": one_of(1, 2, lanes),
        "external": one_of(16, 32),
        "weight_rows": one_of(16, 24, 32, 48),
        "layers": one_of(1, 2, 8),
        "channels": lanes * one_of(1, 2, 4),
        "pairs": one_of(0, 1) if lanes > 8 else 0,
    }
    core = smallest_for(network, lanes=lanes, **(drawn | fixed))
    # Some cores have more partial words than one band needs, or room for several passes' records.
    more = {"partial_words": one_of(1, 2, 8), "runs": one_of(1, 4), "paths": one_of(1, 3)}
    return core.with_(
        **{
            name: min(getattr(core, name) * times, 1 << 14)
            for name, times in more.items()
            if name not in fixed
        }
    )
