"""Cores in Verilator that tests share: a build takes long, so many networks use each."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

from lbq_hw import chips, file, zoo
from lbq_hw.config import SPREAD_WEIGHT_BITS, CoreConfig, Profile
from lbq_hw.isa import regions
from lbq_hw.network import Network
from lbq_hw.sim.drawn.cores import common_core, common_external_core
from lbq_hw.sim.drawn.memories import random_memory
from lbq_hw.sim.drawn.networks import random_network, with_narrow_layers
from lbq_hw.sim.mutants.suites import PROGRAM
from lbq_hw.sim.verilator import build
from lbq_hw.sim.with_memory import Memory

CACHE = Path(__file__).parents[1] / "build" / "sim"
Shape = tuple[int, int, int, int]
"""P, W, S and L."""
NARROW: Shape = (4, 16, 8, 2)
WIDE: Shape = (16, 64, 16, 4)
SHAPES: tuple[Shape, ...] = (
    (4, 8, 1, 1),
    (4, 256, 8, 4),
    (8, 8, 4, 8),
    (8, 32, 32, 2),
    (16, 16, 2, 1),
    (16, 128, 64, 16),
    (32, 32, 16, 8),
    (32, 64, 8, 4),
    (64, 64, 16, 16),
    (64, 256, 32, 1),
)
"""For sweeps, each with the networks of `shape_seeds`."""
MIXED = (43, 35, 41)
"""Shapes of cores with external memory whose networks have fewer weight bits in some layers; 43 and
41 have pairs."""
UNCHECKED = ("+verilator+noassert",)
"""Option of a simulation of programs with a fault: the compiler promises what some contracts say,
such as that no layer writes what it reads."""
EXTERNAL_EACH = 50
"""Networks of a core with external memory."""

needs_verilator = pytest.mark.skipif(
    shutil.which("verilator") is None, reason="verilator is missing: sudo apt install verilator"
)


def drawn(seed: int, lanes: int) -> Network:
    """A random network; of an odd seed, with more channels than lanes, so that tiles are walked."""
    return random_network(seed, channels=5 * lanes // 2 if seed % 2 else None)


def shape_seeds(shape: Shape) -> range:
    """Seeds of the networks that a core of one of the `SHAPES` is built for."""
    first = 1000 * SHAPES.index(shape)
    return range(first, first + 30)


@cache
def digits() -> Network:
    return file.load(zoo.find("digits"))


@cache
def shared_core(shape: Shape, seeds: range = range(25)) -> CoreConfig:
    """A core that runs `drawn` of all these seeds, and the digits."""
    lanes, word, summary, units = shape
    networks = [digits(), *(drawn(seed, lanes) for seed in seeds)]
    core = common_core(networks, lanes=lanes, word=word, summary=summary, units=units)
    return core.with_(
        # So that records can name weight rows and paths that do not exist.
        weight_rows=core.weight_rows | 1,
        layer_paths=core.layer_paths + 1,
        # The fewest, where events wait most.
        fifo_depth=3 if units == 1 else 16,
        profile=Profile.STANDARD if word > 32 else Profile.COMPACT,
    )


@cache
def spread_core(shape: Shape) -> CoreConfig:
    """The same for weights that fill a chip, most of which no network uses."""
    core = shared_core(shape)
    rows = SPREAD_WEIGHT_BITS // (core.lanes * core.weight_bits) + 1
    return core.with_(weight_rows=rows, profile=Profile.SPREAD)


def external_network(shape: int, number: int) -> Network:
    """One of the networks of a core with external memory, most of them larger than it."""
    seed = 100 * shape + number
    network = random_network(seed, channels=(6, 12, 20)[seed % 3], capacity=5 if seed % 2 else None)
    return with_narrow_layers(network, seed) if shape in MIXED else network


@cache
def external_core(shape: int) -> tuple[CoreConfig, Memory]:
    """A core for all networks of a shape, and its memory. Shape 0 has the usual memory."""
    networks = [external_network(shape, number) for number in range(EXTERNAL_EACH)]
    config = common_external_core(networks, shape)
    if shape:
        return config, random_memory(config.external, shape)
    chip, clock_hz = chips.usual(config.external)
    return config, Memory(chip=chip, clock_hz=clock_hz)


@cache
def bench(config: CoreConfig, memory: Memory | None = None) -> Path:
    """The build of a core. Of processes that want the same one, one builds and the others wait.

    It is the one of `lbq_hw.sim.mutants`, if that has planted faults in this core.
    """
    planted = Path(os.environ.get(PROGRAM, "")) / config.digest
    if PROGRAM in os.environ and planted.exists():
        return planted
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{config.digest[:16]}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return build(config, memory, cache=CACHE)


def absent(config: CoreConfig) -> Mapping[str, int]:
    """Addresses of nothing, by what is near them."""
    found = {
        f"region {region}": region << regions.SHIFT
        for region in range(len(regions.reached(config)), 16)
    }
    slices, entries = regions.slices(config), regions.entries(config)
    for region in regions.reached(config):
        part_bits = (slices[region] - 1).bit_length()
        beyond = region << regions.SHIFT | entries[region] << part_bits
        for bit in range((entries[region] - 1).bit_length() + part_bits, regions.SHIFT):
            found[f"bit {bit} in {region.name}"] = region << regions.SHIFT | 1 << bit
        found[f"entry after {region.name}"] = beyond
        found[f"last of {region.name}"] = (region + 1 << regions.SHIFT) - 1
        if slices[region] < 1 << part_bits:
            found[f"slice after {region.name}"] = region << regions.SHIFT | slices[region]
    return found
