"""The command lbq explore, with fake tools in place of synthesis, place and route."""

from __future__ import annotations

import json
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from lbq_hw import flow
from lbq_hw.config import CoreConfig
from lbq_hw.explore.__main__ import main
from lbq_hw.resources import measured
from tests.lbq_hw.fake_tools import Fakes
from tests.lbq_hw.flow.test_flow import QUICK

ONE = ["--board", "ulx3s-12f", "--lanes", "4", "--word", "16", "--units", "1", "--freq", "75"]


@pytest.fixture
def fakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fakes:
    """Fake tools, and a quick design in place of Verilog."""
    folder = tmp_path / "tools"
    folder.mkdir()
    steps = [replace(step, run=QUICK.get(step.name, step.run)) for step in flow.STEPS]
    monkeypatch.setattr(flow, "STEPS", tuple(steps))
    return Fakes(folder, monkeypatch)


def explored(folder: Path, capsys: pytest.CaptureFixture[str], *more: str) -> list[dict[str, Any]]:
    assert main([*ONE, "--out", str(folder), "--json", *more]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert [found] == json.loads((folder / "exploration.json").read_text("utf-8"))
    assert found["model"] == "digits"
    return found["points"]


def test_without_place_nothing_is_built(
    tmp_path: Path, fakes: Fakes, capsys: pytest.CaptureFixture[str]
) -> None:
    points = explored(tmp_path, capsys)
    assert points
    for line in points:
        assert (line["lanes"], line["word"], line["units"]) == (4, 16, 1)
        assert (line["placed"], line["clock_hz"], line["bits"]) == (None, 75_000_000, 8)
    assert fakes.calls() == []
    assert not (tmp_path / "measured.json").exists()


def test_points_are_synthesised_once_and_placed_with_every_seed(
    tmp_path: Path, fakes: Fakes, capsys: pytest.CaptureFixture[str]
) -> None:
    fakes.fmax(seed1=80.0, seed2=90.0)
    points = explored(tmp_path, capsys, "--no-door", "--place", "--seeds", "2")
    (line,) = points
    assert fakes.calls() == ["yosys", "nextpnr-ecp5", "nextpnr-ecp5"]
    placed = line["placed"]
    assert (placed["seed"], placed["met"], placed["luts"]) == (2, True, 7)
    assert placed["seeds"] == {"1": 80e6, "2": 90e6}
    assert placed["cycles"] > 0
    assert placed["seconds"] > placed["cycles"] / line["clock_hz"]
    (row,) = json.loads((tmp_path / "measured.json").read_text("utf-8"))["builds"]
    assert {"board", "config", "luts", "block_rams", "fmax_mhz", "small"} <= set(row)
    assert (row["luts"], row["fmax_mhz"], row["clock_mhz"], row["seed"]) == (7, 90.0, 75.0, 2)
    assert CoreConfig.from_dict(row["config"]).lanes == 4
    assert set(row) <= set().union(*measured())


def test_what_is_done_is_not_done_again(
    tmp_path: Path, fakes: Fakes, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--no-door", "--place", "--seeds", "1")
    first = explored(tmp_path, capsys, *words)
    assert fakes.calls() == ["yosys", "nextpnr-ecp5"]
    lines = (tmp_path / "results.jsonl").read_text("utf-8").splitlines(keepends=True)
    assert explored(tmp_path, capsys, *words) == first
    assert fakes.calls() == []
    (tmp_path / "results.jsonl").write_text("".join(lines[:-1]), encoding="utf-8")
    assert explored(tmp_path, capsys, *words) == first  # its products are still there
    assert fakes.calls() == []
    explored(tmp_path, capsys, *words[:-1], "2")
    assert fakes.calls() == ["nextpnr-ecp5"]


def test_a_clock_that_is_missed_is_a_result(
    tmp_path: Path, fakes: Fakes, capsys: pytest.CaptureFixture[str]
) -> None:
    fakes.fmax(seed1=70.0)
    words = ("--no-door", "--place", "--seeds", "1")
    (line,) = explored(tmp_path, capsys, *words)
    assert (line["placed"]["met"], line["placed"]["fmax_hz"]) == (False, 70e6)
    (row,) = json.loads((tmp_path / "measured.json").read_text("utf-8"))["builds"]
    assert "clock_mhz" not in row
    assert main([*ONE, "--out", str(tmp_path), *words]) == 0
    assert "70.0 missed" in capsys.readouterr().out


@pytest.mark.parametrize("tool", ["yosys", "nextpnr-ecp5"])
def test_a_point_that_cannot_be_built_says_why(
    tmp_path: Path, fakes: Fakes, capsys: pytest.CaptureFixture[str], tool: str
) -> None:
    fakes.fail(tool, "ERROR: no room in this chip")
    words = ("--no-door", "--place", "--seeds", "1")
    (line,) = explored(tmp_path, capsys, *words)
    assert tool in line["placed"]["error"]
    assert not (tmp_path / "measured.json").exists()
    fakes.mend()
    if tool == "yosys":
        assert explored(tmp_path, capsys, *words)[0]["placed"]["error"] is None


class Links(HTMLParser):
    """What a page would ask for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []
        self.rings = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.asked += [str(given[name]) for name in ("src", "href") if name in given]
        self.rings += (tag, given.get("class")) == ("circle", "ring")


@pytest.mark.usefixtures("fakes")
def test_the_page_asks_for_nothing_and_shows_what_was_placed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    explored(tmp_path, capsys, "--place", "--seeds", "1")
    text = (tmp_path / "exploration.html").read_text("utf-8")
    links = Links()
    links.feed(text)
    assert links.asked == ["data:,"]
    placed = [p for p in explored(tmp_path, capsys, "--place", "--seeds", "1") if p["placed"]]
    assert links.rings == len(placed) > 0
    assert "url(" not in text
    assert "@import" not in text


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--board", "sim"], "board 'sim' has no FPGA to explore: it is only simulated"),
        (["--lanes", "5"], "lanes must be a power of two up to 256, not 5"),
        (["--freq", "-1"], "freq must be above 0 MHz, not -1.0"),
        (["--weight-bits", "1"], "weight_bits must be at least 2, not 1"),
        (["--model", "digits", "{zoo}"], "two models have the same name: explore them one by one"),
    ],
)
def test_bad_input_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], sentence: str
) -> None:
    from lbq_hw import zoo

    words = [word.format(zoo=zoo.find("digits")) for word in words]
    assert main([*words, "--out", str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"error: {sentence}\n"


def test_a_file_of_something_else_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "results.jsonl").write_text("hello\n", encoding="utf-8")
    assert main([*ONE, "--out", str(tmp_path)]) == 2
    assert capsys.readouterr().err.endswith(": 'hello'; choose another file\n")


def test_boards_without_a_core_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--model", "cifar10-onchip", "--board", "icebreaker", "--out", str(tmp_path)]
    assert main(words) == 0
    assert "cifar10-onchip fits no core of icebreaker\n" in capsys.readouterr().out
    assert (tmp_path / "exploration.html").is_file()
