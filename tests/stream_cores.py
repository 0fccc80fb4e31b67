"""Streaming cores in Verilator, and networks that share one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from lbq_hw.host.streaming import StreamDevice
from lbq_hw.sim.streams import rtl
from lbq_hw.sim.verilator import BENCH, TOP, Verilated, build_bench
from lbq_hw.streaming.program import StreamProgram


@contextmanager
def simulated(programs: Sequence[StreamProgram]) -> Iterator[Iterator[StreamDevice]]:
    """Devices of programs for one core, each loaded when it is asked for."""
    text = rtl(programs[0].config)
    with Verilated(build_bench(text, BENCH, top=TOP)) as transport:

        def devices() -> Iterator[StreamDevice]:
            for program in programs:
                device = StreamDevice(transport, program)
                device.load()
                yield device

        yield devices()
