# amaranth: UnusedElaboratable=no
"""The pins in simulation and on the ULX3S, where all of their registers are in IO cells."""

from __future__ import annotations

import importlib
import re
from collections import Counter
from pathlib import Path

import pytest
from amaranth.back import rtlil
from amaranth.sim import Simulator
from core.external.alone import place, used

from lbq_hw.chips import ICESUGAR_PRO, ULX3S, Chip
from lbq_hw.core.external.pins import PadSignature, PinBus, SdramPins, SimulatedPins
from lbq_hw.sim.verilog import ports

PINS = {"clk": 1, "clk_en": 1, "cs": 1, "ras": 1, "cas": 1, "we": 1, "ba": 2, "a": 13, "dqm": 2}
DATA = 16


@pytest.mark.parametrize("latency", [1, 3])
def test_pads_follow_the_bus_and_the_bus_follows_both_edges(latency: int) -> None:
    pins = SimulatedPins(chip=ULX3S, latency=latency)
    simulator = Simulator(pins)
    simulator.add_clock(1e-6, phase=1e-6)  # rises at whole microseconds
    seen, given = [], []

    async def bench(ctx):
        await ctx.delay(1.25e-6)
        for half in range(40):
            cycle = half // 2
            ctx.set(pins.bus.a, cycle)
            ctx.set(pins.bus.ras, cycle % 3 == 0)
            ctx.set(pins.bus.dq_oe, cycle % 5 == 0)
            # What is on the pads at the edge that ends this half of the cycle.
            ctx.set(pins.pads.dq_i, 1000 + half)
            if half % 2 == 0:
                given.append(tuple(ctx.get(word) for word in pins.bus.dq_i))
                seen.append(tuple(ctx.get(getattr(pins.pads, name))
                                  for name in ("a", "ras_n", "dq_oe")))  # fmt: skip
                assert ctx.get(pins.pads.clk) == 0
            else:
                assert ctx.get(pins.pads.clk) == 1
            await ctx.delay(0.5e-6)

    simulator.add_testbench(bench)
    simulator.run()
    late = [(cycle, int(cycle % 3 != 0), int(cycle % 5 == 0)) for cycle in range(20)]
    assert seen[latency:] == late[: 20 - latency]
    # In the first half of cycle c: the rising edge at its beginning ends half 2 c - 1.
    both = [(1000 + 2 * cycle - 1, 1000 + 2 * cycle) for cycle in range(20)]
    assert given[latency + 1 :] == both[1 : 20 - latency]


def test_a_latency_of_none_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^latency must be at least 1, not 0$"):
        SimulatedPins(chip=ULX3S, latency=0)


def test_the_bus_and_the_pads_have_the_widths_of_the_chip() -> None:
    bus, pads = PinBus(ULX3S).create(), PadSignature(ULX3S).create()
    assert [len(bus.a), len(bus.ba), len(bus.dqm), len(bus.dq_o)] == [13, 2, 2, 16]
    assert [len(pads.a), len(pads.ba), len(pads.dqm), len(pads.dq_i)] == [13, 2, 2, 16]


@pytest.mark.parametrize(
    ("platform", "chip"),
    [
        *(
            (f"amaranth_boards.ulx3s:ULX3S_{size}_Platform", ULX3S)
            for size in ("12F", "45F", "85F")
        ),
        ("amaranth_boards.icesugar_pro:ICESugarProPlatform", ICESUGAR_PRO),
    ],
)
def test_every_pin_of_a_board_has_a_double_data_rate_buffer(platform: str, chip: Chip) -> None:
    module, _, name = platform.partition(":")
    made = getattr(importlib.import_module(module), name)()
    pins = SdramPins(chip=chip, port=made.request("sdram", 0, dir="-"))
    text = rtlil.convert(pins, platform=made, ports=ports(pins))
    kinds = ("ODDRX1F", "IDDRX1F", "OFS1P3DX", "OFS1P3BX", "FD1S3AX", "FD1S3AY")
    counts = {kind: text.count(f"cell \\{kind} ") for kind in kinds}
    others = sum(PINS.values())
    # Registers of output enables: those of the data pins start with 1, released.
    assert counts == {
        "ODDRX1F": others + DATA, "IDDRX1F": DATA, "OFS1P3DX": others, "OFS1P3BX": DATA,
        "FD1S3AX": 2 * len(PINS), "FD1S3AY": 2,
    }  # fmt: skip


@pytest.mark.slow
def test_all_registers_of_the_pins_of_a_ulx3s_are_in_io_cells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AMARANTH_USE_YOSYS", "builtin")
    report = place("ulx3s-85f", ULX3S, 100_000_000, tmp_path)
    log = (tmp_path / "place.log").read_text("utf-8")
    # A pad's registers share one cell, which has the name of the first.
    cells = re.findall(r"IOLOGIC component system\.pins\.(\w+)\S* connected to PIO Bel", log)
    assert Counter(cells) == {**PINS, "dq": DATA}
    config = re.findall(
        r"enum: IOLOGIC[A-D]\.(\S+ \S+)", (tmp_path / "placed.config").read_text("utf-8")
    )
    pads = sum(PINS.values()) + DATA
    assert config.count("MODE IDDRX1_ODDRX1") == pads  # data out, and in
    assert config.count("TSREG.OUTREGMODE FF") == pads  # output enable
    assert config.count("TSREG.REGSET SET") == DATA  # which start released
    assert config.count("LSRIMUX LSRMUX") == DATA  # of those with an input register
    assert used(report, "IOLOGIC") == pads == 39
    (clock,) = report["fmax"].values()
    assert clock["achieved"] >= 100
