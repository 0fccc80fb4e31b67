"""The pictures are those of the data, and are well-formed."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tools.pictures import event, planes, speed
from tools.pictures.__main__ import main

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
BUILDS = speed.read(DOCS / "builds")


def words(svg: str) -> list[str]:
    return [node.text or "" for node in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("speed.svg", speed.picture(BUILDS)),
        ("planes.svg", planes.picture()),
        ("event.svg", event.picture()),
    ],
)
def test_a_picture_is_as_its_data_makes_it(name: str, made: str) -> None:
    """Else: make docs."""
    assert (DOCS / name).read_text("utf-8") == made


def test_every_build_is_a_point_with_its_figures() -> None:
    shown = words(speed.picture(BUILDS))
    for build in BUILDS:
        assert {build.board, build.model, f"{build.accuracy:.2f} %"} <= set(shown)
    assert len([word for word in shown if word in map(str, range(1, 100))]) == 2 * len(BUILDS)


def test_the_film_ends_with_the_sum_of_products() -> None:
    *_, last = planes.scenes()
    pairs = list(zip(planes.LEVELS, planes.WEIGHTS, strict=True))
    assert last.total == sum(level * weight for level, weight in pairs)
    additions = [scene for scene in planes.scenes() if scene.bit is not None]
    assert len(additions) == sum(level.bit_count() for level in planes.LEVELS)


def test_the_drawing_tells_the_example_of_the_page() -> None:
    page = (DOCS / "architecture.md").read_text("utf-8")
    stages = dict(event.STAGES)
    assert stages["Event"][-1] in page
    assert f"| 1 | {stages['Lanes'][-1]} |" in page


def test_a_folder_without_builds_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path)]) == 2
    assert capsys.readouterr().err == (
        f"error: {tmp_path / 'builds'} must hold summaries of builds\n"
    )
