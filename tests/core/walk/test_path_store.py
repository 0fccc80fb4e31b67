# amaranth: UnusedElaboratable=no
"""OnePath and ManyPaths against lists in Python: what is there when, and when a slot is free."""

from __future__ import annotations

import random
from collections import deque
from typing import Any

import pytest
from amaranth import Value
from core.harness import Bench, ones, settling

from lbq_hw.config import CoreConfig
from lbq_hw.core.walk.path_store import SLOTS, ManyPaths, OnePath, path_store
from lbq_hw.core.walk.places import MOVE_FIELDS, SCAN_FIELDS, SEEN
from lbq_hw.sim.models.programs import SHAPES, SMALL

ONE = SHAPES[2]
CORES = pytest.mark.parametrize("config", [ONE, SMALL], ids=["one", "many"])
Store = OnePath | ManyPaths


def random_bits(source: random.Random, layout: Any) -> int:
    return source.getrandbits(layout.size)


def view(layout: Any, bits: int) -> dict[str, int]:
    """Members of packed bits, as bits."""
    return {name: bits >> field.offset & (1 << field.width) - 1 for name, field in layout}


def state_of(store: Store, field_of_view: int, tile: int) -> int:
    """The packed `PathState` of a field of view."""
    seen = view(store.move.new.shape(), field_of_view)
    layout = store.fetch.state.shape()
    values = {name: seen[name] for name in SEEN} | {"number": tile}
    return sum(values[name] << field.offset for name, field in layout)


def test_cores_whose_layers_have_one_path_need_no_memory() -> None:
    for config in SHAPES:
        assert path_store(config) is (OnePath if config.layer_paths == 1 else ManyPaths)


@CORES
def test_fields_of_a_path_are_there_in_the_cycle_after_it_is_asked_for(config: CoreConfig) -> None:
    source = random.Random(1)
    store = path_store(config)(config)
    layout = store.load.record.shape()
    records = [random_bits(source, layout) for _ in range(config.layer_paths)]
    bench = Bench(store)
    script: list[dict] = [
        {"en": 1, "path": i, "record": record} for i, record in enumerate(records)
    ]
    load = store.load
    signals = {"en": load.en, "path": load.path, "record": load.record.as_value()}
    order = [source.randrange(config.layer_paths) for _ in range(12)]
    held = {"record": records[-1]}
    asks = [{}] * len(script)
    for path in order:  # a read, then two cycles without one
        asks += [{"en": 1, "path": path}, {}, {}]
    bench.script(signals, script + [held] * (len(asks) - len(script)))
    for port in (store.move, store.fetch):
        bench.script({"en": port.en, "path": port.path}, asks)
    moves, fields = store.move.move_fields, store.fetch.fields
    found = {f"move_{name}": moves[name] for name in MOVE_FIELDS}
    found |= {f"scan_{name}": fields[name] for name in SCAN_FIELDS}
    found |= {f"only_{name}": store.scan_fields[name] for name in SCAN_FIELDS}
    seen = bench.probe(**{name: Value.cast(value).as_unsigned() for name, value in found.items()})
    bench.run()
    for number, path in enumerate(order):
        at = len(script) + 3 * number + 1
        values = view(layout, records[path])
        for cycle in range(at, at + 3 if number + 1 < len(order) else at + 1):
            assert [seen[f"move_{name}"][cycle] for name in MOVE_FIELDS] == [
                values[name] for name in MOVE_FIELDS
            ]
            for kind in ("scan", "only") if config is ONE else ("scan",):
                assert [seen[f"{kind}_{name}"][cycle] for name in SCAN_FIELDS] == [
                    values[name] for name in SCAN_FIELDS
                ]


@CORES
def test_a_field_of_view_is_the_old_one_from_the_cycle_after_it_is_done(config: CoreConfig) -> None:
    source = random.Random(2)
    store = path_store(config)(config)
    move, paths = store.move, config.layer_paths
    current = [random_bits(source, move.new.shape()) for _ in range(paths)]
    script: list[dict] = [
        {"done": 1, "done_path": i, "new": value} for i, value in enumerate(current)
    ]
    starts, expected = [], []
    for _ in range(40):
        path = source.randrange(paths)
        starts.append(len(script))
        expected.append(current[path])
        script += [{"en": 1, "path": path}, {}]
        current[path] = random_bits(source, move.new.shape())
        script.append({"done": 1, "done_path": path, "new": current[path]})
    bench = Bench(store)
    signals = {name: getattr(move, name) for name in ("en", "path", "done", "done_path")}
    bench.script(signals | {"new": move.new.as_value()}, script)
    seen = bench.probe(old=move.old.as_value())
    bench.run(extra=1)
    # From the next cycle to that in which the path is done.
    for start, value in zip(starts, expected, strict=True):
        assert seen["old"][start + 1 : start + 3] == [value, value]
    if store.holds:
        assert seen["old"][starts[-1] + 3] == current[0]


