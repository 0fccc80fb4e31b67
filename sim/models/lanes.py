"""LaneArray as sums of Python's integers, and random events for it."""

from __future__ import annotations

import random


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
    """Rows as one number each, lane 0 lowest."""
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
