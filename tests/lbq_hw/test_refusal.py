"""What a refusal says: where the cells go, and the nearest change that fits."""

from __future__ import annotations

import re

import pytest

import boards
from lbq_hw import resources, sizing, zoo
from lbq_hw.config import CoreConfig
from lbq_hw.file import load
from lbq_hw.sizing import FitError, refusal

LANES = r"\d+ lanes take about [\d,]+ of [\d,]+ LUTs and \d+ of \d+ block RAMs"


def refused(model: str, board: str, **options: int) -> list[str]:
    with pytest.raises(FitError) as error:
        sizing.size(load(zoo.find(model)), boards.find(board), **options)
    return str(error.value).splitlines()


def test_a_shortcut_is_too_much_for_a_board_without_single_port_rams() -> None:
    head, short, costs, change, board = refused("digits", "ice40-hx8k")
    assert head == "network 'digits' does not fit iCE40-HX8K breakout"
    assert re.fullmatch(
        r"- the core needs about \d+ block RAMs, iCE40-HX8K breakout has 32 \(\d+ short\)", short
    )
    assert re.match(r"- a second path into a layer costs about \d+ LUTs and 3 block RAMs", costs)
    assert "a weight of 8 bits instead of 4 costs about" in costs
    assert "T = 2 instead of 1 costs about" in costs
    assert change == (
        "- no single change fits: not weights of 4 bits, not T = 1, not one path into each layer "
        "(no shortcut)"
    )
    assert re.fullmatch(r"- nearest board that holds it: icebreaker; " + LANES, board)


@pytest.mark.slow
def test_fewer_weight_bits_are_named_where_block_rams_are_short() -> None:
    *_, change, _ = refused("nmnist", "tang-nano-9k")
    assert change.startswith("- nearest change that fits: weights of 4 bits; 16 lanes take about")


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
