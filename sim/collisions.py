"""Reads that a memory with ``no_rw_check`` leaves undefined, made wrong on purpose.

A memory with this attribute may return anything if a word is read in the cycle of its write, and
FPGA families differ in the result. Simulators return the old word, so a block that relies on it
would pass in simulation and fail on a board. Here such a read returns the old word inverted. If the
results are right in both cases, they depend on no bit of it.
"""

from __future__ import annotations

from typing import Any

from amaranth import Fragment, Module, Signal, Value
from amaranth.lib import memory

from lbq_hw.sim.verilog import convert

__all__ = ["CollidingPlatform", "colliding", "convert_colliding"]


class CollidingPlatform:
    """The platform interface of `amaranth.lib.memory.Memory`; `wrapped` counts the memories whose
    colliding reads are inverted.
    """

    checks = True

    def __init__(self) -> None:
        self.wrapped = 0

    def get_memory(self, given: Any) -> Any:
        if not given.attrs.get("no_rw_check"):
            return given.elaborate(None)
        self.wrapped += 1
        (write,) = given.write_ports
        m: Any = Module()
        m.submodules.store = store = memory.Memory(given.data)
        inner_write: Any = store.write_port(granularity=write.signature.granularity)
        m.d.comb += [
            inner_write.addr.eq(write.addr),
            Value.cast(inner_write.data).eq(Value.cast(write.data)),
            inner_write.en.eq(write.en),
        ]
        for number, read in enumerate(given.read_ports):
            assert not read.transparent_for, "a memory cannot both forward a write and not care"
            inner_read: Any = store.read_port()
            collided = Signal(reset_less=True, name=f"collided_{number}")
            m.d.comb += [
                inner_read.addr.eq(read.addr),
                inner_read.en.eq(read.en),
                Value.cast(read.data).eq(
                    Value.cast(inner_read.data) ^ collided.replicate(len(Value.cast(read.data)))
                ),
            ]
            with m.If(read.en):
                m.d.sync += collided.eq(write.en.any() & (read.addr == write.addr))
        return m


def colliding(block: Any) -> Fragment:
    """A block whose colliding reads are inverted, for Amaranth's simulator."""
    return Fragment.get(block, CollidingPlatform())


def convert_colliding(block: Any, *, name: str) -> tuple[str, int]:
    """The same block as Verilog, and the number of memories whose colliding reads are inverted."""
    platform = CollidingPlatform()
    return convert(block, name=name, platform=platform), platform.wrapped
