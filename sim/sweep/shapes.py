"""The jobs of a sweep: a drawn core, and the networks that it runs one after the other."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from lbq_hw.config import Profile
from lbq_hw.network import Network
from lbq_hw.sim.drawn.cores import common_core, common_external_core
from lbq_hw.sim.drawn.memories import random_access, random_memory
from lbq_hw.sim.drawn.networks import random_images, random_network, with_narrow_layers
from lbq_hw.sim.drawn.streams import recording, shared_core, stream_network
from lbq_hw.sim.sweep.cases import Case
from lbq_hw.sim.sweep.smaller import smallest
from lbq_hw.sim.sweep.stands import External, OnChip, Stand, Streaming, Trial
from lbq_hw.sim.verilator import CACHE

KINDS = ("on-chip", "external", "on-chip", "streaming")
"""Kinds of shapes, in turn: half of them have their program in the core's own memories."""
STEPS = 12
"""Steps of a recording."""
_LANES, _SHARES = (4, 8, 16, 32, 64), (0.3, 0.3, 0.2, 0.15, 0.05)


@dataclass(frozen=True, kw_only=True)
class Shape:
    """A core that is drawn from `seed` and `number`, and the number of networks that it runs."""

    seed: int
    number: int
    networks: int

    @property
    def kind(self) -> str:
        return KINDS[self.number % len(KINDS)]

    def draw(self) -> tuple[Stand, list[Trial]]:
        """The core and its networks; the same for the same numbers, on every machine."""
        random = np.random.default_rng((self.seed, self.number))
        first = int(random.integers(1 << 31))
        seeds = range(first, first + self.networks)
        match self.kind:
            case "on-chip":
                return _on_chip(random, seeds)
            case "external":
                return _external(random, seeds)
            case _:
                return _streaming(random, seeds)


def _on_chip(random: np.random.Generator, seeds: Sequence[int]) -> tuple[Stand, list[Trial]]:
    def power(low: int, high: int) -> int:
        return 1 << int(random.integers(low.bit_length() - 1, high.bit_length()))

    lanes = int(random.choice(_LANES, p=_SHARES))
    word = power(max(8, lanes), 256)
    shape = {"word": word, "summary": power(1, min(word, 64)), "units": power(1, lanes)}
    profile = list(Profile)[random.integers(len(Profile))]
    # More channels than lanes, so that layers have several tiles.
    networks = [random_network(seed, channels=5 * lanes // 2 if seed % 2 else None)
                for seed in seeds]  # fmt: skip
    config = common_core(networks, lanes=lanes, profile=profile, **shape).with_(
        fifo_depth=int(random.choice((3, 4, 16))),
        counters=int(random.choice((1, 7))),
        profile=profile,
    )
    return OnChip(config=config), _with_images(networks, seeds)


def _external(random: np.random.Generator, seeds: Sequence[int]) -> tuple[Stand, list[Trial]]:
    own, narrow = int(random.integers(1 << 31)), random.random() < 1 / 3
    networks = []
    for seed in seeds:
        channels, capacity = (6, 12, 20)[seed % 3], 5 if seed % 2 else None
        network = random_network(seed, channels=channels, capacity=capacity)
        networks.append(with_narrow_layers(network, seed) if narrow else network)
    config = common_external_core(networks, own)
    memory = random_memory(config.external, own, row_bits=11)
    stand = External(config=config, memory=memory, access=random_access(own))
    return stand, _with_images(networks, seeds)


def _streaming(random: np.random.Generator, seeds: Sequence[int]) -> tuple[Stand, list[Trial]]:
    lanes = int(random.choice((4, 8, 16)))
    units = int(random.choice([units for units in (1, 2, 4, 8) if units <= lanes]))
    networks = [stream_network(seed) for seed in seeds]
    stand = Streaming(config=shared_core(networks, lanes=lanes, units=units))
    return stand, [
        Trial(network=network, inputs=recording(network, STEPS, seed))
        for network, seed in zip(networks, seeds, strict=True)
    ]


def _with_images(networks: Sequence[Network], seeds: Sequence[int]) -> list[Trial]:
    return [
        Trial(network=network, inputs=random_images(network, 1 + seed % 2, seed))
        for network, seed in zip(networks, seeds, strict=True)
    ]


@dataclass(frozen=True, kw_only=True)
class Result:
    """The result of a shape.

    `build` names the simulation, `inputs` counts the compared images and steps, `cycles` counts
    simulated cycles. With a `difference` there is a `case`, which was made as small as possible.
    """

    number: int
    kind: str
    core: dict[str, Any]
    build: str
    networks: int
    inputs: int
    cycles: int
    seconds: float = field(compare=False)
    difference: str | None = None
    case: Case | None = field(default=None, compare=False)


def run(shape: Shape, cache: Path = CACHE) -> Result:
    """Build a core and run its networks, until one differs.

    The core is never reset, so each network starts with the state that the previous one left.
    """
    began = time.perf_counter()
    stand, trials = shape.draw()
    program = stand.build(cache)
    done = inputs = cycles = 0
    difference = case = None
    with stand.start(program) as core:
        for done, trial in enumerate(trials, 1):
            verdict = stand.judge(core, trial)
            cycles += verdict.cycles
            inputs += len(trial.inputs)
            if verdict.difference is not None:
                difference = f"network {done - 1}: {verdict.difference}"
                break
    if difference is not None:
        case = smallest(Case(stand=stand, trials=tuple(trials[:done])), program)
    return Result(
        number=shape.number,
        kind=shape.kind,
        core=stand.facts()["config"],
        build=program.parent.name,
        networks=done,
        inputs=inputs,
        cycles=cycles,
        seconds=time.perf_counter() - began,
        difference=difference,
        case=case,
    )
