"""The page on boards: its files are boards, its commands run, its tables are of today."""

from __future__ import annotations

import re
import shlex
import shutil
from dataclasses import fields, replace
from pathlib import Path

import pytest

from lbq_hw import boards, families
from lbq_hw.__main__ import main as lbq
from lbq_hw.boards import Board, pages
from lbq_hw.boards.command import main as write_tables
from lbq_hw.chips import CHIPS, PARTS, ULX3S

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "boards.md").read_text("utf-8")
FILES = re.findall(r"save it as `(\w+\.py)`:\n\n```python\n(.*?)^```$", PAGE, re.M | re.S)
COMMANDS = [
    shlex.split(line)
    for block in re.findall(r"^```sh\n(.*?)^```$", PAGE, re.M | re.S)
    for line in block.splitlines()
]


@pytest.fixture
def followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that the page has its reader write, which is the current one."""
    monkeypatch.setenv("AMARANTH_USE_YOSYS", "builtin")
    monkeypatch.chdir(tmp_path)
    for name, text in FILES:
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_every_block_of_python_is_a_file_that_a_command_uses() -> None:
    assert len(FILES) == len(re.findall(r"^```python$", PAGE, re.M)) == 2
    assert [words[words.index("--board") + 1] for words in COMMANDS] == [name for name, _ in FILES]


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[3])
@pytest.mark.usefixtures("followed")
def test_a_command_writes_the_design_of_the_board_that_the_page_shows(words: list[str]) -> None:
    assert lbq(words[1:]) == 0
    folder = Path(words[words.index("--build-dir") + 1])
    (pins,) = [path for path in folder.glob("top.*") if path.suffix in (".pcf", ".lpf")]
    rx = {"up5k_evn.py": "26", "bare_ecp5.py": "R7"}[words[3]]
    assert re.search(rf"uart_0__rx__io\"?\s*(?:SITE )?\"?{rx}\b", pins.read_text("utf-8"))


@pytest.mark.slow
@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[3])
@pytest.mark.usefixtures("followed")
def test_a_command_without_its_until_makes_a_bitstream(words: list[str]) -> None:
    assert lbq(words[1 : words.index("--until")]) == 0
    folder = Path(words[words.index("--build-dir") + 1])
    assert (folder / "package" / "package.json").is_file()


def test_the_sentence_about_the_shared_pin_is_what_the_build_says(
    followed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = followed / "bare_ecp5.py"
    text = file.read_text("utf-8")
    file.write_text(text.replace("    led=None,\n", ""), encoding="utf-8")
    assert lbq(["build", "--board", file.name, "--model", "digits"]) == 2
    (said,) = re.findall(r"^```text\n(.*?)^```$", PAGE, re.M | re.S)
    assert capsys.readouterr().err == said


@pytest.mark.parametrize("page", ["boards.md", "bring-up.md"])
def test_the_tables_are_those_that_make_docs_writes(page: str, tmp_path: Path) -> None:
    for name in ("boards.md", "bring-up.md"):
        shutil.copy(DOCS / name, tmp_path / name)
    assert write_tables([str(tmp_path)]) == 0
    assert (tmp_path / page).read_text("utf-8") == (DOCS / page).read_text("utf-8")


def test_a_new_board_is_in_the_tables(followed: Path) -> None:
    board = boards.find(str(followed / "bare_ecp5.py"))
    assert pages.sizes([board]).splitlines()[2] == (
        "| `bare-ecp5` | LFE5U-25F-6BG256C | 24,288 | 56 x 18 Kb |  | 25 MHz | 75 MHz |"
    )
    assert pages.first_light([board]).splitlines()[2] == (
        "| `bare-ecp5` | `openFPGALoader -c ft232RL FILE` |  | 115,200 | the adapter's | none |"
    )


def test_a_page_without_marks_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "boards.md").write_text("# Boards\n", encoding="utf-8")
    assert write_tables([str(tmp_path)]) == 2
    assert capsys.readouterr().err == (
        "error: the page must have '<!-- boards: python -m boards docs -->' and then "
        "'<!-- /boards -->'\n"
    )


def rows(head: str) -> list[list[str]]:
    """The cells of the table that begins with this column."""
    lines = PAGE[PAGE.index(f"\n| {head} |") + 1 :].partition("\n\n")[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_the_page_explains_every_field_in_its_order() -> None:
    named = [row[0].strip("`") for row in rows("field")]
    assert named == [field.name for field in fields(Board)]


def test_the_page_has_every_chip_with_its_parts_and_its_shape() -> None:
    wanted = []
    for chip in CHIPS:
        parts = ", ".join(f"`{part}`" for part, found in PARTS.items() if found is chip)
        shape = (1 << bits for bits in (chip.row_bits, chip.column_bits, chip.bank_bits))
        size = f"{chip.size_bytes >> 20} MB"
        wanted.append(
            [f"`{chip.name}`", parts, str(chip.data_bits), " x ".join(map(str, shape)), size]
        )
    assert rows("name") == wanted


def test_the_plls_and_the_chip_that_the_page_names_exist() -> None:
    assert "`lbq_hw.families.plls`" in PAGE
    assert "`lbq_hw.chips.Chip`" in PAGE
    assert {"sb_pll40_pad", "sb_pll40_core"} <= set(families.plls())
    assert replace(ULX3S, name="W9825G6KH", rfc=60_000).rfc == 60_000
