# amaranth: UnusedElaboratable=no
"""PathStates against two slots in Python: what is read when, and when a slot is free."""

from __future__ import annotations

import random
from typing import Any

import pytest
from core.harness import Bench, ones, settling

from lbq_hw.core.walk.path_states import SLOTS, PathStates
from sim.models.programs import SHAPES, SMALL

ONE = SHAPES[2]


@pytest.mark.parametrize("seed", range(3))
def test_states_are_read_a_cycle_later_from_the_slot_of_their_step(seed: int) -> None:
    source = random.Random(seed)
    states = PathStates(SMALL)
    width, paths = states.state.shape().size, SMALL.layer_paths
    slots: list[list[int]] = [[0] * paths for _ in range(SLOTS)]
    script: list[dict] = []
    expected: list[tuple[int, int | None]] = []  # free, and what `o` shows, if that is known
    opened = released = stored = 0
    shown: int | None = None
    for _ in range(400):
        step: dict[str, Any] = {}
        expected.append((int(opened - released < SLOTS), shown))
        if opened - released < SLOTS and stored < paths:
            if source.random() < 0.7:
                value = source.getrandbits(width)
                step |= {"store": 1, "store_at": stored, "state": value}
                slots[opened % SLOTS][stored] = value
                stored += 1
        elif opened - released < SLOTS and source.random() < 0.5:
            step["open"] = 1
        if opened > released and source.random() < 0.6:
            slot, path = released % SLOTS, source.randrange(paths)
            step |= {"read": 1, "slot": slot, "path": path}
            shown = slots[slot][path]
            step["release"] = int(source.random() < 0.3)
        opened += step.get("open", 0)
        released += step.get("release", 0)
        stored = 0 if step.get("open") else stored
        script.append(step)
    bench = Bench(states)
    names = ("store", "store_at", "open", "read", "slot", "path", "release")
    signals = {name: getattr(states, name) for name in names} | {"state": states.state.as_value()}
    bench.script(signals, script)
    seen = bench.probe(free=states.free, o=states.o.as_value())
    bench.run()
    assert opened > 20
    assert seen["free"][: len(script)] == [free for free, _ in expected]
    for cycle, (_, value) in enumerate(expected):
        assert value is None or seen["o"][cycle] == value


class Only:
    """Moves the only path's window while a slot is free, opens its step, releases steps in turn.

    As in `Walker`, a step is opened two cycles after its window moved, and its state is on ``only``
    from the cycle after that on.
    """

    def __init__(self, states: PathStates, values: list[int], wait: random.Random) -> None:
        self.states, self.values, self.wait = states, values, wait
        self.samples = [states.free]
        self.moves = [0] * 3  # in the last cycles
        self.moved = self.opened = self.released = 0
        self.free = 0
        self.opens: list[int] = []
        self.releases: list[int] = []
        self.now = 0

    @property
    def done(self) -> bool:
        return self.released == len(self.values)

    def set(self, ctx: Any) -> None:
        states = self.states
        opens = self.moves[-2]
        if self.moves[-3]:
            ctx.set(states.only.as_value(), self.values[self.opened - 1])
        ctx.set(states.open, opens)
        begun = self.released < len(self.opens) and self.now >= self.opens[self.released] + 2
        rested = not self.releases or self.now > self.releases[-1] + 1
        release = begun and rested and self.wait.random() < 0.3
        ctx.set(states.release, release)
        if opens:
            self.opens.append(self.now)
            self.opened += 1
        if release:
            self.releases.append(self.now)
            self.released += 1

    def see(self, cycle: int, free: int) -> None:
        self.now = cycle + 1
        move = free and not any(self.moves[-2:]) and self.moved < len(self.values)
        self.moves.append(int(bool(move)))
        self.moved += self.moves[-1]


@pytest.mark.parametrize("seed", range(3))
def test_the_only_path_is_there_two_cycles_after_open_or_one_after_the_release(seed: int) -> None:
    source = random.Random(seed)
    states = PathStates(ONE)
    values = [source.getrandbits(states.only.shape().size) for _ in range(40)]
    bench = Bench(states)
    only = bench.add(Only(states, values, source))
    seen = bench.probe(o=states.o.as_value(), free=states.free)
    bench.run(extra=2)
    for number, value in enumerate(values):
        begin = only.opens[number] + 2
        if number:
            begin = max(begin, only.releases[number - 1] + 1)
        assert set(seen["o"][begin : only.releases[number] + 1]) == {value}
        assert seen["o"][begin - 1] != value
    waiting = [sum(c < cycle for c in only.opens) - sum(c < cycle for c in only.releases)
               for cycle in range(len(seen["free"]))]  # fmt: skip
    assert seen["free"] == [int(count < SLOTS) for count in waiting]
    assert len(ones(seen["free"])) < len(seen["free"])


def test_a_state_stays_until_the_next_is_asked_for() -> None:
    states = PathStates(SMALL)
    bench = Bench(states)
    script = [{"store": 1, "store_at": i, "state": i + 1} for i in range(3)] + [{"open": 1}]
    reads = [1, 2, 0]
    starts = [len(script) + 4 * i for i in range(3)]
    for path in reads:
        script += [{"read": 1, "path": path}, {}, {}, {}]
    names = ("store", "store_at", "open", "read", "path")
    signals = {name: getattr(states, name) for name in names} | {"state": states.state.as_value()}
    bench.script(signals, script)
    seen = bench.probe(o=states.o.as_value())
    bench.run()
    assert settling(seen["o"], starts, [path + 1 for path in reads]) == 1
