"""Every board: its data, its pins, and, slowly, a bitstream from the real tools."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from lbq_hw import boards, families
from lbq_hw.boards import Board, BoardError, checks, clocks
from lbq_hw.core.top import Top
from lbq_hw.families import ecp5
from lbq_hw.flow import commands
from lbq_hw.tools import logs, need
from lbq_hw.tools.process import call
from tests.boards.tiny import Tiny

FABRICS = boards.fabrics()
UART_PINS = {  # the maker's documentation: to the FPGA, from the FPGA
    "colorlight-i5": ("H18", "J17"),
    "colorlight-i9": ("H18", "J17"),
    "ecpix5-45f": ("R26", "R24"),
    "ecpix5-85f": ("R26", "R24"),
    "ice40-hx8k": ("B10", "B12"),
    "icebreaker": ("6", "9"),
    "icesugar": ("4", "6"),
    "icesugar-pro": ("A9", "B9"),
    "orangecrab": ("N17", "M18"),
    "tang-nano-20k": ("70", "69"),
    "tang-nano-9k": ("18", "17"),
    "ulx3s-12f": ("M1", "L4"),
    "ulx3s-25f": ("M1", "L4"),
    "ulx3s-45f": ("M1", "L4"),
    "ulx3s-85f": ("M1", "L4"),
    "versa-ecp5": ("C11", "A11"),
    "versa-ecp5-5g": ("C11", "A11"),
}


def prepare(board: Board, folder: Path) -> int:
    """The tiny design's files, as the flow writes them; the clock."""
    setting = clocks.solve(board.pll, board.clock_hz, board.target_hz)
    assert setting is not None
    plan = board.make_platform().prepare(
        Top(board=board, system=Tiny(), setting=setting), "top", debug_verilog=True, emit_src=False
    )
    pins = f"top.{families.of(board).constraints}"
    for name, product in (("top.debug.v", "top.v"), (pins, pins)):
        (folder / product).write_text(plan.files[name], encoding="utf-8")
    return setting.output_hz


def test_the_boards_that_were_promised_are_there() -> None:
    assert {*UART_PINS, "sim"} <= set(boards.names())


@pytest.mark.parametrize("name", UART_PINS)
def test_a_board_puts_the_link_on_the_pins_of_its_documentation(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AMARANTH_USE_YOSYS", "builtin")
    board = boards.find(name)
    prepare(board, tmp_path)
    pins = (tmp_path / f"top.{families.of(board).constraints}").read_text("utf-8")
    found = tuple(
        re.search(rf"uart_0__{line}__io\"?\s*(?:SITE )?\"?(\w+)", pins)[1] for line in ("rx", "tx")
    )
    assert found == UART_PINS[name]


@pytest.mark.parametrize("name", FABRICS)
def test_the_line_to_a_board_rests_high_when_nothing_drives_it(name: str) -> None:
    board = boards.find(name)
    (rx,) = (io for io in board.make_platform().lookup(*board.uart).ios if io.name == "rx")
    attributes = {**board.make_platform().lookup(*board.uart).attrs, **rx.attrs}
    pulls = {"PULLMODE": "UP", "PULL_MODE": "UP", "PULLUP": 1}
    assert any(attributes.get(key) == value for key, value in pulls.items())


@pytest.mark.parametrize("name", ["ulx3s-12f", "ulx3s-25f", "ulx3s-45f", "ulx3s-85f"])
def test_an_ulx3s_drives_the_pin_by_which_its_esp32_would_take_over(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AMARANTH_USE_YOSYS", "builtin")
    prepare(boards.find(name), tmp_path)
    assert 'LOCATE COMP "wifi_gpio0_0__io" SITE "L2";' in (tmp_path / "top.lpf").read_text("utf-8")
    design = (tmp_path / "top.v").read_text("utf-8")
    buffer = re.search(r"module \\top\.hold_wifi_gpio0_0 .*?endmodule", design, re.S)
    assert buffer is not None
    assert re.findall(r"\.(o|t)\((.*)\)", buffer[0]) == [("o", "1'h1"), ("t", "1'h0")]


@pytest.mark.parametrize("name", FABRICS)
def test_a_board_that_is_programmed_by_an_svf_gets_one_beside_its_bitstream(name: str) -> None:
    board = boards.find(name)
    arguments, command = commands.pack_arguments(board), board.command("out/it's.bit")
    if not name.startswith("versa"):
        assert "--svf" not in arguments
        assert "'out/it'\"'\"'s.bit'" in command
        return
    assert arguments[-4:] == ["--bit", "top.bit", "--svf", "top.svf"]
    assert board.command("out/top.bit").endswith('; init; svf out/top.svf; exit"')


def test_both_placers_are_tried_for_a_core_that_fills_an_ecp5() -> None:
    def placers(name: str, *, full: bool) -> list[str]:
        calls = (
            commands.place_arguments(boards.find(name), clock_hz=75_000_000, seed=seed, full=full)
            for seed in (1, 2, 3)
        )
        option = "--placer"
        return [call[call.index(option) + 1] if option in call else "usual" for call in calls]

    assert placers("ulx3s-85f", full=True) == ["static", "usual", "static"]
    assert placers("ulx3s-85f", full=False) == ["usual"] * 3
    assert placers("tang-nano-20k", full=True) == ["usual"] * 3


@pytest.mark.slow
@pytest.mark.parametrize("name", FABRICS)
def test_the_real_tools_make_a_bitstream_that_meets_the_clock(name: str, tmp_path: Path) -> None:
    board = boards.find(name)
    family = families.of(board)
    clock_hz = prepare(board, tmp_path)
    log = tmp_path / "log"
    call(need("yosys"), ["-p", commands.script(board)], folder=tmp_path, log=log)
    arguments = commands.place_arguments(board, clock_hz=clock_hz, seed=1)
    call(need(family.placer.name), [*arguments], folder=tmp_path, log=log)
    assert "Program finished normally" in log.read_text("utf-8")
    placed = logs.parse((tmp_path / "place.json").read_text("utf-8"), name="place.json")
    there = {resource.kind: resource.available for resource in logs.resources(placed, family.cells)}
    logic, rams, single = (there.get(kind, 0) for kind in ("LUT", "EBR", "SPRAM"))
    assert (there.get("LC", logic), rams, single) == (board.luts, board.block_rams, board.sprams)
    call(need(family.packer.name), commands.pack_arguments(board), folder=tmp_path, log=log)
    assert (tmp_path / f"top.{family.bitstream}").stat().st_size > 50_000
    assert (tmp_path / "top.svf").is_file() == (board.title in ("Versa ECP5", "Versa ECP5-5G"))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "ice_breaker",
            "no board 'ice_breaker': did you mean icebreaker or ice40-hx8k?",
        ),
        (
            "ulx3s",
            "no board 'ulx3s': did you mean ulx3s-12f or ulx3s-25f or ulx3s-45f or ulx3s-85f?",
        ),
        (
            "zzz",
            "no board 'zzz': there are ice40-hx8k, icebreaker, ulx3s-12f, ulx3s-25f, ulx3s-45f, "
            "ulx3s-85f",
        ),
    ],
)
def test_an_unknown_board_is_answered_with_the_nearest(
    name: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    some = ("ice40-hx8k", "icebreaker", "ulx3s-12f", "ulx3s-25f", "ulx3s-45f", "ulx3s-85f")
    known = {name: boards.find(name) for name in some}
    monkeypatch.setattr(boards, "_boards", lambda: known)
    with pytest.raises(BoardError) as error:
        boards.find(name)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"family": "xc7"}, "family must be one of ecp5, gowin, ice40, not 'xc7'"),
        ({"luts": -1}, "luts must be a non-negative integer, not -1"),
        ({"baud": 1.5}, "baud must be a non-negative integer, not 1.5"),
        ({"platform": ""}, "platform must be given for a board with a fabric"),
        (
            {"name": "../x"},
            "name must consist of letters, digits and . _ + -, and begin with a letter or "
            "digit, not '../x'",
        ),
    ],
)
def test_wrong_data_are_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        replace(boards.find("icebreaker"), **change)  # type: ignore[arg-type]


