"""Streaming cores in Verilator, and networks that share one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import reduce

from lbq_hw.core.streaming.accelerator import StreamAccelerator
from lbq_hw.host.streaming import StreamDevice
from lbq_hw.network import Network
from lbq_hw.sim.verilator import BENCH, TOP, Verilated, build_bench
from lbq_hw.sim.verilog import convert_large
from lbq_hw.streaming.compiler import compile_stream
from lbq_hw.streaming.config import StreamConfig
from lbq_hw.streaming.program import StreamProgram

HORIZON = 256
"""Steps for which membranes are proven: fewer take less time to prove."""
ROOM = 1 << 12


def shared_core(networks: Sequence[Network], *, lanes: int, units: int) -> list[StreamProgram]:
    """Programs of all networks for one core."""

    def compiled(network: Network, config: StreamConfig | None = None) -> StreamProgram:
        return compile_stream(network, lanes=lanes, units=units, horizon=HORIZON, config=config)

    alone = [compiled(network) for network in networks]
    config = reduce(StreamConfig.joined, (program.config for program in alone))
    # Records and input pixels take more room in a core that can do more.
    roomy = replace(config, record_words=ROOM, level_words=ROOM)
    return [compiled(network, roomy) for network in networks]


@contextmanager
def simulated(programs: Sequence[StreamProgram]) -> Iterator[Iterator[StreamDevice]]:
    """Devices of programs for one core, each loaded when it is asked for."""
    text = convert_large(StreamAccelerator(programs[0].config), name=TOP)
    with Verilated(build_bench(text, BENCH, top=TOP)) as transport:

        def devices() -> Iterator[StreamDevice]:
            for program in programs:
                device = StreamDevice(transport, program)
                device.load()
                yield device

        yield devices()
