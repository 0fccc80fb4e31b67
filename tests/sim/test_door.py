"""Inputs through the door of a simulated board, behind its serial line."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from simulators import CACHE, digits, needs_verilator
from torch import nn

from lbq_hw import datasets, golden, package, zoo
from lbq_hw.compiler import compile_network, smallest_for
from lbq_hw.datasets.fitting import noise
from lbq_hw.host.device import Device
from lbq_hw.host.line import SerialTransport
from lbq_hw.host.transport import DeviceError
from lbq_hw.isa import regions
from lbq_hw.isa.door import Opening
from lbq_hw.isa.regions import Region
from lbq_hw.package import Package
from lbq_hw.sim import board, small_boards
from lbq_hw.sim.board import Board
from lbq_hw.sim.seen import seen
from lbq_hw.train import LBQ, InputSpec, integer_network

pytestmark = needs_verilator

CLOCK_HZ, BAUD = 12_000_000, 1_000_000


@pytest.fixture(scope="module", params=[False, True], ids=["no queue", "queue"])
def packed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Package:
    config = smallest_for(digits(), lanes=4, word=32)
    program = compile_network(digits(), config)
    entries = int(program.logits(np.arange(program.logit_words)).max()) + 1
    opening = Opening(
        pixels=program.pixels,
        results=entries * regions.slices(config)[Region.LOGITS],
        queue=(program.pixels.words + 1) * request.param,
    )
    return package.write(
        tmp_path_factory.mktemp("door") / "digits",
        board="sim",
        config=config,
        model=zoo.find("digits"),
        clock_hz=CLOCK_HZ,
        baud=BAUD,
        baked=True,
        bitstream=None,
        opening=opening,
    )


@pytest.fixture(scope="module")
def running(packed: Package) -> Iterator[Board]:
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "door.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        program = board.build(packed, cache=CACHE)
    with board.running(program, clock_hz=CLOCK_HZ) as simulated:
        yield simulated


def images(count: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    return datasets.load("digits", split="test").images[:count]


def test_all_logits_are_goldens_and_a_host_sees_several_times_more(
    running: Board, packed: Package
) -> None:
    raw = images(40)
    wanted = golden.run(packed.network, raw)
    with SerialTransport.open(running.name, baud=BAUD) as line:
        device = Device(line, packed.program, opening=packed.opening)
        assert device.opening == packed.opening
        began = line.now()
        found = list(device.stream(raw, clock_hz=CLOCK_HZ))
        streamed = line.now() - began
        assert np.array_equal([one.logits for one in found], wanted.logits)
        assert line.repeats == 0
        began = line.now()
        for one, image in zip(found[:10], raw, strict=False):
            assert np.array_equal(device.run(image), one.logits)
            assert device.counters().cycles == one.cycles
        alone = line.now() - began
    assert alone / 10 > 3 * streamed / 40


@pytest.mark.parametrize("given", [1, 5])
def test_a_host_that_went_away_in_the_middle_leaves_nothing_behind(
    running: Board, packed: Package, given: int
) -> None:
    raw = images(12)
    wanted = golden.run(packed.network, raw).logits
    with SerialTransport.open(running.name, baud=BAUD) as line:
        stream = Device(line, packed.program, opening=packed.opening).stream(raw, clock_hz=CLOCK_HZ)
        for number in range(given):
            assert np.array_equal(next(stream).logits, wanted[number])
    with SerialTransport.open(running.name, baud=BAUD) as line:
        device = Device(line, packed.program, opening=packed.opening)
        found = [one.logits for one in device.stream(raw[::-1], clock_hz=CLOCK_HZ)]
    assert np.array_equal(found, wanted[::-1])


def test_the_door_of_another_network_is_not_used(running: Board, packed: Package) -> None:
    opening = packed.opening
    assert opening is not None
    other = Opening(
        pixels=replace(opening.pixels, base=8),
        results=opening.results,
    )
    raw = images(2)
    with SerialTransport.open(running.name, baud=BAUD) as line:
        device = Device(line, packed.program, opening=other)
        assert device.opening is None
        found = [one.logits for one in device.stream(raw, clock_hz=CLOCK_HZ)]
    assert np.array_equal(found, golden.run(packed.network, raw).logits)


def test_a_package_keeps_the_opening(packed: Package) -> None:
    assert package.read(packed.folder).opening == packed.opening


def test_a_run_that_fails_is_told(running: Board, packed: Package) -> None:
    layers = regions.address(packed.config, Region.LAYERS, 0)
    with SerialTransport.open(running.name, baud=BAUD) as line:
        device = Device(line, packed.program, opening=packed.opening)
        line.write(layers, [0xFFFF_FFFF])
        try:
            with pytest.raises(DeviceError, match=r"^the core stopped with error LAYER at 0$"):
                list(device.stream(images(3), clock_hz=CLOCK_HZ))
        finally:
            assert line.wait(1_000_000)
            device.load()
        (again,) = device.stream(images(1), clock_hz=CLOCK_HZ)
    assert np.array_equal(again.logits, golden.run(packed.network, images(1)).logits[0])


@pytest.mark.slow
def test_pixels_that_wait_for_a_run_are_spread_in_simulated_time(tmp_path: Path) -> None:
    """The line is silent then, and no run has begun; an idle board would skip this time."""
    torch.manual_seed(0)
    spec = InputSpec(shape=(3, 32, 32), static=True, bits=8)
    model = nn.Sequential(
        *(nn.Conv2d(3, 16, 3, padding=1), LBQ(timesteps=1), nn.AdaptiveAvgPool2d(1)),
        *(nn.Flatten(), nn.Linear(16, 10)),
    )
    network = integer_network(model.eval(), spec)
    packed = small_boards.on_chip(network, tmp_path, queue=True)
    found = seen(packed, noise(network, 3), latency=0.001, cache=CACHE)
    assert (found.equal, found.repeats) == (True, 0)
