"""A board of one's own, by the path of its file: what is found, and what is wrong with it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from lbq_hw import boards, build
from lbq_hw.boards import BoardError
from lbq_hw.chips import ULX3S
from lbq_hw.flow import Job, Options, Step, runner
from lbq_hw.plan import main as plan
from lbq_hw.resources.measured import add
from lbq_hw.sim.command import main as simulate

TEXT = """
from dataclasses import replace
from lbq_hw import boards
BOARD = replace(boards.find("ulx3s-12f"), name="mine")
"""


def write(folder: Path, text: str = TEXT) -> str:
    file = folder / "mine.py"
    file.write_text(text, encoding="utf-8")
    return str(file)


def test_a_board_is_found_by_its_file_and_found_again(tmp_path: Path) -> None:
    board = boards.find(write(tmp_path))
    assert (board.name, board.luts, board.spelled) == ("mine", 24288, str(tmp_path / "mine.py"))
    assert boards.find(board.spelled) == board
    assert boards.find("ulx3s-12f").spelled == "ulx3s-12f"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("BOARD = 5", "{} must set BOARD to a Board, as docs/boards.md shows"),
        ("from boards import Board", "{} must say `from lbq_hw.boards import Board`"),
        ("x = 1 / 0", "{} cannot be read as a board: ZeroDivisionError: division by zero"),
        (
            TEXT.replace("mine", "sim"),
            "{} must give its board another name: sim is the name of a shipped board",
        ),
        (
            TEXT.replace('name="mine"', 'name="mine", sdram="DDR3"'),
            "{}: sdram must be one of "
            "ULX3S, iCESugar-pro, Tang Nano 20K, Colorlight, IS42S16160B, IS42S16160G, "
            "MT48LC16M16A2, AS4C32M16SB, AS4C2M32SA, EM638325BK, M12L64322A, "
            "or a Chip of your own, not 'DDR3'",
        ),
        (
            TEXT.replace('name="mine"', 'name="mine", led=("uart", 0)'),
            "{}: led must be one signal, but uart 0 has several",
        ),
        (
            TEXT.replace('name="mine"', 'name="mine", uart=("led", 0)'),
            "{}: uart must have the signals rx and tx, which led 0 lacks",
        ),
        (
            TEXT.replace('name="mine"', 'name="mine", led=("button_fire", 0), clock="led"'),
            None,
        ),
        (
            "import sys\nsys.exit(0)",
            "{} must only set BOARD, but it ends the program",
        ),
        ("import nothing_at_all", "{} needs the module nothing_at_all, which is not installed"),
    ],
)
def test_a_file_that_is_no_board_is_told_in_one_sentence(
    text: str, message: str | None, tmp_path: Path
) -> None:
    file = write(tmp_path, text)
    if message is None:  # any one pin will do for a clock and a light
        assert boards.find(file).clock == "led"
        return
    with pytest.raises(BoardError) as error:
        boards.find(file)
    assert str(error.value) == message.format(file)


def changed(**changes: str) -> str:
    """A file whose board has other fields, each given as Python."""
    given = ", ".join(f"{name}={value}" for name, value in changes.items())
    return TEXT.replace('name="mine"', f'name="mine", {given}')


PLATFORM = """
from amaranth.build import Attrs, Clock, Pins, Resource
from amaranth_boards.resources import UARTResource
from lbq_hw.boards.platforms import ULX3S12FBoardPlatform as Base
class Mine(Base):
    resources = [
        *(one for one in Base.resources if one.name != {gone!r}),
        {new},
    ]
