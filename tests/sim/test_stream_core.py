"""The streaming core in Verilator against golden and the cycle model, at every step."""

from __future__ import annotations

import numpy as np
import pytest
from stream_cores import simulated

from lbq_hw.golden.streaming import Stream
from lbq_hw.sim.drawn.streams import compiled, recording, shared_core, stream_network
from lbq_hw.streaming.cycles import step_cycles
from lbq_hw.streaming.machine import Machine


def check(seeds: range, *, steps: int) -> None:
    """Random networks on one core: levels, logits and cycles of every step."""
    networks = [stream_network(seed) for seed in seeds]
    shape = {"lanes": 4, "units": 2}
    config = shared_core(networks, **shape)
    programs = [compiled(network, config, **shape) for network in networks]
    with simulated(programs) as devices:
        for seed, network, device in zip(seeds, networks, devices, strict=True):
            golden, machine = Stream(network), Machine(device.program)
            for t, frame in enumerate(recording(network, steps, seed)):
                expected, logits = golden.step(frame), device.step(frame)
                assert logits.tolist() == expected.logits.tolist(), (seed, t)
                for name, levels in expected.levels.items():
                    assert np.array_equal(device.levels(name), levels), (seed, t, name)
                work = machine.step(device.program.events(frame))
                assert device.cycles() == sum(step_cycles(device.config, work)), (seed, t)


@pytest.mark.slow
def test_300_random_networks_are_exact_at_every_step() -> None:
    check(range(300), steps=8)


@pytest.mark.slow
def test_50_random_networks_are_exact_for_120_steps() -> None:
    check(range(1000, 1050), steps=120)
