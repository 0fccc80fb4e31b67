"""What a refusal says: where the cells go, and the nearest change that fits."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from lbq_hw import boards, resources, sizing, zoo
from lbq_hw.config import CoreConfig
from lbq_hw.file import load
from lbq_hw.sizing import FitError, on_tape, refusal

LANES = r"\d+ lanes take about [\d,]+ of [\d,]+ LUTs and \d+ of \d+ block RAMs"


def refused(model: str, board: str | boards.Board, **options: int) -> list[str]:
    wanted = boards.find(board) if isinstance(board, str) else board
    with pytest.raises(FitError) as error:
        sizing.size(load(zoo.find(model)), wanted, **options)
    return str(error.value).splitlines()


def test_a_shortcut_is_too_much_for_a_board_of_fewer_cells() -> None:
    smaller = replace(boards.find("icebreaker"), luts=3650)
    *_, costs, change, board = refused("digits", smaller)
    assert "a second path into a layer costs about" in costs
    assert "a weight of 8 bits instead of 4 costs about" in costs
    assert "T = 2 instead of 1 costs about" in costs
    assert re.fullmatch(r"- nearest change that fits: no shortcuts; " + LANES, change)
    assert re.fullmatch(r"- nearest board that holds it: icesugar; " + LANES, board)


def test_the_digits_with_their_shortcut_fit_the_smallest_board() -> None:
    sized = sizing.size(load(zoo.find("digits")), boards.find("icebreaker"))
    assert sized.config.layer_paths == 2


@pytest.mark.slow
def test_fewer_weight_bits_are_named_where_block_rams_are_short() -> None:
    *_, change, _ = refused("mnist", "tang-nano-9k")
    assert change.startswith("- nearest change that fits: 4-bit weights; 16 lanes take about")


def test_lanes_that_were_asked_for_are_the_first_to_go() -> None:
    *_, change, _ = refused("mnist-4bit", "icebreaker", lanes=32)
    assert re.fullmatch(r"- nearest change that fits: leave out --lanes; " + LANES, change)


def test_every_feature_that_takes_cells_is_named_with_what_it_takes() -> None:
    board = boards.find("icebreaker")
    config = CoreConfig(lanes=8, word=16, summary=8, units=1, layer_paths=2, weight_bits=6)
    [costs] = refusal._costs(config, board)
    less = resources.estimate(config.with_(layer_paths=1), board)
    whole = resources.estimate(config, board)
    assert f"a second path into a layer costs about {whole.luts - less.luts:,} LUTs" in costs
    for name in ("T = 16 instead of 1", "max-pooling", "a weight of 6 bits instead of 4"):
        assert f"{name} costs about" in costs


def test_a_core_without_features_has_no_costs_to_name() -> None:
    config = CoreConfig(layer_paths=1, timesteps=1, window=1, weight_bits=4)
    assert refusal._costs(config, boards.find("icebreaker")) == []


def test_weights_beyond_all_chips_are_sent_to_boards_with_external_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The boards are asked one after the other, smallest first; the board itself is not."""
    asked: list[str] = []

    def holds(_network: object, board: boards.Board) -> bool:
        asked.append(board.name)
        return board.name in ("ulx3s-45f", "ulx3s-85f")

    monkeypatch.setattr(refusal.on_tape, "holds", holds)
    *others, external = refused("cifar10-resnet20", "icebreaker")
    assert "- no other board holds it" not in others
    assert external == "- boards whose external memory holds it: ulx3s-45f, ulx3s-85f"
    with_memory = {name for name in boards.names() if boards.find(name).sdram}
    assert set(asked) == with_memory


def test_where_no_board_holds_a_network_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refusal.on_tape, "holds", lambda _network, _board: False)
    assert refused("cifar10-resnet20", "icebreaker")[-1] == "- no other board holds it"


def test_a_board_with_external_memory_is_found_to_hold_a_network() -> None:
    network = load(zoo.find("digits"))
    assert on_tape.holds(network, boards.find("ulx3s-12f"))
