"""A board of one's own, by the path of its file: what is found, and what is wrong with it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from lbq_hw import boards, build
from lbq_hw.boards import BoardError
from lbq_hw.external.__main__ import main as budget
from lbq_hw.flow import Job, Options, inputs
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
            "{} must give its board another name: sim is one that ships",
        ),
        (
            TEXT.replace('name="mine"', 'name="mine", sdram="DDR3"'),
            "{}: sdram must be one of ULX3S, iCESugar-pro, Tang Nano 20K, Colorlight, not 'DDR3'",
        ),
        (
            TEXT.replace('name="mine"', 'name="mine", led=("uart", 0)'),
            "{}: led must be one signal, but uart 0 has several",
        ),
        (
            TEXT.replace('name="mine"', 'name="mine", uart=("led", 0)'),
            "{}: uart must have the signals rx and tx, which led 0 has not",
        ),
        (
            TEXT.replace('name="mine"', 'name="mine", led=("button_fire", 0), clock="led"'),
            None,
        ),
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
    assert budget(["--board", file]) == 2
    assert capsys.readouterr().err == f"build: {said}sim: {said}error: {said}"


def test_a_step_is_repeated_when_the_file_changes(tmp_path: Path) -> None:
    def key(text: str, name: str) -> str:
        (tmp_path / name).mkdir()
        board = boards.find(write(tmp_path / name, text))
        job = Job(Options(model=tmp_path / "net.lbq"), board, tmp_path)
        return inputs.key_of(
            job, name="rtl", options=(), needs=(), tools=(), command=None, sources=(), libraries=()
        )

    first = key(TEXT, "a")
    same = boards.find(str(tmp_path / "a" / "mine.py"))
    (tmp_path / "a" / "mine.py").write_text(TEXT + "# other pins\n", encoding="utf-8")
    job = Job(Options(model=tmp_path / "net.lbq"), same, tmp_path)
    nothing = {"options": (), "needs": (), "tools": (), "sources": (), "libraries": ()}
    assert inputs.key_of(job, name="rtl", command=None, **nothing) != first


def test_a_build_for_a_board_of_ones_own_is_no_measurement(tmp_path: Path) -> None:
    (tmp_path / "core.json").write_text(json.dumps({"board": "mine", "config": {}}))
    (tmp_path / "place.json").write_text("{}")
    sentence = f"{tmp_path} must be a build for a board that ships, not 'mine'"
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        add(tmp_path, lambda _: 0.0)
