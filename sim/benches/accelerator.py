# amaranth: UnusedElaboratable=no
"""The whole core, by the host's own code, against golden tensors of networks of the zoo."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import cocotb
import numpy as np
from cocotb.task import bridge

from lbq_hw import file, isa, zoo
from lbq_hw.compiler import Program, compile_network, smallest_for
from lbq_hw.config import CoreConfig, Profile
from lbq_hw.core.accelerator import Accelerator, accelerator
from lbq_hw.host import Device
from lbq_hw.host.device import START
from lbq_hw.isa import Error, regions
from lbq_hw.isa.regions import Region
from lbq_hw.network import Network
from lbq_hw.sim import golden
from lbq_hw.sim.benches.harness import Bench, Settings
from lbq_hw.sim.benches.port import Bridged, Port
from lbq_hw.sim.golden import Tensors

SHAPES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("digits", {"lanes": 16}),
    ("digits", {"lanes": 8, "word": 16, "summary": 4, "units": 8}),
    ("digits", {"lanes": 4}),
    ("digits", {"lanes": 8, "profile": Profile.COMPACT}),
    ("digits", {"lanes": 16, "profile": Profile.SPREAD}),
    ("mnist-4bit", {"lanes": 16}),
    ("nmnist", {"lanes": 16}),
)


def network(shape: int) -> Network:
    return file.load(zoo.find(SHAPES[shape][0]))


def config(shape: int) -> CoreConfig:
    return smallest_for(network(shape), **SHAPES[shape][1])


def block(shape: int) -> Accelerator:
    return accelerator(config(shape))(config(shape))


@cocotb.test()
async def a_network_layer_by_layer(dut: Any) -> None:
    bench, port = await start(dut)
    shape = bench.settings.shape
    tensors = golden.load(SHAPES[shape][0])
    images = range(min(bench.settings.length, len(tensors.images)))
    program = compile_network(network(shape), config(shape))
    await layer_by_layer(bench, port, program, tensors, images)


@cocotb.test()
async def the_first_of_three_errors_stays(dut: Any) -> None:
    bench, port = await start(dut)
    core = config(bench.settings.shape)
    status, control = (regions.REGISTERS[name].address for name in ("status", "control"))
    board = bench.expect("status, error, place", [[0b110, Error.BUSY, 0]])
    illegal = [0xFFFFFFFF] * isa.LAYER.slices(core)
    await port.write(regions.address(core, Region.LAYERS, 0), illegal)
    await port.write(control, [START])
    await port.write(control, [START])  # refused: busy
    assert await port.wait(1000)  # the walk has refused its layer
    await port.write(15 << regions.SHIFT, [0])  # refused: there is no such region
    board.put(await port.read(status, 3))
    await bench.finish()


async def start(dut: Any) -> tuple[Bench, Port]:
    bench = await Bench.start(dut, block(Settings.from_env().shape))
    return bench, Port(dut)


def message(image: int, layer: str, timestep: int, values: Any) -> dict[str, Any]:
    place = {"image": image, "layer": layer, "timestep": timestep}
    return place | {"values": np.asarray(values, np.int64).tolist()}


async def layer_by_layer(
    bench: Bench, port: Port, program: Program, tensors: Tensors, images: Iterable[int]
) -> None:
    """Load a program and compare every level and logit of images with the tensors."""
    chosen = list(images)
    expected = (message for image in chosen for message in made(tensors, image))
    board = bench.expect("tensors", expected)

    def host() -> None:
        device = Device(Bridged(port), program)
        device.load()
        for image in chosen:
            device.write_image(tensors.images[image])
            for index, name in enumerate(tensors.levels):
                device.run_layer(index)
                for timestep, levels in enumerate(device.read_levels(name)):
                    board.put(message(image, name, timestep, levels))
            device.run_layer(len(program.info) - 1)
            board.put(message(image, "logits", 0, device.read_logits()))
            board.put(message(image, "logits", 1, device.run(tensors.images[image])))

    await bridge(host)()
    await bench.finish()


def made(tensors: Tensors, image: int) -> Iterator[dict[str, Any]]:
    """The golden tensors in the order in which the host reads them; the logits twice."""
    for layer, levels in tensors.levels.items():
        for timestep, values in enumerate(levels[image]):
            yield message(image, layer, timestep, values)
    for turn in range(2):
        yield message(image, "logits", turn, tensors.logits[image])
