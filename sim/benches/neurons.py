# amaranth: UnusedElaboratable=no
"""NeuronArray against `lbq_hw.numeric`, for every kind of layer."""

from __future__ import annotations

from typing import Any

import cocotb
from cocotb.triggers import RisingEdge

from lbq_hw.config import Profile
from lbq_hw.core.neurons.compact_neurons import CompactNeurons
from lbq_hw.core.neurons.neuron_array import NeuronArray
from lbq_hw.sim.benches.harness import Bench, Settings, pack, unpack
from lbq_hw.sim.benches.scoreboard import Scoreboard
from lbq_hw.sim.models.neurons import LAYERS, build, random_layer, random_params, random_traffic

SHAPES: tuple[dict[str, Any], ...] = (
    {"lanes": 8, "units": 2, "planes": 3, "decay_bits": 1},
    {"lanes": 4, "units": 4, "planes": 1, "decay_bits": 0},
    {"lanes": 4, "units": 1, "planes": 5, "decay_bits": 4},
    {"lanes": 4, "units": 4, "planes": 6, "decay_bits": 1},
    {"lanes": 8, "units": 2, "planes": 3, "decay_bits": 1, "profile": Profile.COMPACT},
)


def block(shape: int) -> NeuronArray:
    return build(**SHAPES[shape])


async def monitor_late(bench: Bench, board: Scoreboard) -> None:
    """Put what is offered together with its planes, of which plane k comes k + 1 cycles later."""
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
    idle = bench.stalls(0.3)
    bench.drive("i_sum", traffic.sums, stall=lambda: idle() or not dut.room.value)
    dut.layer.value = pack(bench.block.layer.shape(), traffic.layer)
    bench.drive("i_step", traffic.steps)
    if not isinstance(bench.block, CompactNeurons):
        bench.monitor("o_planes", traffic.planes)
    else:
        cocotb.start_soon(monitor_late(bench, bench.expect("o_planes", traffic.planes)))
    bench.monitor("o_logits", traffic.logits)
    await bench.finish(extra=60)
    assert not dut.busy.value
