# amaranth: UnusedElaboratable=no
"""The core behind its UART; tests/sim/test_board.py runs networks through the pins."""

from __future__ import annotations

import re

import pytest
from amaranth.back import verilog
from tapes import residual_network

from lbq_hw.chips import ULX3S
from lbq_hw.compiler import smallest_for
from lbq_hw.config import CoreConfig
from lbq_hw.core.system import System
from lbq_hw.sim.verilog import convert

SMALL = CoreConfig(
    lanes=4, word=8, summary=8, units=1, planes=1, plane_words=8, weight_rows=4, channels=4,
    logits=4, layers=1, paths=1, segments=1, runs=1, layer_paths=1,
)  # fmt: skip


def test_a_system_has_three_pins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AMARANTH_USE_YOSYS", "builtin")
    system = System(SMALL, clock_hz=12_000_000, baud=1_000_000)
    assert system.config is SMALL
    text = verilog.convert(system, name="system")
    ports = re.search(r"^module system\((.*?)\);", text, re.MULTILINE)
    assert ports is not None
    assert set(ports[1].split(", ")) == {"rx", "tx", "busy", "clk", "rst"}
    assert re.search(r"12'h00c", text)  # the divisor


def test_a_rate_that_the_clock_does_not_give_is_refused() -> None:
    text = "baud must be 2931..3000000 at 12000000 Hz, not 9000000"
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        System(SMALL, clock_hz=12_000_000, baud=9_000_000)


def test_a_system_with_external_memory_has_the_pins_of_its_chip(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AMARANTH_USE_YOSYS", "builtin")
    config = smallest_for(residual_network(), lanes=8, word=8, external=16, weight_rows=32)
    system = System(config, clock_hz=80_000_000, baud=1_000_000, chip=ULX3S)
    text = convert(system, name="system")
    ports = re.search(r"^module system\((.*?)\);", text, re.MULTILINE)
    assert ports is not None
    names = ("clk_en", "cs", "ras", "cas", "we", "ba", "a", "dqm", "dq_o", "dq_oe", "dq_i")
    pins = {f"bus__{name}" for name in names}
    assert set(ports[1].split(", ")) == {"rx", "tx", "busy", "clk", "rst"} | pins


def test_a_core_and_a_chip_of_different_widths_are_refused() -> None:
    text = "a core with external memory of 0 bits must have a chip of as many, not 16"
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        System(SMALL, clock_hz=80_000_000, baud=1_000_000, chip=ULX3S)
