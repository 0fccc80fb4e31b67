"""Cores in Verilator that tests share: a build takes long, so many networks use each."""

from __future__ import annotations

import fcntl
import shutil
from functools import cache
from pathlib import Path

import pytest
from cores import common_core
from networks import random_network

from lbq_hw import file, zoo
from lbq_hw.config import CoreConfig
from lbq_hw.network import Network
from sim.verilator import build

CACHE = Path(__file__).parents[1] / "build" / "sim"
Shape = tuple[int, int, int, int]
"""P, W, S and L."""
NARROW: Shape = (4, 16, 8, 2)
WIDE: Shape = (16, 64, 16, 4)

needs_verilator = pytest.mark.skipif(
    shutil.which("verilator") is None, reason="verilator is missing: sudo apt install verilator"
)


def drawn(seed: int, lanes: int) -> Network:
    """A random network; of an odd seed, with more channels than lanes, so that tiles are walked."""
    return random_network(seed, channels=5 * lanes // 2 if seed % 2 else None)


@cache
def digits() -> Network:
    return file.load(zoo.find("digits"))


@cache
def shared_core(shape: Shape, seeds: range = range(25)) -> CoreConfig:
    """A core that runs `drawn` of all these seeds, and the digits."""
    lanes, word, summary, units = shape
    networks = [digits(), *(drawn(seed, lanes) for seed in seeds)]
    core = common_core(networks, lanes=lanes, word=word, summary=summary, units=units)
    # So that records can name weight rows and paths that do not exist.
    return core.with_(weight_rows=core.weight_rows | 1, layer_paths=core.layer_paths + 1)


@cache
def bench(config: CoreConfig) -> Path:
    """The build of a core. Of processes that want the same one, one builds and the others wait."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{config.digest[:16]}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return build(config, cache=CACHE)
