"""Streaming cores in Verilator, and networks that share one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import reduce

from lbq_hw.core.streaming.accelerator import StreamAccelerator
from lbq_hw.host.streaming import StreamDevice
from lbq_hw.network import Network
from lbq_hw.sim.verilator import BENCH, TOP, Verilated, build_bench
from lbq_hw.sim.verilog import convert_large
from lbq_hw.streaming.compiler import compile_stream
from lbq_hw.streaming.config import StreamConfig
from lbq_hw.streaming.program import StreamProgram


def shared_core(networks: Sequence[Network], *, lanes: int, units: int) -> list[StreamProgram]:
    """Programs of all networks for one core."""
    alone = [compile_stream(network, lanes=lanes, units=units) for network in networks]
    config = reduce(StreamConfig.joined, (program.config for program in alone))
    widest = reduce(
        StreamConfig.joined, (_with_room(network, config, lanes, units) for network in networks)
    )
    return [
        compile_stream(network, lanes=lanes, units=units, config=widest) for network in networks
    ]


def _with_room(network: Network, config: StreamConfig, lanes: int, units: int) -> StreamConfig:
    """Records grow with the core that they are for."""
    values = {**vars(config), "record_words": 1 << 12}
    wide = StreamConfig.from_dict(values)
    program = compile_stream(network, lanes=lanes, units=units, config=wide)
    words = max(
        len(entries) for region, entries in program.image.items() if region.name == "RECORDS"
    )
    return StreamConfig.from_dict({**vars(config), "record_words": max(config.record_words, words)})


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
