"""The picture and the table of points."""

from __future__ import annotations

from typing import Any

import pytest
from exploration_points import point

from lbq_hw.explore import page
from lbq_hw.explore.picture import HEIGHT, picture
from lbq_hw.explore.points import Placed
from lbq_hw.explore.results import facts
from lbq_hw.explore.table import placed_cells, placed_clock
from lbq_hw.file import load
from lbq_hw.zoo import find

NETWORK = load(find("digits"))
POINTS = [
    point(seconds=1e-3, luts=5000),
    point(seconds=2e-3, luts=4000, board="ulx3s-85f"),
    point(seconds=4e-3, luts=4500, board="tang-nano-9k"),
]


def found(*placed: Placed) -> dict[str, Any]:
    by_id: dict[str, list[Placed]] = {}
    for one in placed:
        by_id.setdefault(one.id, []).append(one)
    return facts(NETWORK, POINTS, by_id, accuracy=99.0, remark="")


def test_faster_is_left_and_more_cells_are_higher() -> None:
    first, second, third = picture(found()["points"])["dots"]
    assert 0 < first["x"] < second["x"] < third["x"] < 1
    assert 0 < first["y"] < third["y"] < second["y"] < HEIGHT
    assert [dot["number"] for dot in (first, second, third)] == [1, 2, None]
    assert [dot["family"] for dot in (first, second, third)] == ["ice40", "ecp5", "gowin"]


def test_the_stairs_join_the_front() -> None:
    view = picture(found()["points"])
    first, second, _ = view["dots"]
    (along, down, last) = view["stairs"]
    assert along == (first["x"], first["y"], second["x"], first["y"])
    assert down == (second["x"], first["y"], second["x"], second["y"])
    assert last == (second["x"], second["y"], view["right"], second["y"])


def test_a_single_point_has_axes_too() -> None:
    view = picture(found()["points"][:1])
    assert 0.3 < view["dots"][0]["x"] < 0.8
    assert len(view["columns"]) >= 3
    assert len(view["rows"]) >= 3


def test_the_best_seed_stands_for_a_placed_point() -> None:
    name = POINTS[0].id
    (first, *_) = found(
        Placed(id=name, seed=1, luts=4000, block_rams=20, fmax_hz=29e6, cycles=3e4),
        Placed(id=name, seed=2, luts=4002, block_rams=20, fmax_hz=31e6, cycles=3e4),
        Placed(id=name, seed=3, error="no place"),
    )["points"]
    assert (first["placed"]["seed"], first["placed"]["met"]) == (2, True)
    assert first["placed"]["seeds"] == {"1": 29e6, "2": 31e6}
    assert placed_cells(first) == "4,002 (+24.9 %)"
    assert placed_clock(first) == "31.0"
    assert first["placed"]["seconds"] > 1e-3  # 30,000 cycles at 30 MHz, and the line


@pytest.mark.parametrize(("seeds", "cells"), [([], ""), ([3], "no place")])
def test_a_point_without_a_place_has_no_ring(seeds: list[int], cells: str) -> None:
    made = found(*(Placed(id=POINTS[0].id, seed=seed, error="no place") for seed in seeds))
    assert placed_cells(made["points"][0]) == cells
    assert picture(made["points"])["dots"][0]["ring"] is None
    assert 'circle class="ring"' not in page.render([made], refused={"digits": []})


def test_of_equal_boards_one_is_shown_and_those_that_were_placed() -> None:
    names = ("ulx3s-85f", "ulx3s-12f", "ulx3s-45f")
    equal = [point(board=name) for name in names]
    placed = [Placed(id=equal[0].id, seed=1, error="no place")]
    made = facts(NETWORK, equal, {equal[0].id: placed}, accuracy=None, remark="")
    assert [(line["board"], line["shown"]) for line in made["points"]] == [
        ("ulx3s-12f", True),
        ("ulx3s-45f", False),
        ("ulx3s-85f", True),
    ]
    assert made["points"][0]["also"] == ["ulx3s-45f", "ulx3s-85f"]


def test_a_page_names_points_boards_and_what_fits_nowhere() -> None:
    made = found(Placed(id=POINTS[0].id, seed=1, luts=4000, block_rams=20, fmax_hz=31e6))
    text = page.render([made], refused={"digits": ["icesugar", "orangecrab"]})
    assert all(f'<td class="board">{one.board}' in text for one in POINTS)
    assert "No core fits icesugar, orangecrab" in text
    assert text.count('<circle class="ring"') == 1
    assert text.count('<text class="number"') == 2
    assert "accuracy 99.00 %" in text
