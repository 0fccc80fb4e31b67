"""Runs of a pass: merged where planes and weight rows go on, and only there."""

from __future__ import annotations

import numpy as np
import pytest

from lbq_hw.compiler.passes.demand import Block, Piece
from lbq_hw.compiler.passes.placing import side_by_side


def block(*pieces: Piece, rows: int = 8, limb: tuple[int, int] | None = None) -> Block:
    return Block(
        pieces=pieces,
        length=rows,
        requests=1,
        events=np.zeros(1),
        weights=range(rows),
        limb=limb,
    )


def test_channels_and_taps_that_follow_each_other_are_one_run() -> None:
    blocks = [block(Piece(0, 0, 8 * number)) for number in range(5)]
    assert side_by_side(blocks, 8) == 1


@pytest.mark.parametrize(
    "second",
    [
        Piece(0, 1, 8),  # another row
        Piece(0, 0, 9),  # not the next bit
        Piece(1, 0, 8),  # another path
    ],
)
def test_others_are_not(second: Piece) -> None:
    assert side_by_side([block(Piece(0, 0, 0)), block(second)], 8) == 2


def test_a_block_that_does_not_fill_its_slot_ends_a_run() -> None:
    blocks = [block(Piece(0, 0, 0), rows=5), block(Piece(0, 0, 5), rows=5)]
    assert side_by_side(blocks, 8) == 2
    assert side_by_side(blocks, 5) == 1


def test_runs_of_an_identity_stay_apart_and_paths_share_equal_ones() -> None:
    taps = Piece(0, 0, 0), Piece(0, 0, 8)
    assert side_by_side([block(*taps, limb=(0, 0)), block(limb=(0, 8))], 8) == 2
    assert side_by_side([block(Piece(0, 0, 0), Piece(1, 0, 0))], 8) == 1
