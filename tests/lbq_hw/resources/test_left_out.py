"""Builds that are estimated from the others alone."""

from __future__ import annotations

import pytest

from lbq_hw.config import CoreConfig
from lbq_hw.resources import model
from lbq_hw.resources.__main__ import main
from lbq_hw.resources.left_out import left_out, worst


def build(lanes: int, luts: int, fmax_mhz: float | None, board: str = "icebreaker") -> dict:
    config = CoreConfig(lanes=lanes).to_dict()
    return {
        "board": board,
        "config": config,
        "luts": luts,
        "block_rams": 1,
        "fmax_mhz": fmax_mhz,
        "small": 50,
    }


def test_a_build_does_not_see_itself() -> None:
    points = [build(8, 4000, 30.0), build(16, 5000, 25.0), build(32, 7000, 20.0)]
    (first, *_) = left_out(points)
    changed = left_out([points[0] | {"luts": 9999, "fmax_mhz": 99.0}, *points[1:]])[0]
    assert (changed.luts, changed.fmax_mhz) == (first.luts, first.fmax_mhz)
    assert changed.luts_error == first.luts / 9999 - 1
    of_others = model.fitted_luts(points[1:])
    assert first.luts == model.luts_by(of_others, CoreConfig(lanes=8), 50)


def test_a_clock_needs_another_build_of_the_series() -> None:
    alone = left_out([build(8, 4000, 30.0), build(8, 4000, 90.0, "ulx3s-85f")])
    assert [one.fmax_error for one in alone] == [None, None]
    untimed = left_out([build(8, 4000, None), build(16, 5000, 25.0), build(32, 7000, 20.0)])
    assert untimed[0].fmax_error is None
    assert untimed[1].fmax_error is not None


def test_errors_are_counted_by_size() -> None:
    mean, most, within = worst([0.05, -0.2, 0.1])
    assert (round(mean, 6), most, within) == (0.116667, 0.2, 2)


def test_the_command_prints_mean_and_largest_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--leave-out"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2].startswith("LUTs: ")
    assert lines[-1].startswith("Fmax: ")
    assert len(lines) == 1 + len(model.measured()) + 2
