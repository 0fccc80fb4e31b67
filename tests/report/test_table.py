"""The table of builds, and that README.md shows it as it is."""

from __future__ import annotations

import json
from dataclasses import astuple
from pathlib import Path

import pytest

from lbq_hw import boards
from lbq_hw.report import Facts
from lbq_hw.report.__main__ import main
from lbq_hw.report.facts import Link
from lbq_hw.report.summary import summary
from lbq_hw.report.table import markdown
from lbq_hw.sizing.door import line_of

ROOT = Path(__file__).parents[2]
BUILDS = sorted((ROOT / "docs" / "builds").glob("*.json"))


def test_the_readme_shows_the_builds_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert BUILDS
    assert main(["--markdown", *map(str, BUILDS)]) == 0
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = readme.partition("docs/builds/*.json -->\n")[2].partition("<!-- /builds -->")[0]
    assert shown == capsys.readouterr().out


@pytest.mark.parametrize("file", BUILDS, ids=lambda file: file.stem)
def test_a_shipped_build_has_the_rate_over_the_link_and_that_of_the_core(file: Path) -> None:
    found = json.loads(file.read_text(encoding="utf-8"))
    assert set(found) == set(summary(Facts()))
    link = Link(
        baud=found["baud"],
        bytes=found["link_bytes_per_image"],
        turns=found["link_turns_per_image"],
        latency=found["link_latency_seconds"],
        gap=found["link_gap_seconds"],
    )
    board, core_seconds = boards.find(found["board"]), found["seconds_per_image"]
    assert (link.baud, link.latency) == astuple(line_of(board, found["clock_hz"]))
    assert found["link_seconds_per_image"] == link.seconds
    assert found["images_per_second"] == 1 / link.image_seconds(core_seconds)
    assert found["images_per_second_core"] == 1 / core_seconds


def test_a_build_that_missed_its_clock_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missed = json.loads(BUILDS[0].read_text(encoding="utf-8")) | {"timing_met": False}
    file = tmp_path / "summary.json"
    file.write_text(json.dumps(missed), encoding="utf-8")
    with pytest.raises(ValueError, match="must have timing_met true, not False"):
        markdown([file])
    assert main(["--markdown", str(file)]) == 2
    assert capsys.readouterr().err == f"error: {file} must have timing_met true, not False\n"
