# amaranth: UnusedElaboratable=no
"""Faults are drawn by a seed and planted side by side; those that change nothing are recognised."""

import itertools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest
from amaranth.hdl import ClockDomain, ClockSignal, Instance, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from lbq_hw.core.fabric.registers import copies
from lbq_hw.sim.mutants.equivalence import equivalent
from lbq_hw.sim.mutants.faults import INPUT, Fault, plant, run
from lbq_hw.sim.mutants.suites import CORES, suite
from lbq_hw.sim.sweep.stands import Stand
from lbq_hw.sim.verilator import TOP

COUNT = 12


class Redundant(wiring.Component):
    """``o = a & b | a & b & c``: nobody can see what c does."""

    def __init__(self) -> None:
        super().__init__({"a": In(1), "b": In(1), "c": In(1), "o": Out(1)})

    def elaborate(self: Any, _platform: object) -> Module:
        m = Module()
        m.d.comb += self.o.eq((self.a & self.b) | (self.a & self.b & self.c))
        return m


class Outside(wiring.Component):
    """Only a memory chip sees what `Redundant` computes; the falling edge samples its answer."""

    def __init__(self) -> None:
        super().__init__({"a": In(1), "b": In(1), "c": In(1), "answer": Out(16)})

    def elaborate(self: Any, _platform: object) -> Module:
        m: Any = Module()
        m.domains.falling = ClockDomain(clk_edge="neg", reset_less=True, local=True)
        block: Any = Redundant()
        m.submodules.redundant = block
        o, dq_o = Signal(), Signal(16)
        m.submodules.chip = Instance("sdram", i_a=o, o_dq_o=dq_o)
        m.d.comb += [getattr(block, name).eq(getattr(self, name)) for name in "abc"]
        m.d.comb += [ClockSignal("falling").eq(ClockSignal()), o.eq(block.o)]
        m.d.falling += self.answer.eq(dq_o)
        return m


class Toggle(wiring.Component):
    """Its output changes with each ``a``."""

    def __init__(self) -> None:
        super().__init__({"a": In(1), "o": Out(1)})

    def elaborate(self: Any, _platform: object) -> Module:
        m = Module()
        m.d.sync += self.o.eq(self.o ^ self.a)
        return m


class Late(wiring.Component):
    """Keeps ``a`` while ``valid``, and shows it in the next cycle: other values that it keeps
    change nothing.
    """

    def __init__(self) -> None:
        super().__init__({"a": In(2), "valid": In(1), "o": Out(2)})

    def elaborate(self: Any, _platform: object) -> Module:
        m = Module()
        kept, shown = Signal(2), Signal()
        m.d.sync += shown.eq(self.valid)
        m.d.sync += kept.eq(Mux(self.valid, self.a, kept))
        m.d.comb += self.o.eq(Mux(shown, kept, 0))
        return m


class Copied(wiring.Component):
    """Shows a copy of ``a`` whose bit `keep`, which would clear it, is always 0."""

    def __init__(self) -> None:
        super().__init__({"a": In(2), "o": Out(2)})

    def elaborate(self: Any, _platform: object) -> Module:
        m = Module()
        [copy] = copies(m, self.a, 1, name="copy")
        m.d.comb += self.o.eq(copy)
        return m


@dataclass(frozen=True)
class Bare:
    """A block in the place of a core."""

    block: type[wiring.Component]

    def design(self) -> wiring.Component:
        return self.block()

    def models(self) -> str:
        return ""


def stand(block: Any) -> Stand:
    return cast("Stand", Bare(block))


def tables(verilog: str, faults: int, folder: Path) -> list[list[str]]:
    """What Yosys computes for every input, without a fault and with each."""
    (folder / "core.v").write_text(verilog, encoding="utf-8")
    values = [
        f"tee -o {fault}.table eval -set {INPUT} {fault} -table a,b,c -show o"
        for fault in range(faults + 1)
    ]
    chip = "hierarchy -generate sdram o:dq_o i:*"
    run(["read_verilog core.v", chip, f"prep -top {TOP}", *values], folder)
    texts = [(folder / f"{fault}.table").read_text("utf-8") for fault in range(faults + 1)]
    found = [re.findall(r"^ *\d'.*\|.*", text, re.MULTILINE) for text in texts]
    assert {len(rows) for rows in found} == {len([*itertools.product((0, 1), repeat=3)])}
    return found


def test_a_seed_decides_the_faults() -> None:
    text, faults = plant(stand(Redundant), count=COUNT, seed=1)
    assert [fault.number for fault in faults] == [*range(1, COUNT + 1)]
    assert re.search(rf"input \[3:0\] {INPUT};", text)
    assert all(fault.source.startswith("tests/sim/mutants/test_faults.py:") for fault in faults)
    assert plant(stand(Redundant), count=COUNT, seed=1) == (text, faults)
    assert plant(stand(Redundant), count=COUNT, seed=2)[1] != faults


@pytest.mark.parametrize("block", [Redundant, Outside])
def test_a_fault_is_equivalent_where_its_table_of_values_is_the_same(
    block: type[wiring.Component], tmp_path: Path
) -> None:
    text, faults = plant(stand(block), count=COUNT, seed=1)
    good, *broken = tables(text, len(faults), tmp_path)
    logic = [fault.port in ("A", "B", "Y") for fault in faults]
    same = [rows == good and seen for rows, seen in zip(broken, logic, strict=True)]
    assert {True, False} == {*same}
    assert [*equivalent(stand(block), faults, workers=2)] == same


def test_a_fault_in_a_state_is_not_equivalent() -> None:
    _, faults = plant(stand(Toggle), count=4, seed=1)
    of_xor: list[Fault] = [fault for fault in faults if fault.port in ("A", "B", "Y")]
    assert of_xor
    assert not any(equivalent(stand(Toggle), of_xor, workers=2))


def test_a_register_that_is_loaded_too_often_but_used_after_right_loads_is_equivalent() -> None:
    _, faults = plant(stand(Late), count=90, seed=1)
    enables = [fault for fault in faults if fault.port == "EN"]
    assert {fault.mode for fault in enables} >= {"const0", "const1", "inv"}
    assert [*equivalent(stand(Late), enables, workers=2)] == [
        fault.mode == "const1" for fault in enables
    ]


def test_a_register_that_is_always_0_may_be_stuck_at_0() -> None:
    _, faults = plant(stand(Copied), count=90, seed=1)
    keeps = [fault for fault in faults if (fault.port, fault.wire) == ("Q", "copy_keep_0[0]")]
    assert {fault.mode for fault in keeps} >= {"const0", "const1", "inv"}
    assert [*equivalent(stand(Copied), keeps, workers=2)] == [
        fault.mode == "const0" for fault in keeps
    ]


@pytest.mark.slow
@pytest.mark.parametrize("core", CORES)
def test_faults_are_planted_in_every_core(core: str) -> None:
    text, faults = plant(suite(core).stand, count=COUNT, seed=0)
    assert INPUT in text
    assert len(faults) == COUNT
