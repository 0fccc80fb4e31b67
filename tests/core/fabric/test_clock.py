"""PLLs in a packed bitstream, taken apart again: the words of every ECP5 board's clock."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from amaranth import ClockDomain, ClockSignal, Elaboratable, Module, Signal
from amaranth.build import Attrs, Clock, Pins, Resource
from amaranth.lib import io
from amaranth.lib.cdc import ResetSynchronizer
from amaranth.vendor import LatticeECP5Platform
from amaranth_boards.resources import LEDResources

from lbq_hw import boards
from lbq_hw.boards import clocks
from lbq_hw.boards.clocks import Setting
from lbq_hw.core.fabric.clock import ClockGenerator
from lbq_hw.flow import commands
from lbq_hw.tools import need
from lbq_hw.tools.process import call

BOARD = boards.find("ulx3s-45f")  # a die with four PLLs
ECP5 = [board for board in map(boards.find, boards.names()) if board.family == "ecp5"]
SETTINGS = {
    str(setting.parameters): setting
    for board in ECP5
    if (setting := clocks.solve(board.pll, board.clock_hz, board.target_hz)) is not None
}
PINS = ("G2", "P3", "U16", "L2")
LIGHTS = "B2 C2 C1 D2"
LOOP_FILTER = {  # as ecppll writes it
    "ICP_CURRENT": "01100",
    "LPF_RESISTOR": "0001000",
    "MFG_ENABLE_FILTEROPAMP": "1",
    "MFG_GMCREF_SEL": "10",
}


class Blinks(Elaboratable):
    """A counter behind each of several PLLs, which blinks."""

    def __init__(self, settings: list[Setting]) -> None:
        self._settings = settings

    def elaborate(self, platform):
        m = Module()
        for number, setting in enumerate(self._settings):
            domain, count = f"made_{number}", Signal(4, name=f"count_{number}")
            pin = platform.request("clk", number, dir="-")
            m.submodules[f"pll_{number}"] = pll = ClockGenerator(setting=setting, pin=pin)
            m.domains += ClockDomain(domain)
            m.d.comb += ClockSignal(domain).eq(pll.clock)
            m.submodules += ResetSynchronizer(~pll.locked, domain=domain)
            m.d[domain] += count.eq(count + 1)
            m.submodules += (light := io.Buffer("o", platform.request("led", number, dir="-")))
            m.d.comb += light.o.eq(count[-1])
        return m


def platform(settings: list[Setting]) -> LatticeECP5Platform:
    class Platform(LatticeECP5Platform):
        device = "LFE5U-45F"
        package = "BG381"
        speed = "6"
        default_clk = "clk"
        connectors = ()
        resources = (
            *(
                Resource(
                    "clk",
                    number,
                    Pins(pin, dir="i"),
                    Clock(setting.input_hz),
                    Attrs(IO_TYPE="LVCMOS33"),
                )
                for number, (setting, pin) in enumerate(zip(settings, PINS, strict=False))
            ),
            *LEDResources(pins=LIGHTS, attrs=Attrs(IO_TYPE="LVCMOS33")),
        )

    return Platform()


def words(text: str, tiles: list[str]) -> dict[str, str]:
    """Words and enumerations of some tiles of a configuration."""
    found: dict[str, str] = {}
    for part in text.split("\n\n"):
        head, *lines = part.strip().splitlines() or [""]
        if head.startswith(".tile ") and head.split()[1] in tiles:
            pairs = (line.split()[1:] for line in lines if line.startswith(("word:", "enum:")))
            found |= dict(pairs)
    return found


def expected(setting: Setting) -> dict[str, str]:
    """By the data base of Project Trellis: divisors and coarse phases count from 0."""
    parameters = setting.parameters
    values = {name: value - 1 for name, value in parameters.items()}
    values |= {f"{clock}_CPHASE": parameters[f"{clock}_DIV"] - 1 for clock in ("CLKOP", "CLKOS")}
    binary = {name: f"{value:07b}" for name, value in values.items()}
    return binary | LOOP_FILTER | {"MODE": "EHXPLLL", "FEEDBK_PATH": "INT_OS"}


def test_the_netlist_has_the_settings_of_every_ecp5_boards_pll(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AMARANTH_USE_YOSYS", "builtin")
    settings = list(SETTINGS.values())
    plan = platform(settings).prepare(Blinks(settings), "top", debug_verilog=True, emit_src=False)
    text = str(plan.files["top.debug.v"])
    cells = re.findall(r"((?: +\(\*[^\n]*\*\)\n)*) +EHXPLLL #\((.*?)\n  \)", text, re.S)
    found, wanted = [], []
    for attributes, parameters in cells:
        given = dict(re.findall(r'(\w+) = "(\d+)"', attributes))
        assert given == {name: str(int(bits, 2)) for name, bits in LOOP_FILTER.items()}
        numbers = re.findall(r"(\w+)\(32'd(\d+)", parameters)
        found.append(sorted((name, int(value)) for name, value in numbers))
    for setting in settings:
        phases = {f"{c}_CPHASE": setting.parameters[f"{c}_DIV"] - 1 for c in ("CLKOP", "CLKOS")}
        wanted.append(sorted((setting.parameters | phases).items()))
    assert sorted(found) == sorted(wanted)


@pytest.mark.slow  # the first call of three tools in CI would compile each for a minute
def test_the_bitstream_has_the_words_of_every_ecp5_boards_pll(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AMARANTH_USE_YOSYS", "builtin")
    settings = list(SETTINGS.values())
    assert len(settings) <= len(PINS)
    plan = platform(settings).prepare(Blinks(settings), "top", debug_verilog=True, emit_src=False)
    (tmp_path / "top.v").write_text(plan.files["top.debug.v"], encoding="utf-8")
    (tmp_path / "top.lpf").write_text(plan.files["top.lpf"], encoding="utf-8")
    log = tmp_path / "log"
    call(need("yosys"), ["-p", commands.script(BOARD)], folder=tmp_path, log=log)
    arguments = commands.place_arguments(BOARD, clock_hz=80_000_000, seed=1)
    call(need("nextpnr-ecp5"), arguments, folder=tmp_path, log=log)
    call(need("ecppack"), commands.pack_arguments(BOARD), folder=tmp_path, log=log)
    packer = need("ecppack")
    unpacker = replace(packer, path=packer.path.replace("ecppack", "ecpunpack"))
    back = ["--input", "top.bit", "--textcfg", "back.config"]
    call(unpacker, back, folder=tmp_path, log=log)
    routed, unpacked = (
        (tmp_path / name).read_text("utf-8") for name in ("placed.config", "back.config")
    )
    groups = re.findall(r"^\.tile_group (.*PLL.*)$", routed, re.M)
    found = [words(unpacked, group.split()) for group in groups]
    wanted = [expected(setting) for setting in settings]
    # a word of zeros is not written
    shown = [{name: pll.get(name, "0000000") for name in wanted[0]} for pll in found]
    assert sorted(shown, key=str) == sorted(wanted, key=str)
    assert not any(re.search(r"CLKOS[23]_ENABLE", str(pll)) for pll in found)