"""


def with_resource(gone: str, new: str) -> str:
    """A file whose platform has another resource in the place of one."""
    return PLATFORM.format(gone=gone, new=new) + changed(platform='":Mine"')


MISTAKES = {
    "another clock": (
        changed(clock_hz="50_000_000"),
        "clock_hz must be 25_000_000, the frequency of clk25 in its platform, not 50_000_000",
    ),
    "one pin for both lines": (
        with_resource("uart", "UARTResource(0, rx='M1', tx='M1')"),
        "uart (uart 0 rx) and uart (uart 0 tx) are both on pin M1: give another uart",
    ),
    "a PLL of another family": (
        changed(pll="'sb_pll40_pad'"),
        "pll must be one of ehxplll for the family ecp5, not 'sb_pll40_pad'",
    ),
    "no such platform": (
        changed(platform="'lbq_hw.boards.platforms:ULX4S'"),
        "platform 'lbq_hw.boards.platforms:ULX4S' does not exist: "
        "the module lbq_hw.boards.platforms has no ULX4S",
    ),
    "a platform of another family": (
        changed(platform="'amaranth_boards.icebreaker:ICEBreakerPlatform'"),
        "platform must be a LatticeECP5Platform for the family ecp5, "
        "not 'amaranth_boards.icebreaker:ICEBreakerPlatform'",
    ),
    "another device": (
        changed(device="'LFE5U-85F-6BG381C'"),
        "device must begin with LFE5U-12F-6BG381, its platform's, not 'LFE5U-85F-6BG381C'",
    ),
    "options of another device": (
        changed(place='("--85k", "--package", "CABGA381", "--speed", "6")'),
        "place must begin with the words of '--12k --package CABGA381 --speed 6', "
        "not be '--85k --package CABGA381 --speed 6'",
    ),
    "a pin that the package has not": (
        with_resource("led", "Resource('led', 0, Pins('AB7', dir='o'))"),
        "led (led 0) is on pin AB7, which LFE5U-12F-6BG381C does not have",
    ),
    "a program without a file": (
        changed(program="'openFPGALoader -b ulx3s'"),
        "{} cannot be read as a board: ValueError: program must have {{}} or {{svf}} in "
        "place of the bitstream's name, and no other braces, not 'openFPGALoader -b ulx3s'",
    ),
    "a chip of another width": (
        changed(sdram="'M12L64322A'"),
        "sdram must have 32 pins dq for the chip Colorlight, not 16",
    ),
    "a clock out of reach": (
        changed(target_hz="900_000_000"),
        "the clock must be one that the PLL makes of 25 MHz (3.125 to 400 MHz), not 900 MHz",
    ),
    "a rate out of reach": (
        changed(baud="70_000_000"),
        "baud must be 18316..18750000 at 75000000 Hz, not 70000000",
    ),
    "a value that is held nowhere": (
        changed(hold="(('wifi', 0, 2),)"),
        "{} cannot be read as a board: ValueError: hold must be a tuple of names, numbers and "
        "values, such as (('wifi_gpio0', 0, 1),), not (('wifi', 0, 2),)",
    ),
    "a connector's pin that is not there": (
        with_resource("led", "Resource('led', 0, Pins('99', dir='o', conn=('gpio', 0)))"),
        "led must be on pins that its platform has, but led 0 is not: Resource "
        "(resource led 0 (pins o gpio_0:99)) refers to nonexistent connector pin gpio_0:99",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_a_board_is_told_at_once(mistake: str, tmp_path: Path) -> None:
    text, message = MISTAKES[mistake]
    file = write(tmp_path, text)
    with pytest.raises(BoardError) as error:
        boards.find(file)
    wanted = message.format(file) if message.startswith("{}") else f"{file}: {message}"
    assert str(error.value) == wanted


def test_a_build_that_a_board_file_tries_to_end_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path, "raise SystemExit(0)")
    assert build.main(["--board", file, "--model", "digits"]) == 2
    said = f"error: {file} must only set BOARD, but it ends the program\n"
    assert capsys.readouterr().err == said


@pytest.mark.parametrize("name", ["IS42S16160G", "MT48LC16M16A2"])
def test_a_chip_may_be_named_by_its_part(name: str, tmp_path: Path) -> None:
    assert boards.find(write(tmp_path, changed(sdram=repr(name)))).chip == ULX3S


def test_a_board_may_describe_its_own_chip(tmp_path: Path) -> None:
    own = "replace(boards.find('ulx3s-12f').chip, name='W9825G6KH', rfc=60_000)"
    board = boards.find(write(tmp_path, changed(sdram=own)))
    assert board.chip is not None
    assert (board.chip.name, board.chip.rfc, board.chip.rcd) == ("W9825G6KH", 60_000, ULX3S.rcd)
    assert json.loads(json.dumps(board.facts()))["sdram"]["rfc"] == 60_000


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(BoardError, match=r"^no board 'none\.py': there is no such file$"):
        boards.find("none.py")


def test_a_resource_that_the_platform_lacks_is_told_with_those_it_has(tmp_path: Path) -> None:
    file = write(tmp_path, TEXT.replace('name="mine"', 'name="mine", led=("lamp", 3)'))
    with pytest.raises(BoardError) as error:
        boards.find(file)
    sentence = r": led must be a resource of its platform \(.*led 7, .*\), not lamp 3"
    assert re.fullmatch(re.escape(file) + sentence, str(error.value))


def test_every_command_that_names_a_board_takes_its_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path, "BOARD = 5")
    said = f"{file} must set BOARD to a Board, as docs/boards.md shows\n"
    assert build.main(["--board", file, "--model", "digits"]) == 2
    assert simulate(["--board", file, "--model", "digits"]) == 2
    assert plan(["--board", file]) == 2
    assert capsys.readouterr().err == 3 * f"error: {said}"


def test_a_step_is_repeated_when_the_file_changes(tmp_path: Path) -> None:
    board = boards.find(write(tmp_path, TEXT))
    job = Job(Options(model=tmp_path / "net.lbq"), board, tmp_path)
    step = Step(name="rtl", run=lambda *_: "", sources=(), libraries=())
    first = runner._key(job, step)
    assert runner._key(job, step) == first
    (tmp_path / "mine.py").write_text(TEXT + "# other pins\n", encoding="utf-8")
    assert runner._key(job, step) != first


def test_a_build_for_a_board_of_ones_own_is_no_measurement(tmp_path: Path) -> None:
    (tmp_path / "core.json").write_text(json.dumps({"board": "mine", "config": {}}))
    (tmp_path / "place.json").write_text("{}")
    sentence = f"{tmp_path} must be a build for a board that ships, not 'mine'"
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        add(tmp_path, small=lambda _: 0.0, door=lambda *_: (0, 0))
