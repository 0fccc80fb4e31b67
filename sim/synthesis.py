"""The lane array on real fabrics: its cells, and the clock it reaches after routing."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amaranth import Cat, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from lbq_hw import tools
from lbq_hw.core.fabric.contracts import UNCHECKED
from lbq_hw.core.lanes.lane_array import LaneArray
from lbq_hw.sim.verilog import convert
from lbq_hw.tools import logs
from lbq_hw.tools.process import call


@dataclass(frozen=True, kw_only=True)
class Part:
    """A device and its names in the tools. `cells` has the number of LUT4s per cell of a kind."""

    name: str
    synth: str
    placer: str
    place: tuple[str, ...]
    cells: dict[str, int]


UP5K = Part(
    name="iCE40 UP5K",
    synth="synth_ice40 -device u",
    placer="nextpnr-ice40",
    place=("--up5k", "--package", "sg48", "--pcf-allow-unconstrained"),
    cells={"SB_LUT4": 1},
)
ECP5_85 = Part(
    name="ECP5-85",
    synth="synth_ecp5",
    placer="nextpnr-ecp5",
    place=("--85k", "--package", "CABGA381", "--lpf-allow-unconstrained"),
    cells={"LUT4": 1, "CCU2C": 2, "TRELLIS_DPR16X4": 4},
)


@dataclass(frozen=True, kw_only=True)
class Figures:
    """The figures: LUT4s of the array alone, and MHz after routing with registers around it."""

    luts: int
    mhz: float


def lane_array(part: Part, *, lanes: int, acc_bits: int, weight_bits: int, rows: int) -> Figures:
    """Synthesise a `LaneArray` alone for its size, and in a `Shell` for its speed.

    Raises ToolError and MissingToolError.
    """

    def array() -> LaneArray:
        return LaneArray(lanes=lanes, rows=rows, weight_bits=weight_bits, acc_bits=acc_bits)

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _synthesise(part, array(), folder)
        counted = logs.cells(json.loads((folder / "cells.json").read_text(encoding="utf-8")))
        _synthesise(part, Shell(array()), folder)
        arguments = [*part.place, "--json", "netlist.json", "--freq", "100", "--seed", "1"]
        arguments += ["--report", "place.json", "--timing-allow-fail"]
        call(tools.need(part.placer), arguments, folder=folder, log=folder / "place.log")
        placed = json.loads((folder / "place.json").read_text(encoding="utf-8"))
    return Figures(
        luts=sum(counted.get(kind, 0) * size for kind, size in part.cells.items()),
        mhz=min(clock.fmax_hz for clock in logs.timing(placed).clocks) / 1e6,
    )


def _synthesise(part: Part, block: wiring.Component, folder: Path) -> None:
    (folder / "top.v").write_text(convert(block, name="top", platform=UNCHECKED), encoding="utf-8")
    # abc9 refuses Amaranth's names for elements of arrays
    script = (
        f"read_verilog top.v; rename -hide w:*[*; {part.synth} -top top -json netlist.json; "
        "tee -q -o cells.json stat -json"
    )
    call(tools.need("yosys"), ["-q", "-p", script], folder=folder, log=folder / "synth.log")


class Shell(wiring.Component):
    """A block between registers, with two pins: inputs shift in, the parity of outputs goes out.

    With it, a block can be placed that has more ports than a package has pins. Only the block's own
    paths limit the clock, since the parity is a tree with registers.
    """

    def __init__(self, block: wiring.Component):
        self._block = block
        super().__init__({"i": In(1), "o": Out(1)})

    def elaborate(self: Any, _platform: Any) -> Module:
        m: Any = Module()
        m.submodules.block = block = self._block
        inputs: list[Any] = []
        outputs: list[Any] = []
        for _, member, value in block.signature.flatten(block):
            value = Value.cast(value)
            if member.flow == In and isinstance(value, Signal):
                inputs.append(value)
            elif member.flow == Out:
                outputs.append(value)
        chain = Signal(len(Cat(inputs)))
        m.d.sync += chain.eq(Cat(self.i, chain))
        taken: Any = Cat(inputs)
        m.d.comb += taken.eq(chain)
        level: Any = Signal(len(Cat(outputs)))
        m.d.sync += level.eq(Cat(outputs))
        while len(level) > 1:
            narrower: Any = Signal(-(-len(level) // 4))
            m.d.sync += [
                narrower[n].eq(level[4 * n : 4 * n + 4].xor()) for n in range(len(narrower))
            ]
            level = narrower
        m.d.comb += self.o.eq(level)
        return m
