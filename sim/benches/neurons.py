# amaranth: UnusedElaboratable=no
"""NeuronArray of every profile against `lbq_hw.numeric`, for every kind of layer."""

from __future__ import annotations

from typing import Any

import cocotb
from cocotb.triggers import RisingEdge

from lbq_hw.config import Profile
from lbq_hw.core.neurons.compact_neurons import CompactNeurons
from lbq_hw.core.neurons.neuron_array import NeuronArray
from lbq_hw.core.neurons.partial_neurons import PartialNeurons
from lbq_hw.sim.benches.harness import Bench, Settings, pack, unpack
from lbq_hw.sim.benches.scoreboard import Scoreboard
from lbq_hw.sim.models.neurons import (
    LAYERS,
    Traffic,
    build,
    random_layer,
    random_params,
    random_traffic,
)

SHAPES: tuple[dict[str, Any], ...] = (
    {"lanes": 8, "units": 2, "planes": 3, "decay_bits": 1},
    {"lanes": 4, "units": 4, "planes": 1, "decay_bits": 0},
    {"lanes": 4, "units": 1, "planes": 5, "decay_bits": 4},
    {"lanes": 4, "units": 4, "planes": 6, "decay_bits": 1},
    {"lanes": 8, "units": 2, "planes": 3, "decay_bits": 1, "profile": Profile.COMPACT},
    {"lanes": 8, "units": 2, "planes": 3, "decay_bits": 1, "partial_words": 256},
)
PARTS = 3
"""Passes into which the sums of an array with partial sums are cut."""


def block(shape: int) -> NeuronArray:
    return build(**SHAPES[shape])


async def monitor_late(bench: Bench, board: Scoreboard) -> None:
    """Put each offer together with its planes; plane k comes k + 1 cycles after the offer."""
    dut, block = bench.dut, bench.block
    waiting: list[dict] = []
    while True:
        await RisingEdge(dut.clk)
        if waiting:
            planes = unpack(block.planes.shape(), int(dut.planes.value))
            for message in waiting:
                message["planes"].append(planes[len(message["planes"])])
            if len(waiting[0]["planes"]) == len(planes):
                board.put(waiting.pop(0))
        if dut.o_planes__valid.value:
            head = unpack(block.o_planes.payload.shape(), int(dut.o_planes__payload.value))
            waiting.append(head | {"planes": []})


@cocotb.test()
@cocotb.parametrize(kind=list(LAYERS))
async def levels_and_logits_of_random_sums(dut: Any, kind: str) -> None:
    sizes = SHAPES[Settings.from_env().shape]
    bench = await Bench.start(dut, build(**sizes))
    params = random_params(bench.random, sizes["lanes"])
    words = params.T.reshape(-1, len(params) * sizes["units"]).tolist()
    dut.params__en.value = (1 << len(params) * sizes["units"]) - 1
    for address, values in enumerate(words):
        dut.params__addr.value = address
        dut.params__data.value = pack(bench.block.params.data.shape(), values)
        await bench.cycles(1)
    dut.params__en.value = 0
    layer = random_layer(bench.random, sizes, LAYERS[kind])
    shape = {name: sizes[name] for name in ("lanes", "units", "planes")}
    traffic = random_traffic(bench.random, layer, params, **shape, pixels=4 * bench.settings.length)
    if not isinstance(bench.block, CompactNeurons):
        bench.monitor("o_planes", traffic.planes)
    else:
        cocotb.start_soon(monitor_late(bench, bench.expect("o_planes", traffic.planes)))
    bench.monitor("o_logits", traffic.logits)
    for info, sums in in_parts(bench, traffic):
        await send(bench, info, sums, traffic.steps)
    await bench.finish(extra=60)
    assert not dut.busy.value


def in_parts(bench: Bench, traffic: Traffic) -> list[tuple[dict[str, int], list[list[int]]]]:
    """The layer and its sums; with partial sums, passes of a layer and the part that each adds."""
    if not isinstance(bench.block, PartialNeurons):
        return [(traffic.layer, traffic.sums)]
    parts = [
        [[bench.random.randrange(-300, 300) for _ in total] for total in traffic.sums]
        for _ in range(PARTS - 1)
    ]
    rest = [
        [total - sum(given) for total, *given in zip(*each, strict=True)]
        for each in zip(traffic.sums, *parts, strict=True)
    ]
    kept = traffic.layer | {"updates": 1, "partial_out": 1}
    infos = [kept, *[kept | {"partial_in": 1}] * (PARTS - 2), traffic.layer | {"partial_in": 1}]
    return list(zip(infos, [*parts, rest], strict=True))


async def send(bench: Bench, info: dict[str, int], sums: list, steps: list[dict]) -> None:
    """One pass: begin it, give its sums and steps, and wait until all of it is done."""
    dut, idle = bench.dut, bench.stalls(0.3)
    dut.layer.value = pack(bench.block.layer.shape(), info)
    if isinstance(bench.block, PartialNeurons):
        dut.begin.value = 1
        await bench.cycles(1)
        dut.begin.value = 0
    given = bench.drive("i_sum", sums, stall=lambda: idle() or not dut.room.value)
    told = bench.drive("i_step", steps)
    await bench.until(given)
    await bench.until(told)
    await bench.cycles(2)
    while dut.busy.value:
        await bench.cycles(1)
    for end in (given, told):
        bench.ends.remove(end)
