# amaranth: UnusedElaboratable=no
"""StepInfos against `sim.models.walks`: what is queued, when it is settled, when it is offered."""

from __future__ import annotations

import random
from typing import Any

import pytest
from amaranth import Value
from core.harness import Bench, ones, settling
from core.walk.positions import Position, advances, full_layer, positions, random_layer

from lbq_hw import isa
from lbq_hw.config import CoreConfig
from lbq_hw.core.walk.loops import LoopState
from lbq_hw.core.walk.step_infos import STEPS_AHEAD, PassSteps, StepInfos, step_infos
from lbq_hw.sim.models.programs import SHAPES, SMALL
from lbq_hw.sim.models.traffic import Stall, never, stalls
from lbq_hw.sim.models.walks import Walk, walk


def model(config: CoreConfig, word: int) -> Walk:
    """The walk of a program of this layer alone: its StepInfos, up to the first beyond."""
    return walk(config, {"layers": [word], "paths": [], "segments": [], "runs": []})


def reach(layer: dict[str, int]) -> int:
    frames = layer["time_last"] if layer["static"] else 0
    return layer["planes_last"] * layer["out_plane"] + frames * layer["out_frame"]


def packed(layout: LoopState, position: Position) -> int:
    return layout.const({name: getattr(position, name) for name, _ in layout}).as_bits()


def drive(infos: StepInfos, visited: list[Position], push_after: int, gap: int) -> list[dict]:
    """What `Walker` and `Loops` drive, a dict per cycle; the first start comes in cycle 1.

    A state settles over two cycles; its step is pushed `push_after` cycles after the start or go
    that led to it, and the next go comes `gap` cycles after that.
    """
    noise = random.Random(5)
    layout, kinds = infos.state.shape(), advances(visited)
    tile = (1 << layout["tile"].width) - 1
    script: list[dict] = [{"clear": 1}, {"start": 1}]
    for position, following in zip(visited, kinds[1:], strict=True):
        state = packed(layout, position)
        for age in range(1, gap + 1):
            early = state & tile | noise.getrandbits(layout.size) & ~tile
            script.append(
                {
                    "state": early if age == 1 else state,
                    "push": position.here and age == push_after,
                    "go": age == gap,
                    "following": following.value,
                }
            )
    return script


def run(
    config: CoreConfig, word: int, layer: dict[str, int], *,
    push_after: int = 3, gap: int = 3, stall: Stall = never,
) -> tuple[list[Position], Any, dict]:  # fmt: skip
    """Positions, the StepInfos as they came, and what was seen in every cycle."""
    infos = step_infos(config)(config)
    bench = Bench(infos)
    bench.hold((infos.layer.as_value(), word), (infos.readout, layer["readout"]))
    bench.hold((infos.reach, reach(layer)))
    visited = positions(config, layer)
    names = ("clear", "start", "push", "go", "following")
    signals = {name: Value.cast(getattr(infos, name)) for name in (*names, "state")}
    bench.script(signals, drive(infos, visited, push_after, gap))
    taken = bench.monitor(infos.o, stall=stall)
    seen = bench.probe(beyond=infos.beyond, push=infos.push, room=infos.room)
    bench.run(extra=2 * STEPS_AHEAD)
    assert all(room for room, push in zip(seen["room"], seen["push"], strict=True) if push)
    return visited, taken, seen


@pytest.mark.parametrize("shape", range(len(SHAPES)))
@pytest.mark.parametrize("seed", range(4))
def test_every_step_has_the_info_of_the_model(shape: int, seed: int) -> None:
    config = SHAPES[shape]
    word, layer = random_layer(config, seed)
    expected = model(config, word)
    assert expected.error == isa.Error.NONE
    _, taken, _ = run(config, word, layer, stall=stalls(seed, 0.1))
    assert taken.payloads == expected.steps


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"out_base": 188}, isa.Error.PLANE),
        ({"out_base": 190, "out_row": 4}, isa.Error.PLANE),
        ({"out_base": 182, "static": 1, "time_last": 3}, isa.Error.PLANE),
        ({"readout": 1}, isa.Error.LOGIT),
    ],
)
def test_the_first_step_that_would_write_beyond_is_told(change: dict, error: isa.Error) -> None:
    _, layer = full_layer(SMALL)
    layer |= change
    word = isa.LAYER.encode(SMALL, layer)
    expected = model(SMALL, word)
    assert expected.error == error
    visited, taken, seen = run(SMALL, word, layer, gap=4)
    found = [seen["beyond"][1 + 4 * i + 3] for i, position in enumerate(visited) if position.here]
    assert found.index(1) == len(expected.steps) > 0
    assert taken.payloads[: len(expected.steps)] == expected.steps


def test_what_a_push_takes_is_settled_three_cycles_after_a_start_or_go() -> None:
    word, layer = full_layer(SMALL)
    expected = model(SMALL, word).steps
    assert run(SMALL, word, layer, push_after=3, gap=5)[1].payloads == expected
    assert run(SMALL, word, layer, push_after=2, gap=5)[1].payloads != expected


def test_beyond_is_settled_three_cycles_after_a_start_or_go() -> None:
    _, layer = full_layer(SMALL)
    layer["out_base"] = 191
    visited, _, seen = run(SMALL, isa.LAYER.encode(SMALL, layer), layer, gap=6)
    starts = [1 + 6 * i for i in range(len(visited))]
    values = [seen["beyond"][start + 6] for start in starts]
    assert 0 < sum(values) < len(values)
    assert settling(seen["beyond"][: starts[-1] + 7], starts, values) == 3


def test_a_step_info_is_offered_two_cycles_after_its_push() -> None:
    word, layer = full_layer(SMALL)
    _, taken, seen = run(SMALL, word, layer, gap=4)
    assert taken.cycles == [cycle + 2 for cycle in ones(seen["push"])]


def test_as_many_step_infos_wait_as_stated() -> None:
    infos = StepInfos(SMALL)
    bench = Bench(infos)
    bench.script({"push": infos.push}, [{"push": 1}] * STEPS_AHEAD)
    seen = bench.probe(room=infos.room)
    bench.run(extra=2)
    assert ones(seen["room"]) == list(range(STEPS_AHEAD))


def test_a_core_with_external_memory_counts_the_steps_of_a_pass() -> None:
    assert [step_infos(c) for c in (SMALL, SMALL.with_external())] == [StepInfos, PassSteps]
