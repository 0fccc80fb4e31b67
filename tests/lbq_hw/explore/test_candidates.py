"""Cores for a board by estimate: the search skips much, and loses nothing by it."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from lbq_hw import boards, resources, sizing, zoo
from lbq_hw.config import CoreConfig
from lbq_hw.explore import candidates
from lbq_hw.explore.candidates import Wish, boards_by_device, explore
from lbq_hw.explore.front import front
from lbq_hw.explore.points import Point
from lbq_hw.file import load
from lbq_hw.sizing import Ask, cores_on_chip
from lbq_hw.sizing.activity import activity

NETWORK = load(zoo.find("digits"))
WISH = Wish(network=NETWORK, busy=activity(NETWORK), lanes=(4, 8), words=(16,), units=(1,))


@cache
def found(board: str) -> list[Point]:
    return explore(WISH, boards.find(board))


def every_core(board: boards.Board) -> list[tuple[CoreConfig, float]]:
    asks = [Ask(NETWORK, board, lanes, None, None, WISH.busy, None) for lanes in WISH.lanes]
    return [one for ask in asks for one in cores_on_chip(ask, []) if WISH.keeps(one[0])]


def all_points(board: boards.Board) -> list[tuple[float, int]]:
    """Time and cells of each core that fits, at each clock and with each door, one by one."""
    points = []
    for config, cycles in every_core(board):
        for door, queue in ((False, False), (True, False), (True, True)):
            for clock_hz in candidates._clocks(WISH, board, config):
                ask = Ask(
                    NETWORK, board, None, None, clock_hz, WISH.busy, None, door=door, queue=queue
                )
                if ask.holds(config):
                    core = ask.sized(config, cycles)
                    core = ask.opened(core) if door else core
                    assert core.estimate is not None
                    points.append((ask.seconds(core), core.estimate.luts))
    return points


@pytest.mark.parametrize("name", ["icebreaker", "ulx3s-12f"])
def test_the_front_is_that_of_all_cores(name: str) -> None:
    expected = front(all_points(boards.find(name)), lambda pair: pair)
    assert [(point.seconds, point.luts) for point in found(name)] == expected
    assert len(expected) > 1


def test_a_point_holds_what_a_build_keeps() -> None:
    board = boards.find("icebreaker")
    for point in found("icebreaker"):
        config = CoreConfig.from_dict(point.core["config"])
        assert (config.lanes, config.word, config.units) == (point.sizes["lanes"], 16, 1)
        assert set(point.core) == set(vars(sizing.SizedCore(
            config=config, board=board.name, clock_hz=1, estimate=None, cycles=1.0,
            activity=WISH.busy,
        )))  # fmt: skip
        assert point.core["estimate"]["luts"] == point.luts
        assert point.core["clock_hz"] == point.clock_hz
        assert point.facts()["door"] in ("no", "yes", "queue")
    assert len({point.id for point in found("icebreaker")}) == len(found("icebreaker"))


def test_clocks_are_those_that_the_rates_of_the_line_divide() -> None:
    board = boards.find("icebreaker")
    assert board.bridge is not None
    (config, _), *_ = every_core(board)
    clocks = candidates._clocks(WISH, board, config)
    fmax_hz = resources.least(config, board).fmax_hz
    assert max(clocks) <= fmax_hz
    assert 30_000_000 in clocks  # the highest that is divided to 6 Mbaud
    given = candidates._clocks(replace(WISH, clocks_hz=(24_000_000,)), board, config)
    assert given == [24_000_000]
    assert candidates._clocks(replace(WISH, clocks_hz=(1,)), board, config) == []


def test_no_clock_is_faster_than_any_that_was_measured() -> None:
    board = boards.find("tang-nano-20k")
    (config, _), *_ = every_core(board)
    assert resources.least(config, board).fmax_hz > resources.fastest_hz(board) > 0
    assert max(candidates._clocks(WISH, board, config)) <= resources.fastest_hz(board)
    assert resources.fastest_hz(boards.find("ice40-hx8k")) == 0


def test_a_board_that_holds_no_core_has_no_points() -> None:
    full = replace(boards.find("ulx3s-12f"), luts=1000, sdram="")
    assert explore(WISH, full) == []


def test_weights_lie_in_the_board_s_memory_where_the_chip_has_no_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    board = boards.find("ulx3s-12f")
    asked: list[Any] = []

    def on_tape(_: Wish, board: boards.Board) -> Any:
        asked.append(board.name)
        return iter(())

    monkeypatch.setattr(candidates, "_on_tape", on_tape)
    monkeypatch.setattr(candidates, "_on_chip", lambda *_: iter(()))
    assert explore(WISH, board) == []
    assert explore(replace(WISH, memory="internal"), board) == []
    assert explore(WISH, boards.find("ice40-hx8k")) == []
    assert asked == [board.name]


def test_boards_of_one_device_go_together() -> None:
    names = ["icebreaker", "sim", "icesugar", "ulx3s-12f", "ulx3s-85f"]
    assert boards_by_device(names) == [["icebreaker", "icesugar"], ["ulx3s-12f"], ["ulx3s-85f"]]
