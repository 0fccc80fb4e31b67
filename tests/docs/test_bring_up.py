"""The page on first light: its commands run, its tables are those of the boards and the host."""

from __future__ import annotations

import fnmatch
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from serial.tools import list_ports
from serial.tools.list_ports_common import ListPortInfo
from simulators import needs_verilator

from lbq_hw import boards, package
from lbq_hw.__main__ import main as lbq
from lbq_hw.bring_up.steps import STEPS
from lbq_hw.host import ports, rates
from lbq_hw.sim import board as simulation

PAGE = (Path(__file__).parents[2] / "docs" / "bring-up.md").read_text("utf-8")
BOARDS = [name for name in boards.names() if boards.find(name).family is not None]


def rows(head: str) -> list[list[str]]:
    """The cells of the table that begins with this column."""
    lines = PAGE[PAGE.index(f"\n| {head} |") + 1 :].partition("\n\n")[0].splitlines()
    cells = [line.strip("|").split("|") for line in lines[2:] if line.startswith("|")]
    return [[cell.strip() for cell in line] for line in cells]


def commands() -> list[list[str]]:
    found = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.M | re.S)
    return [shlex.split(line) for block in found for line in block.splitlines()]


@pytest.mark.slow
@needs_verilator
def test_the_commands_run_as_they_are_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is plugged in is the simulated board, behind a port that says it is an FT231X."""
    monkeypatch.chdir(tmp_path)
    first, second, *rest = commands()
    assert lbq(first[1:]) == 0
    assert second[:2] == ["lbq", "sim-board"]
    assert simulation.main(second[2:]) == 0
    assert "all logits equal" in capsys.readouterr().out
    packed = package.read("build/first/package")
    program = simulation.build(packed)
    with simulation.running(program, clock_hz=packed.clock_hz) as plugged:
        info = ListPortInfo(plugged.name)
        info.vid, info.pid = 0x0403, 0x6015
        monkeypatch.setattr(list_ports, "comports", lambda: [info])
        assert len(rest) == 4
        for words in rest:
            assert words[0] == "lbq"
            assert lbq(words[1:]) == 0, words
            shown = capsys.readouterr().out
            assert (plugged.name in shown) if "--ports" in words else ("all logits equal" in shown)


def test_the_checklist_has_the_steps_of_the_walk() -> None:
    assert [row[0].strip("`") for row in rows("step")] == [step.name for step in STEPS]


def test_the_host_accepts_the_commands_of_the_checklist(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cells = [row[1] for row in rows("step")]
    found = [command for cell in cells for command in re.findall(r"`(lbq host .*?)`", cell)]
    assert len(found) == 5
    for command in found:
        if "--ports" in command:
            continue
        words = [str(tmp_path) if word == "DIR" else word for word in command.split()]
        assert lbq(words[1:]) == 2
        assert (
            capsys.readouterr().err
            == f"error: {tmp_path} is not a package: it has no package.json\n"
        )


def test_the_rate_of_a_clock_of_33_mhz_is_that_of_the_page() -> None:
    assert "so a clock of 33 MHz gives 3, not 6 Mbaud" in " ".join(PAGE.split())
    found = boards.find("icebreaker")
    assert found.bridge is not None
    assert found.bridge.rates[0] == 6_000_000
    assert rates.possible(found.bridge.rates, clock_hz=33_000_000, baud=found.baud)[0] == 3_000_000


def test_the_checklist_by_board_has_every_board_with_its_devices() -> None:
    table = {name: row[1:] for row in rows("boards") for name in re.findall(r"`(.+?)`", row[0])}
    assert sorted(table) == BOARDS
    for name, (before, _, _) in table.items():
        usb = re.findall(r"\w{4}:\w{4}", boards.find(name).usb)
        assert re.findall(r"\w{4}:\w{4}", before) == usb, name


def test_every_board_has_a_bridge() -> None:
    patterns = [part for row in rows("bridge") for part in re.findall(r"`(.+?)`", row[1])]
    found = [[p for p in patterns if fnmatch.fnmatchcase(name, p)] for name in BOARDS]
    # The OrangeCrab's is an adapter of the user's own.
    assert {name for name, those in zip(BOARDS, found, strict=True) if not those} == {"orangecrab"}
    assert max(map(len, found)) == 1


def test_the_table_has_every_board_with_its_command_and_rates() -> None:
    table = {row[0].strip("`"): row[1:] for row in rows("board")}
    assert sorted(table) == BOARDS
    for name, (command, _, rate, highest, _) in table.items():
        board = boards.find(name)
        assert command.strip("`") == board.command("FILE")
        assert rate == f"{board.baud:,}"
        known = () if board.bridge is None else board.bridge.rates
        assert highest == (f"{max(known):,}" if known else "the adapter's")


@pytest.mark.parametrize("name", BOARDS)
def test_the_light_is_the_pin_that_the_top_drives(name: str) -> None:
    pytest.importorskip("amaranth_boards")
    platform: Any = boards.find(name).make_platform()
    led = boards.find(name).led
    (cell,) = [row[5] for row in rows("board") if row[0] == f"`{name}`"]
    if led is None:
        assert cell == "none"
        return
    (pin,) = platform.lookup(*led).ios[0].names
    assert cell.split(",")[0] == f"pin {pin}"


def test_the_rules_are_for_the_devices_of_the_table() -> None:
    (block,) = re.findall(r"^```udev\n(.*?)^```$", PAGE, re.M | re.S)
    rule = r'(\w+)=="(\w+)\*?", ATTRS?{idVendor}=="(\w{4})", ATTRS?{idProduct}=="(\w{4})", '
    ruled = re.findall(f'^{rule}MODE="0660", GROUP="plugdev", TAG\\+="uaccess"$', block, re.M)
    assert len(ruled) == len(block.splitlines())
    devices = {id for row in rows("board") for id in re.findall(r"\w{4}:\w{4}", row[2])}
    usb = {f"{vendor}:{product}" for kind, _, vendor, product in ruled if kind == "SUBSYSTEM"}
    assert usb == devices
    # CMSIS-DAP is a HID, which openFPGALoader and icesprog may open as such
    probes = {
        id
        for row in rows("board")
        for id in re.findall(r"\w{4}:\w{4}", row[2])
        if boards.find(row[0].strip("`")).name.startswith(("colorlight", "icesugar"))
    }
    hid = {f"{vendor}:{product}" for kind, _, vendor, product in ruled if kind == "KERNEL"}
    assert hid == probes == {"0d28:0204", "1d50:602b"}
    two_channels = {row[2] for row in rows("board") if "0403:6010" in row[2]}
    assert two_channels == {
        "0403:6010, channel B",
        "0403:6010, channel B (R03: 0403:6011, not channel A)",
    }
    assert ports.CHIPS[0x0403, 0x6010] == "FT2232"


def test_what_the_host_is_said_to_say_is_in_its_code() -> None:
    folder = Path(ports.__file__).parent
    code = " ".join(path.read_text("utf-8") for path in folder.glob("*.py"))
    for said, _ in rows("what the host says"):
        for part in said.strip("`").split("...")[:1]:
            assert part.strip() in code, part
