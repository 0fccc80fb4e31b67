"""Eyes, the edge that takes words, and the table of the boards' margins."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from lbq_hw import boards
from lbq_hw.chips import CHIPS, COLORLIGHT, TANG_NANO_20K, ULX3S, Chip
from lbq_hw.chips.captures import facts, markdown
from lbq_hw.chips.eye import DRIFT, Eye, Sampling, fastest

PAGE = Path(__file__).parents[3] / "docs" / "external-memory.md"
CLOCKS = [  # in MHz
    (ULX3S, 75), (ULX3S, 80), (TANG_NANO_20K, 60), (TANG_NANO_20K, 81), (COLORLIGHT, 75),
]  # fmt: skip


def test_an_eye_is_from_the_access_time_to_the_hold_time_of_the_next_word() -> None:
    sampling = Sampling(chip=ULX3S, clock_hz=80_000_000)
    eye = sampling.eye(4_000)
    assert eye == Eye(begin=5_400 + 4_000, end=12_500 + 2_500 + 4_000)
    assert eye.moved(-500) == sampling.eye(3_500)
    assert sampling.passing(eye) == [2, 3]
    assert sampling.passing(Eye(begin=6_250, end=12_499)) == [1]
    assert sampling.passing(Eye(begin=6_251, end=12_499)) == []


def test_the_nominal_point_is_the_middle_of_the_eye_with_the_mean_delay() -> None:
    sampling = Sampling(chip=ULX3S, clock_hz=80_000_000)
    delay = (ULX3S.delay_least + ULX3S.delay_most) // 2
    assert sampling.nominal == (5_400 + 12_500 + 2_500) / 2 + delay == 13_873
    assert (sampling.nominal_count, sampling.falling) == (2, True)  # 12.5 ns, not 18.75
    slow = Sampling(chip=ULX3S, clock_hz=30_000_000)
    assert slow.nominal == 24_289.5
    assert (slow.nominal_count, slow.falling) == (1, False)  # 16.7 ns, not 33.3


def test_of_two_edges_that_pass_the_nominal_one_is_chosen() -> None:
    sampling = Sampling(chip=ULX3S, clock_hz=80_000_000)
    assert sampling.chosen(Eye(begin=6_000, end=16_000)) == 2
    assert sampling.chosen(Eye(begin=12_000, end=20_000)) == 2
    assert sampling.chosen(Eye(begin=13_000, end=20_000)) == 3
    assert sampling.chosen(Eye(begin=13_000, end=18_000)) is None


@pytest.mark.parametrize("drift", [-DRIFT, DRIFT])
@pytest.mark.parametrize(("chip", "mhz"), CLOCKS, ids=lambda value: getattr(value, "name", value))
def test_what_is_chosen_stays_right_where_the_eye_drifts(chip: Chip, mhz: int, drift: int) -> None:
    sampling = Sampling(chip=chip, clock_hz=mhz * 10**6)
    assert sampling.survives
    for delay in range(chip.delay_least, chip.delay_most + 1):
        eye = sampling.eye(delay)
        assert sampling.chosen(eye) in sampling.passing(eye.moved(drift))


@pytest.mark.parametrize("chip", CHIPS, ids=lambda chip: chip.name)
def test_up_to_the_fastest_clock_the_eye_may_drift_and_above_it_may_not(chip: Chip) -> None:
    most = fastest(chip)
    assert most == {"Tang Nano 20K": 81, "Colorlight": 76}.get(chip.name, 80)
    assert all(Sampling(chip=chip, clock_hz=mhz * 10**6).survives for mhz in range(1, most + 1))
    above = Sampling(chip=chip, clock_hz=(most + 1) * 10**6)
    assert 0 < above.early < DRIFT < above.late


def test_the_usual_clock_of_every_board_with_a_memory_allows_the_drift() -> None:
    rows = facts()
    assert all(row["survives"] for row in rows)
    usual = {(row["board"], row["clock_hz"]) for row in rows}
    found = [boards.find(name) for name in boards.names()]
    assert {(board.name, board.target_hz) for board in found if board.chip} <= usual
    assert {("ulx3s-85f", 75_000_000), ("tang-nano-20k", 81_000_000)} <= usual


def test_the_command_prints_what_the_page_has(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_module("lbq_hw.chips", run_name="__main__")
    assert capsys.readouterr() == (markdown(), "")
    _, _, rest = PAGE.read_text("utf-8").partition("<!-- captures: python -m lbq_hw.chips -->\n")
    assert rest.partition("<!-- /captures -->")[0] == markdown()
