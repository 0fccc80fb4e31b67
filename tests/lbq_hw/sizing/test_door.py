"""Where a core has a door, and a queue behind it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lbq_hw import boards, resources, sizing, zoo
from lbq_hw.boards import Board
from lbq_hw.compiler import compile_network
from lbq_hw.file import load
from lbq_hw.network import Network
from lbq_hw.sizing import SizedCore, door


@pytest.fixture(scope="module")
def digits() -> Network:
    return load(zoo.find("digits"))


def taken(core: SizedCore, board: Board) -> resources.Estimate:
    assert core.estimate is not None
    assert core.opening is not None
    alone = resources.estimate(core.config, board)
    assert core.estimate == alone + resources.of_door(core.opening, board)
    return core.estimate


def test_a_core_has_a_door_unless_told_otherwise(digits: Network) -> None:
    board = boards.find("ulx3s-12f")
    core = sizing.size(digits, board)
    assert core.opening is not None
    assert core.opening.pixels == compile_network(digits, core.config).pixels
    assert core.opening.results == 10
    assert taken(core, board).luts <= board.luts
    without = sizing.size(digits, board, doors=False)
    assert without == replace(core, opening=None, estimate=without.estimate)


def test_the_simulated_board_has_room_for_everything(
    digits: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door, "waits", lambda *_, **__: True)
    core = sizing.size(digits, boards.find("sim"))
    assert core.opening is not None
    assert core.opening.queue == core.opening.pixels.words + 1


def test_a_lower_clock_with_a_faster_line_is_named() -> None:
    board = boards.find("icebreaker")
    assert door.line_of(board, 33_000_000).baud == 3_000_000
    assert door.faster_clock(board, 33_000_000) == 30_000_000
    assert door.line_of(board, 30_000_000).baud == 6_000_000
    assert door.faster_clock(board, 30_000_000) is None
    assert door.faster_clock(board, 24_000_000) is None  # 4 cycles of a bit are too few
    assert door.faster_clock(replace(board, bridge=None), 33_000_000) is None


def test_a_queue_is_for_runs_that_are_longer_than_a_frame_of_pixels(digits: Network) -> None:
    board = boards.find("ulx3s-12f")
    words = 10  # of 64 pixels of 5 bits
    line = door.line_of(board, 50_000_000)
    frame = 4 * words * 10 / line.baud * 50e6  # 10 bits of the line a byte
    for cycles, waits in ((frame - 1, False), (frame + 1, True)):
        assert door.waits(digits, board, clock_hz=50_000_000, cycles=cycles) is waits


def test_without_block_rams_for_a_queue_there_is_a_door_alone(digits: Network) -> None:
    board = boards.find("icebreaker")
    core = sizing.size(digits, board)
    assert core.opening is not None
    assert core.opening.queue == 0
    assert taken(core, board).block_rams == board.block_rams


def test_a_board_without_room_for_a_door_gets_the_core_alone(digits: Network) -> None:
    board = boards.find("icebreaker")
    alone = sizing.size(digits, board, lanes=8, doors=False)
    assert alone.estimate is not None
    full = replace(board, luts=round(alone.estimate.luts / resources.room.FULL) + 1)
    assert sizing.size(digits, full, lanes=8) == alone


def test_results_that_one_reply_cannot_carry_need_no_door(
    digits: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door, "MOST_RESULTS", 9)
    assert sizing.size(digits, boards.find("sim")).opening is None


@pytest.mark.slow
def test_weights_stay_on_the_chip_rather_than_beside_a_door() -> None:
    network, board = load(zoo.find("mnist")), boards.find("ulx3s-12f")
    alone = sizing.size(network, board, doors=False)
    assert alone.config.external == 0
    assert alone.estimate is not None
    least = replace(board, block_rams=alone.estimate.block_rams, luts=alone.estimate.luts + 200)
    core = sizing.size(network, least)
    assert core.config.external == 0
