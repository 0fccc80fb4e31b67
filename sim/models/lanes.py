# amaranth: UnusedElaboratable=no
"""A model of LaneArray that sums Python integers, and random events for it."""

from __future__ import annotations

import random
from typing import Any

from lbq_hw.core.lanes.spread_lanes import PairLanes, TapeLanes


class _Roomy:
    """Drives the copies of ``room`` that come from the neuron units in a core."""

    def elaborate(self: Any, platform: Any) -> Any:
        m = super().elaborate(platform)  # pyright: ignore[reportAttributeAccessIssue]
        m.d.comb += self.rooms.eq(self.room.replicate(len(self.rooms)))
        return m


class Tape(_Roomy, TapeLanes):
    """Lanes with weight rows from a tape."""


class Pairs(_Roomy, PairLanes):
    """Lanes with pairs of weight rows from a tape."""


def golden(events: list[dict], weights: list[list[int]], acc_bits: int) -> list[list[int]]:
    """Sums of every step."""
    acc = [0] * len(weights[0])
    sums = []
    for event in events:
        for lane, value in enumerate(acc):
            start = 0 if event["clear"] else 2 * value if event["double"] else value
            acc[lane] = start + (weights[event["row"]][lane] if event["mask"] >> lane & 1 else 0)
        if event["end"]:
            half = 1 << (acc_bits - 1)
            sums.append([(value + half) % (2 * half) - half for value in acc])
    return sums


def random_weights(source: random.Random, *, lanes: int, rows: int, weight_bits: int) -> list:
    half = 1 << (weight_bits - 1)
    return [[source.randrange(-half, half) for _ in range(lanes)] for _ in range(rows)]


def packed(rows: list[list[int]], weight_bits: int) -> list[int]:
    """Each row as one number, lane 0 in the lowest bits."""
    mask = (1 << weight_bits) - 1
    return [sum((value & mask) << weight_bits * i for i, value in enumerate(row)) for row in rows]


def random_events(source: random.Random, steps: int, *, lanes: int, rows: int) -> list[dict]:
    """Steps of 1 to 12 events: some of one event, most with doublings and partial masks."""
    events = []
    for _ in range(steps):
        count = source.choice((1, 1, 2, source.randrange(3, 13)))
        for i in range(count):
            end = i == count - 1
            mask = source.choice((-1 % (1 << lanes), source.getrandbits(lanes), 0))
            event = {"row": source.randrange(rows), "mask": 0 if end else mask}
            event |= {
                "clear": int(i == 0),
                "double": int(i > 0 and source.randrange(2)),
                "end": end,
            }
            events.append(event)
    return events


def in_pairs(source: random.Random, events: list[dict], rows: int) -> list[dict]:
    """The same events with an even and an odd row each; one, both or none of them are added."""
    found = []
    for event in events:
        rest = {name: value for name, value in event.items() if name != "row"}
        halves = [source.randrange(rows // 2) for _ in range(2)]
        found.append(rest | {"rows": halves, "adds": source.randrange(4)})
    return found


def golden_pairs(events: list[dict], weights: list[list[int]], acc_bits: int) -> list[list[int]]:
    """Sums of steps: each event counts as two, one row after the other; the second has the end."""
    single = []
    for event in events:
        even, odd = ({"row": 2 * half + i, "mask": event["mask"] * (event["adds"] >> i & 1)}
                     for i, half in enumerate(event["rows"]))  # fmt: skip
        first = {"clear": event["clear"], "double": event["double"], "end": 0}
        single += [even | first, odd | {"clear": 0, "double": 0, "end": event["end"]}]
    return golden(single, weights, acc_bits)
