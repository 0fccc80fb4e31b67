"""The streaming core in Verilator against golden and the cycle model, at every step."""

from __future__ import annotations

import pytest
from stream_cores import simulated

from lbq_hw.sim.drawn.streams import compiled, recording, shared_core, stream_network
from lbq_hw.sim.streams import follow


def check(seeds: range, *, steps: int) -> None:
    """Random networks on one core: levels, logits and cycles of every step."""
    networks = [stream_network(seed) for seed in seeds]
    shape = {"lanes": 4, "units": 2}
    config = shared_core(networks, **shape)
    programs = [compiled(network, config, **shape) for network in networks]
    with simulated(programs) as devices:
        for seed, network, device in zip(seeds, networks, devices, strict=True):
            found = follow(network, device, recording(network, steps, seed))
            assert found.difference is None, seed


@pytest.mark.slow
def test_300_random_networks_are_exact_at_every_step() -> None:
    check(range(300), steps=8)


@pytest.mark.slow
def test_50_random_networks_are_exact_for_120_steps() -> None:
    check(range(1000, 1050), steps=120)
