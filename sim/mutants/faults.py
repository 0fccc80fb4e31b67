"""Faults in the netlist of a core: Yosys draws them, and one at a time is switched on.

A bit of a cell's port is inverted, stuck or bound to another. Initial values are left as they are,
and so is what stands around a core in simulation. All faults are in one text.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from amaranth.back import rtlil

from lbq_hw.core.fabric.contracts import UNCHECKED
from lbq_hw.sim.sweep.stands import Stand
from lbq_hw.sim.verilator import TOP
from lbq_hw.sim.verilog import ports
from lbq_hw.tools import need
from lbq_hw.tools.process import call

INPUT = "mutant"
"""Of a core with faults: the number of the one that is switched on, 0 for none."""
_ROOT = Path(__file__).resolve().parents[2]
_CHOICE = re.compile(rf"-ctrl {INPUT} \d+ \d+")
_FAULT = re.compile(
    r"-mode (\S+) .*?-cell (\S+) -port (\S+) -portbit (\d+)"
    r"(?:.*?-wire (\S+) -wirebit (\d+))?"
)
_SOURCE = re.compile(rf"-src {re.escape(str(_ROOT))}/((?!\.)\S+)")
"""The first line of the repository's own; lines of installed packages are passed over."""


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A bit of a cell's port, what is done to it, and where the cell comes from; the wire at it, if
    that has a name in the design.
    """

    number: int
    mode: str
    cell: str
    port: str
    bit: int
    wire: str
    source: str
    command: str = field(repr=False)

    def __str__(self) -> str:
        return f"{self.mode} of {self.cell}.{self.port}[{self.bit}] {self.source}"

    def alone(self) -> str:
        """The command of Yosys that plants it in a core without others, where its number is 1."""
        return _CHOICE.sub(f"-ctrl {INPUT} 1 1", self.command)


def plant(stand: Stand, *, count: int, seed: int) -> tuple[str, list[Fault]]:
    """A core as Verilog with the input `INPUT`, and the faults that it can choose, from 1 on."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        script = [
            *flat(stand, folder),
            f"mutate -list {count} -seed {seed} -ctrl {INPUT} {count.bit_length()} 1 -o faults.ys "
            "t:$* t:$meminit* %d t:$scopeinfo %d a:src=*lbq_hw/sim/* %d",
            "script faults.ys",
            "opt_clean",
            "write_verilog -noattr core.v",
        ]
        run(script, folder)
        lines = (folder / "faults.ys").read_text(encoding="utf-8").splitlines()
        planted = (folder / "core.v").read_text(encoding="utf-8")
    return planted + stand.models(), [*_faults(lines)]


def flat(stand: Stand, folder: Path) -> list[str]:
    """Commands of Yosys, called in `folder`, that read a core as one module.

    What changes nothing goes first, so that few faults are equivalent.
    """
    core = stand.design()
    text = rtlil.convert(core, name=TOP, ports=ports(core), platform=UNCHECKED)
    (folder / "core.il").write_text(text, encoding="utf-8")
    load = ["read_rtlil core.il", f"hierarchy -top {TOP}", "flatten", "proc"]
    # The first `opt_clean` merges initial values, of which `opt` could make two of one register.
    return [*load, "opt_clean", "opt -full", "wreduce", "splitcells", "opt_clean"]


def run(script: Sequence[str], folder: Path) -> None:
    (folder / "script.ys").write_text("\n".join(script), encoding="utf-8")
    call(need("yosys"), ["-q", "-s", "script.ys"], folder=folder, log=folder / "log")


def _faults(lines: Sequence[str]) -> Iterator[Fault]:
    for number, line in enumerate(lines, 1):
        found = _FAULT.search(line)
        assert found is not None, line
        mode, cell, port, bit, wire, wire_bit = found.groups()
        source = _SOURCE.search(line)
        yield Fault(
            number=number,
            mode=mode,
            cell=cell,
            port=port,
            bit=int(bit),
            wire=f"{wire}[{wire_bit}]" if wire else "",
            source=source[1] if source else "",
            command=line,
        )
