"""Segments and runs at their place, from the records alone; the states of paths are any numbers."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

from lbq_hw import isa
from lbq_hw.config import CoreConfig
from lbq_hw.core.walk.path_store import SLOTS
from lbq_hw.core.walk.places import RUN_FIELDS, SCAN_FIELDS, PathState, paths_ride
from lbq_hw.sim.models.programs import Tables, draw_tables
from lbq_hw.sim.models.traffic import Stall, never

END = {"end": 1, "none": 1}


def decoded(config: CoreConfig, tables: Tables) -> dict[str, list[dict[str, int]]]:
    return {
        name: [isa.TABLES[name].decode(config, word) for word in words]
        for name, words in tables.items()
    }


def random_tables(config: CoreConfig, seed: int, segments: int = 1) -> Tables:
    """Tables of a layer; from two segments on, of several paths where a layer can have them."""
    paths = min(2, config.layer_paths) if segments > 1 else 1
    while True:
        tables = draw_tables(config, seed, layers=1)
        if len(tables["segments"]) >= segments and len(tables["paths"]) >= paths:
            return tables
        seed += 1


def random_states(config: CoreConfig, source: random.Random, paths: int) -> list[dict[str, int]]:
    """A `PathState` of each path."""
    return [
        {
            "row": source.randint(-9, 20),
            "col": source.randint(-20, 40),
            "frame": source.randrange(60),
            "tile": source.randrange(config.weight_rows),
            "number": source.randrange(config.param_tiles),
        }
        for _ in range(paths)
    ]


def packed_state(config: CoreConfig, state: dict[str, int]) -> int:
    return PathState(config).const(state).as_bits()


def scan_words(paths: Iterable[dict[str, int]], layout: Any) -> list[int]:
    """The `SCAN_FIELDS` of paths, as a memory holds them."""
    return [layout.const({name: path[name] for name in SCAN_FIELDS}).as_bits() for path in paths]


def fetched(
    records: dict[str, list[dict[str, int]]], states: list[dict[str, int]]
) -> list[dict[str, Any]]:
    """The `FetchedSegment`s of a step, from the layer's paths and segments."""
    found = [
        {
            "end": 0,
            "none": 0,
            "base": segment["base"],
            "weight": segment["weight"],
            "exponent": segment["exponent"],
            "path": {name: records["paths"][segment["path"]][name] for name in SCAN_FIELDS},
            "state": states[segment["path"]],
        }
        for segment in records["segments"]
    ]
    return closed(found)


def closed(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Items of a step: the last has its end."""
    return [*items[:-1], items[-1] | {"end": 1}]


def placed(
    config: CoreConfig, segment: dict[str, Any], runs: list[dict[str, int]]
) -> list[dict[str, int]]:
    """The `PlacedRun`s of a segment."""
    path, state = segment["path"], segment["state"]
    found = []
    for run in runs[path["run_first"] : path["run_last"] + 1]:
        weight = segment["weight"] + state["tile"] + (0 if path["identity"] else run["weight"])
        found.append(
            {
                "end": 0,
                "none": 0,
                "base": segment["base"] + state["frame"],
                "top": state["row"] + run["row"],
                "left": state["col"] + run["column"],
                "length_last": run["length_last"],
                "number": state["number"],
                "weight": weight % (1 << config.weight_address_bits),
                "exponent": segment["exponent"],
                "path": {name: path[name] for name in RUN_FIELDS},
            }
        )
    return closed(found) if segment["end"] else found


def riding(config: CoreConfig, items: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Items as a stream of the core has them: without their path where it does not ride along."""
    if paths_ride(config):
        return list(items)
    return [{name: item[name] for name in item if name != "path"} for item in items]


def only_path(config: CoreConfig, paths: list[dict[str, int]]) -> dict[str, int]:
    """What a layer's only path is on its port; of several, all 0."""
    if paths_ride(config):
        return {}
    [path] = paths
    return {name: path[name] for name in SCAN_FIELDS}


def only_ends(payloads: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of an end alone, nothing else has a meaning."""
    return [END if payload["none"] else payload for payload in payloads]


class Store:
    """Opens steps, one per list of states, while there is a slot; answers a `FetchPort`.

    `block` has the port ``paths`` and ``open``; the first step is opened after `after` cycles.
    """

    def __init__(
        self, block: Any, config: CoreConfig, paths: list[dict[str, int]],
        states: list[list[dict]], *, after: int, stall: Stall = never,
    ) -> None:  # fmt: skip
        self.block, self.config, self.states = block, config, states
        self.after, self.stall = after, stall
        port = block.paths
        self.words = scan_words(paths, port.fields.shape())
        self.samples = [port.en, port.slot, port.path, port.release]
        self.slots: list[list[dict]] = [[] for _ in range(SLOTS)]
        self.released = self.fields = self.state = 0
        self.opening = False
        self.opens: list[int] = []

    @property
    def done(self) -> bool:
        return self.released == len(self.states)

    def set(self, ctx: Any) -> None:
        ctx.set(self.block.paths.fields.as_value(), self.fields)
        ctx.set(self.block.paths.state.as_value(), self.state)
        count = len(self.opens)
        self.after -= 1
        room = count < len(self.states) and count - self.released < SLOTS
        self.opening = self.after < 0 and room and not self.stall()
        ctx.set(self.block.open, self.opening)

    def see(self, cycle: int, asked: int, slot: int, path: int, release: int) -> None:
        if asked:
            states = self.slots[slot]
            self.fields = self.words[path] if path < len(self.words) else 0
            self.state = packed_state(self.config, states[path]) if path < len(states) else 0
        self.released += release
        if self.opening:
            self.slots[len(self.opens) % SLOTS] = self.states[len(self.opens)]
            self.opens.append(cycle)