class Steps:
    """Moves all paths while a slot is free, opens their step, asks for paths, releases the step.

    As in `Walker` and `SegmentFetch`: a path is done two cycles after it was named, and the step is
    open in the cycle of the last; its paths are asked for from the next cycle on.
    """

    def __init__(self, store: Store, config: CoreConfig, seed: int, count: int) -> None:
        self.store, self.count = store, count
        self.paths, self.tiles = config.layer_paths, config.param_tiles
        self.samples = [store.fetch.state.as_value()]
        self.random = random.Random(seed)
        self.moves: deque[int] = deque([0, 0])  # numbers of the paths named, from 1 on
        self.slots: list[list[int]] = [[0] * self.paths for _ in range(SLOTS)]
        self.named = self.opened = self.released = self.now = 0
        self.opens: list[int] = []
        self.wanted: int | None = None
        self.next_wanted: int | None = None
        self.checked = 0

    @property
    def done(self) -> bool:
        return self.released == self.count

    def set(self, ctx: Any) -> None:
        store, source = self.store, self.random
        done = self.moves.popleft()
        ctx.set(store.move.done, done > 0)
        if done:
            value = random_bits(source, store.move.new.shape())
            tile = source.randrange(self.tiles)
            ctx.set(store.move.done_path, done - 1)
            ctx.set(store.move.new.as_value(), value)
            ctx.set(store.tile, tile)
            self.slots[self.opened % SLOTS][done - 1] = state_of(store, value, tile)
        opens = done == self.paths
        ctx.set(store.open, opens)
        self._ask(ctx)
        if opens:
            self.opens.append(self.now)
            self.opened += 1
        # The next step is named only when the one before is open.
        if self.named == 0:
            go = ctx.get(store.free) and not opens and not any(self.moves)
            self.named = int(go and self.opened < self.count and source.random() < 0.8)
        if self.named:
            self.moves.append(self.named)
            self.named = (self.named + 1) % (self.paths + 1)
        else:
            self.moves.append(0)

    def _ask(self, ctx: Any) -> None:
        """Ask for a path of the step that was opened first, and sometimes release it."""
        fetch, source = self.store.fetch, self.random
        begun = self.released < len(self.opens) and self.now > self.opens[self.released]
        release = begun and self.now > self.opens[self.released] + 1 and source.random() < 0.2
        ask = begun and not release and source.random() < 0.6
        ctx.set(fetch.en, ask)
        ctx.set(fetch.release, release)
        if ask:
            slot, path = self.released % SLOTS, source.randrange(self.paths)
            ctx.set(fetch.slot, slot)
            ctx.set(fetch.path, path)
            self.next_wanted = self.slots[slot][path]
        else:
            self.next_wanted = None if release else self.wanted
        self.released += release

    def see(self, cycle: int, state: int) -> None:
        if self.wanted is not None:
            assert state == self.wanted
            self.checked += 1
        self.wanted = self.next_wanted
        self.now = cycle + 1


@pytest.mark.parametrize(
    "config",
    [ONE, SMALL, ONE.with_external(), SMALL.with_external()],
    ids=["one", "many", "one-external", "many-external"],
)
@pytest.mark.parametrize("seed", range(3))
def test_a_state_is_there_in_the_cycle_after_it_is_asked_for_and_stays(
    config: CoreConfig, seed: int
) -> None:
    store = path_store(config)(config)
    bench = Bench(store)
    steps = bench.add(Steps(store, config, seed, count=40))
    seen = bench.probe(free=store.free, open=store.open, release=store.fetch.release)
    bench.run(extra=2)
    assert steps.checked > 60
    kept, at_once = 0, not config.external
    for free, opens, released in zip(seen["free"], seen["open"], seen["release"], strict=True):
        assert free == (kept < SLOTS or (at_once and released))
        kept += opens - released
    assert len(ones(seen["free"])) < len(seen["free"])


def test_the_only_path_is_there_two_cycles_after_open_or_one_after_the_release() -> None:
    store = OnePath(ONE)
    move, fetch = store.move, store.fetch
    source = random.Random(4)
    values = [random_bits(source, move.new.shape()) for _ in range(3)]
    script: list[dict] = [{} for _ in range(24)]
    for cycle, value in ((1, values[0]), (8, values[1]), (16, values[2])):
        script[cycle] |= {"done": 1, "open": 1, "new": value, "tile": 1}
    releases = [12, 14]  # the second step waits for the first, the third for nothing
    for cycle in releases:
        script[cycle]["release"] = 1
    bench = Bench(store)
    signals = {"done": move.done, "new": move.new.as_value(), "open": store.open}
    bench.script(signals | {"tile": store.tile, "release": fetch.release}, script)
    seen = bench.probe(state=fetch.state.as_value())
    bench.run()
    states = [state_of(store, value, 1) for value in values]
    assert settling(seen["state"][1:14], [0], [states[1]]) == 12
    assert seen["state"][2:4] == [0, states[0]]
    assert seen["state"][12:14] == states[:2]
    assert seen["state"][17:19] == states[1:]
