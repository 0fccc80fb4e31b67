# amaranth: UnusedElaboratable=no
"""Loops against the loops of Python, with the cycles from which each output holds."""

from __future__ import annotations

import random

import pytest
from core.harness import Bench, settling
from core.walk.positions import advances, full_layer, positions, random_layer

from lbq_hw.config import CoreConfig
from lbq_hw.core.walk.loops import Advance, Loops
from lbq_hw.sim.models.programs import SHAPES, SMALL


def run(config: CoreConfig, word: int, gaps: list[int]) -> tuple[list[int], dict]:
    """Cycles of ``start`` and of every ``go``, and the history of all outputs."""
    loops = Loops(config)
    bench = Bench(loops)
    bench.hold((loops.layer.as_value(), word))
    script: list[dict] = [{}, {"start": 1}]
    starts = [1]
    for gap in gaps:
        script += [{}] * (gap - 1) + [{"go": 1}]
        starts.append(len(script) - 1)
    bench.script({"start": loops.start, "go": loops.go}, script)
    state = loops.state
    names = ("tile", "first_t", "last_t", "pool_first", "pool_last")
    seen = bench.probe(
        kind=loops.kind,
        following=loops.following,
        here=loops.step_exists,
        **{name: state[name] for name in names},
    )
    bench.run(extra=8)
    return starts, seen


@pytest.mark.parametrize("shape", range(len(SHAPES)))
@pytest.mark.parametrize("seed", range(4))
def test_every_position_of_a_layer_is_visited_with_its_state(shape: int, seed: int) -> None:
    config = SHAPES[shape]
    word, layer = random_layer(config, seed)
    visited = positions(config, layer)
    kinds = advances(visited)
    source = random.Random(seed)
    starts, seen = run(config, word, [source.choice((3, 3, 4, 7)) for _ in visited[1:]])
    # The next `go` comes in a cycle in which all of this holds already.
    settling(seen["kind"], starts, [kind.value for kind in kinds[:-1]])
    settling(seen["following"], starts, [kind.value for kind in kinds[1:]])
    settling(seen["tile"], starts, [position.tile for position in visited])
    settling(seen["here"], starts, [position.here for position in visited])
    names = ("first_t", "last_t", "pool_first", "pool_last")
    history = list(zip(*(seen[name] for name in names), strict=True))
    for at, position in zip([*starts[1:], len(history) - 1], visited, strict=True):
        assert not position.here or history[at] == position.ends


def test_outputs_hold_one_two_and_three_cycles_after_a_start_or_go() -> None:
    word, layer = full_layer(SMALL)
    visited = positions(SMALL, layer)
    kinds = advances(visited)
    assert set(kinds) == set(Advance)
    starts, seen = run(SMALL, word, [6] * (len(visited) - 1))
    assert settling(seen["kind"], starts, [kind.value for kind in kinds[:-1]]) == 1
    assert settling(seen["tile"], starts, [position.tile for position in visited]) == 1
    assert settling(seen["here"], starts, [position.here for position in visited]) == 2
    for name in ("last_t", "pool_first", "pool_last"):
        # Where there is no step, only that the bit stays as it is.
        bits = [getattr(p, name) if p.here else None for p in visited]
        ends = [*starts[1:], len(seen[name]) - 1]
        bits = [seen[name][end] if b is None else b for b, end in zip(bits, ends, strict=True)]
        assert settling(seen[name], starts, bits) == 2
    assert settling(seen["following"], starts, [kind.value for kind in kinds[1:]]) == 3
