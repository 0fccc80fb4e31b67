"""Blocks of the core as Verilog, for simulators that read it."""

from __future__ import annotations

import os
from typing import Any

from amaranth import Signal, Value
from amaranth.back import verilog


class SimulatorError(RuntimeError):
    """A simulator that is missing, does not build a block or dies; one sentence and its log."""


def ports(block: Any) -> list[Signal]:
    """The signals of a block's interface, for a conversion of the block alone.

    Amaranth would list them itself, but stumbles over the constant of an always-ready stream.
    """
    members = (Value.cast(value) for _, _, value in block.signature.flatten(block))
    return [value for value in members if isinstance(value, Signal)]


def convert(block: Any, *, name: str) -> str:
    """The text of a module `name` with the block's ports, ``clk`` and ``rst``."""
    os.environ.setdefault("AMARANTH_USE_YOSYS", "builtin")
    return verilog.convert(block, name=name, ports=ports(block), strip_internal_attrs=True)