def test_the_simulated_board_has_no_platform() -> None:
    with pytest.raises(ValueError, match=r"^board 'sim' has no platform: it is only simulated$"):
        boards.find("sim").make_platform()


def test_an_sdram_that_nobody_knows_is_refused() -> None:
    board = replace(boards.find("ulx3s-12f"), sdram="DDR3")
    with pytest.raises(BoardError, match=r"^sdram must be one of ULX3S, .*, not 'DDR3'$"):
        _ = board.chip


@pytest.mark.parametrize("name", boards.names())
def test_a_board_that_ships_passes_the_checks_of_a_board_of_ones_own(name: str) -> None:
    checks.check(boards.find(name))


@pytest.mark.parametrize(
    ("name", "count", "some", "other"),
    [
        ("icebreaker", 39, {"2", "35", "48"}, "1"),
        ("ice40-hx8k", 206, {"A1", "J3", "T16"}, "T4"),
        ("ulx3s-85f", 205, {"G2", "L2", "U20"}, "AB7"),
        ("tang-nano-9k", 71, {"10", "52", "86"}, "1"),
        ("tang-nano-20k", 66, {"4", "69", "70"}, "1"),
    ],
)
def test_the_pins_of_a_package_are_those_of_the_installed_tools(
    name: str, count: int, some: set[str], other: str
) -> None:
    board = boards.find(name)
    found = families.of(board).pins(board, board.make_platform())
    assert found is not None
    assert (len(found), some <= found, other in found) == (count, True, False)


def test_pins_are_left_to_nextpnr_where_its_wheel_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ecp5, "installed", lambda *_: None)
    monkeypatch.setattr(ecp5, "_pins", ecp5._pins.__wrapped__)  # remembers nothing
    board = boards.find("ulx3s-12f")
    assert ecp5.FAMILY.pins(board, board.make_platform()) is None
    checks.check(replace(board, hold=()))


def test_a_board_without_a_light_has_the_link_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AMARANTH_USE_YOSYS", "builtin")
    prepare(replace(boards.find("ulx3s-12f"), led=None), tmp_path)
    constraints = (tmp_path / "top.lpf").read_text("utf-8")
    assert "uart_0__tx" in constraints
    assert "led_0" not in constraints
