"""When the design of a board begins: of an iCE40 in Icarus, as the flow writes it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from lbq_hw import boards
from lbq_hw.boards import clocks
from lbq_hw.chips import Chip
from lbq_hw.core.external.pins import PinBus
from lbq_hw.core.fabric.ice40 import WAKE_SECONDS
from lbq_hw.core.top import Top
from tests.boards.tiny import Tiny

MODEL = Path(__file__).with_name("ice40.v")
LOCK, LOSS, AGAIN = 20_000, 100_000, 102_000  # ns, in the model
WAKE = WAKE_SECONDS * 1e9


def resets(name: str, folder: Path, *, clock_hz: int) -> list[tuple[int, int]]:
    """The reset of a board's system: its values, each with the time in ns from which it holds."""
    board = boards.find(name)
    setting = clocks.solve(board.pll, board.clock_hz, clock_hz)
    made_hz = board.clock_hz if setting is None else setting.output_hz
    plan = board.make_platform().prepare(
        Top(board=board, system=Tiny(), setting=setting), "top", debug_verilog=True, emit_src=False
    )
    (folder / "top.v").write_text(plan.files["top.debug.v"], encoding="utf-8")
    half_period = f"-DHALF_PERIOD={1e9 / made_hz / 2}"
    build = ["iverilog", "-g2012", half_period, "-s", "bench", "-o", "bench", str(MODEL), "top.v"]
    subprocess.run(build, cwd=folder, check=True)
    done = subprocess.run(
        ["vvp", "-n", "bench"], cwd=folder, check=True, capture_output=True, text=True
    )
    lines = [line.split() for line in done.stdout.splitlines() if line[0] in "01"]
    return [(int(value), int(time)) for value, time in lines]


needs_icarus = pytest.mark.skipif(
    shutil.which("iverilog") is None, reason="needs iverilog: apt install iverilog"
)


@needs_icarus
@pytest.mark.parametrize("name", ["icebreaker", "ice40-hx8k"])
def test_an_ice40_waits_for_its_block_rams_after_every_lock(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AMARANTH_USE_YOSYS", "builtin")
    found = resets(name, tmp_path, clock_hz=boards.find(name).target_hz)
    (left, at), (lost, lost_at), (again, again_at) = found[-3:]
    assert (left, lost, again) == (0, 1, 0)
    assert all(value == 1 for value, _ in found[:-3])
    assert LOCK + WAKE <= at < LOCK + 2.3 * WAKE
    assert LOSS <= lost_at < LOSS + 200
    assert AGAIN + WAKE <= again_at < AGAIN + 2.3 * WAKE


@needs_icarus
@pytest.mark.parametrize("name", ["icebreaker", "ice40-hx8k"])
def test_an_ice40_without_a_pll_waits_as_long(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AMARANTH_USE_YOSYS", "builtin")
    found = resets(name, tmp_path, clock_hz=boards.find(name).clock_hz)
    value, at = found[-1]
    assert value == 0
    assert all(held == 1 for held, _ in found[:-1])
    assert at >= WAKE


class TinyWithMemory(wiring.Component):
    """A tiny system with the bus of a memory, on which nothing happens."""

    def __init__(self, chip: Chip) -> None:
        super().__init__({"rx": In(1), "tx": Out(1), "busy": Out(1), "bus": Out(PinBus(chip))})

    def elaborate(self, _platform):
        m = Module()
        m.submodules.tiny = tiny = Tiny()
        m.d.comb += [tiny.rx.eq(self.rx), self.tx.eq(tiny.tx), self.busy.eq(tiny.busy)]
        return m


def test_an_ecp5_with_external_memory_has_no_reset_and_waits_for_its_pll_with_the_clock() -> None:
    board = boards.find("ulx3s-85f")
    setting = clocks.solve(board.pll, board.clock_hz, 75_000_000)
    assert board.chip is not None
    with_memory, without = (
        board.make_platform().prepare(
            Top(board=board, system=system, setting=setting), "top", emit_src=False
        ).files["top.il"]
        for system in (TinyWithMemory(board.chip), Tiny())
    )  # fmt: skip
    assert (with_memory.count("cell \\DCCA "), without.count("cell \\DCCA ")) == (1, 0)
    assert ("\\rst" in with_memory, "\\rst" in without) == (False, True)
