"""Programs that the compiler never makes: what a path's steps mean holds for all their values."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from simulators import NARROW, WIDE, Shape, bench, drawn, needs_verilator, shared_core

from lbq_hw import golden, isa
from lbq_hw.compiler import Program, compile_network
from lbq_hw.host import Device
from lbq_hw.isa import regions
from lbq_hw.isa.regions import Region
from lbq_hw.sim.drawn.networks import random_images
from lbq_hw.sim.verilator import Verilated

pytestmark = needs_verilator

AXES = ("row", "column")
Record = dict[str, int]


def whole(layer: Record, axis: str) -> bool:
    """Whether max-pool windows have several positions on an axis, and none is cut at an edge."""
    last, first = layer[f"window_{axis}s_last"], layer[f"window_{axis}_init"]
    step, positions = layer[f"window_{axis}_step"], layer[f"{axis}s_last"]
    return last > 0 <= first and first + positions * step + last <= layer[f"conv_{axis}s_last"]


def backward(program: Program) -> Iterator[tuple[int, Record, set[str]]]:
    """The paths whose windows can be walked from their last position to their first, so changed.

    The maximum over a window is the same in every order.
    """
    paths = program.table("paths")
    for layer in program.table("layers"):
        axes = [axis for axis in AXES if whole(layer, axis)]
        for number in range(layer["path_first"], layer["path_last"] + 1) if axes else ():
            path = dict(paths[number])
            for axis in axes:
                step = path[f"{axis}_window"]
                path[f"{axis}_init"] += layer[f"window_{axis}s_last"] * step
                path[f"{axis}_window"] = -step
            yield number, path, {axis for axis in axes if paths[number][f"{axis}_window"]}


@pytest.mark.parametrize("shape", [NARROW, WIDE], ids=["narrow", "wide"])
def test_windows_can_be_walked_backward(shape: Shape) -> None:
    config, seen = shared_core(shape), set[str]()
    with Verilated(bench(config)) as core:
        for seed in range(25):
            network = drawn(seed, config.lanes)
            program = compile_network(network, config)
            if not (changed := [*backward(program)]):
                continue
            images = random_images(network, 1, seed)
            wanted = golden.run(network, images, keep="levels")
            device = Device(core, program)
            device.load()
            for number, path, axes in changed:
                word = isa.PATH.encode(config, path)
                for part in range(isa.PATH.slices(config)):
                    place = regions.address(config, Region.PATHS, number, part)
                    core.write(place, [word >> (32 * part) & 0xFFFFFFFF])
                seen |= axes
            device.write_image(images[0])
            levels = wanted.emitted(0)
            for index, info in enumerate(program.info[:-1]):
                device.run_layer(index)
                found = device.read_levels(info.name)
                assert np.array_equal(found, levels[info.name]), f"seed {seed}: {info.name}"
            assert np.array_equal(device.run(images[0]), wanted.logits[0]), f"seed {seed}"
    assert seen == {*AXES}
