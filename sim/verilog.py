"""Blocks of the core as Verilog, for Verilog simulators."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from amaranth import ClockSignal, Instance, Shape, Signal, Value
from amaranth.back import verilog

LARGE_MEMORY = Path(__file__).with_name("large_memory.v")
# A memory of this many bits or more becomes an instance. Amaranth and Yosys would write the initial
# value of each bit, which takes tens of minutes for the 138 million bits of ResNet-20's weights.
LARGE = 1 << 22


class SimulatorError(RuntimeError):
    """A simulator is missing, fails to build a block, or dies; one sentence and its log."""


class SimulatedPlatform:
    """The platform interface of `amaranth.lib.memory.Memory`. A large memory becomes an instance of
    ``large_memory.v`` if it starts with zeros and has one write port and one read port on the same
    clock. Contracts are checked.
    """

    checks = True

    def get_memory(self, memory: Any) -> Any:
        width = Shape.cast(memory.shape).width
        one_each = len(memory.read_ports) == len(memory.write_ports) == 1
        if width * memory.depth < LARGE or not one_each or any(memory.init):
            return memory.elaborate(None)
        read, write = memory.read_ports[0], memory.write_ports[0]
        if read.transparent_for or read.domain != write.domain:
            return memory.elaborate(None)
        return Instance(
            LARGE_MEMORY.stem,
            p_WIDTH=width,
            p_DEPTH=memory.depth,
            p_ADDRESS=len(read.addr),
            p_GRANULE=width // len(write.en),
            i_clk=ClockSignal(read.domain),
            i_write_addr=write.addr,
            i_write_data=write.data,
            i_write_en=write.en,
            i_read_addr=read.addr,
            i_read_en=read.en,
            o_read_data=read.data,
        )


def ports(block: Any) -> list[Signal]:
    """The signals of a block's interface, for a conversion of the block alone.

    Amaranth's own list fails for the constant ``ready`` of an always-ready stream.
    """
    members = (Value.cast(value) for _, _, value in block.signature.flatten(block))
    return [value for value in members if isinstance(value, Signal)]


def convert(block: Any, *, name: str, platform: Any = None) -> str:
    """The text of a module `name` with the block's ports, ``clk`` and ``rst``."""
    os.environ.setdefault("AMARANTH_USE_YOSYS", "builtin")
    return verilog.convert(
        block, name=name, platform=platform, ports=ports(block), strip_internal_attrs=True
    )


def convert_large(block: Any, *, name: str) -> str:
    """The same for a simulator; fast (seconds) also for blocks with memories of many megabits."""
    text = convert(block, name=name, platform=SimulatedPlatform())
    if f"{LARGE_MEMORY.stem} #(" in text:
        text += LARGE_MEMORY.read_text(encoding="utf-8")
    return text
