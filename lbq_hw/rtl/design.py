"""A network's core on a bus: its component, and its Verilog."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from amaranth import Signal, Value
from amaranth.back import verilog

from lbq_hw.compiler import Program
from lbq_hw.core.bus.top import BUSES

NAME = "lbq_core"
"""The name of the module and of the files."""
LINT_OFF = (
    "CASEINCOMPLETE", "CASEOVERLAP", "CMPCONST", "DECLFILENAME", "LITENDIAN", "PINCONNECTEMPTY",
    "UNDRIVEN", "UNSIGNED", "UNUSED", "VARHIDDEN", "WIDTH",
)  # fmt: skip
"""Verilator's warnings that are harmless in Verilog written by Yosys. Cases overlap because Yosys
writes If and Elif as one casez, in which the first match counts."""


class AnyFpga:
    """A platform for any FPGA: without primitives, and without checks of contracts."""


@dataclass(frozen=True, kw_only=True)
class Design:
    """A program's core behind a bus, one of `BUSES`."""

    program: Program
    bus: str

    def __post_init__(self) -> None:
        if self.bus not in BUSES:
            raise ValueError(f"bus must be one of {', '.join(BUSES)}, not {self.bus!r}")

    @cached_property
    def logits(self) -> list[int]:
        """Entries of the logits memory, in the order of the classes."""
        return self.program.logits(np.arange(self.program.logit_words)).tolist()

    def component(self) -> Any:
        """The component that becomes the module."""
        image = None if self.program.config.external else self.program.image()
        return BUSES[self.bus](
            self.program.config, layout=self.program.pixels, logits=self.logits, image=image
        )

    def verilog(self) -> str:
        """The module `NAME` with all its submodules, as one text."""
        os.environ.setdefault("AMARANTH_USE_YOSYS", "builtin")
        block = self.component()
        members = (Value.cast(value) for _, _, value in block.signature.flatten(block))
        text = verilog.convert(
            block,
            name=NAME,
            platform=AnyFpga(),
            ports=[value for value in members if isinstance(value, Signal)],
            strip_internal_attrs=True,
        )
        off = "".join(f"/* verilator lint_off {name} */\n" for name in LINT_OFF)
        on = "".join(f"/* verilator lint_on {name} */\n" for name in LINT_OFF)
        return f"{off}{text}{on}"
