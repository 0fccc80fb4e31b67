"""Layers as passes: every block in every band, partial sums handed on, slots enough."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lbq_hw.compiler.passes.demand import Block, LayerDemand, Piece
from lbq_hw.compiler.passes.split import Choice, Room, choices, count, passes


def layer(*, blocks: int, resident: int = 0, rows: int = 8, tiles: int = 2) -> LayerDemand:
    def block(path: int) -> Block:
        return Block(
            pieces=(Piece(path, 0, 0),),
            length=64,
            requests=3,
            events=np.full(rows, 50.0),
            weights=range(64),
        )

    return LayerDemand(
        name="x",
        tiles=tiles,
        rows=rows,
        steps=np.full(rows, 16),
        segments=(3, 3),
        nulls=1.0,
        partial_bits=20,
        blocks=tuple(block(0) for _ in range(blocks)),
        resident=tuple(block(1) for _ in range(resident)),
    )


def room(slots: int, words: int, bits: int = 20) -> Room:
    return Room(slots=slots, block_rows=64, partial_words=words, partial_bits=bits, groups=4)


def test_pairs_shorten_passes_that_have_many_events_and_no_others() -> None:
    demand = layer(blocks=9)
    for factor, fewer in ((0.1, False), (40, True)):
        blocks = tuple(replace(block, events=block.events * factor) for block in demand.blocks)
        one = replace(demand, blocks=blocks)
        [choice, *_] = choices(one, room(18, 512))
        alone, paired = (
            sum(made.cycles for made in passes(one, choice, core))
            for core in (room(18, 512), replace(room(18, 512), pairs=True))
        )
        assert (paired < alone) == fewer
        assert paired > alone / 2


@pytest.mark.parametrize("words", [64, 128, 512])
@pytest.mark.parametrize("resident", [0, 1])
def test_every_cut_computes_everything_once_and_fits(words: int, resident: int) -> None:
    demand, core = layer(blocks=9, resident=resident), room(6, words)
    options = choices(demand, core)
    assert options
    for choice in options:
        assert len(passes(demand, choice, core)) == count(demand, choice)
        done: dict[tuple[int, int, int], int] = {}
        held: set[int] = set()
        open_band = None
        for made in passes(demand, choice, core):
            first, end = made.band
            assert (end - first) * 16 * core.groups <= words
            assert made.takes == (open_band == (made.tile, made.band))
            open_band = (made.tile, made.band) if made.leaves else None
            held |= {id(made.uses[number]) for number in made.fetch}
            assert {id(block) for block in made.uses} <= held
            assert len(held) <= core.slots - (choice.part if not made.keep[0] else 0)
            for block, kept in zip(made.uses, made.keep, strict=True):
                if not kept:
                    held.discard(id(block))
                for row in range(first, end):
                    key = made.tile, id(block), row
                    done[key] = done.get(key, 0) + 1
        everything = (9 + resident) * demand.tiles * demand.rows
        assert len(done) == everything
        assert set(done.values()) == {1}
        assert open_band is None
        assert not held


def test_a_layer_whose_blocks_fit_needs_one_pass_per_tile() -> None:
    demand, core = layer(blocks=4), room(4, 0)
    whole = Choice(bands=1, resident=4, part=0)
    assert choices(demand, core) == [whole]
    made = passes(demand, whole, core)
    assert [(one.takes, one.leaves) for one in made] == [(False, False)] * 2


def test_a_layer_has_no_cut_where_partial_sums_are_too_wide_or_too_many() -> None:
    assert choices(layer(blocks=9), room(4, 63)) == []
    assert choices(layer(blocks=9), room(4, 64, bits=19)) == []
    assert choices(layer(blocks=9), room(4, 64)) != []


def test_a_band_begins_with_the_part_that_the_band_before_ended_with() -> None:
    core = room(4, 64)
    cut = passes(layer(blocks=6, tiles=1), Choice(bands=8, resident=0, part=2), core)
    assert [len(made.fetch) for made in cut] == [2, 2, 2] + [0, 2, 2] * 7
