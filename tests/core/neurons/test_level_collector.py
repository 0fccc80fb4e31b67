# amaranth: UnusedElaboratable=no
"""LevelCollector against bit planes made level by level."""

from __future__ import annotations

import random
from typing import Any

import pytest
from core.harness import Bench

from lbq_hw.core.neurons.level_collector import CompactCollector, LevelCollector
from lbq_hw.core.neurons.updates import Group
from lbq_hw.core.payload import WriteInfo

SIZES = [
    {"lanes": 8, "units": 2, "planes": 3, "ends": 9},
    {"lanes": 8, "units": 2, "planes": 3, "ends": 8},
    {"lanes": 4, "units": 4, "planes": 1, "ends": 5},
    {"lanes": 8, "units": 1, "planes": 4, "ends": 6},
    {"lanes": 16, "units": 2, "planes": 3, "ends": 3},
]


def schedule(source: random.Random, groups: int, updates: int) -> dict[int, dict]:
    """Groups by the cycle in which they are at position 0: updates at least `groups` cycles apart.

    Each has the number of its update, for the test alone.
    """
    found: dict[int, dict] = {}
    cycle = 2
    for number in range(updates):
        kind = {"emit": int(source.random() < 0.7), "restart": source.randrange(2)}
        for group in range(groups):
            last = int(group == groups - 1)
            found[cycle + group] = {"valid": 1, "last": last, "number": number} | kind
        cycle += groups + source.choice((0, 0, 1, 5))
    return found


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", [LevelCollector, CompactCollector])
def test_planes_are_offered_after_the_last_levels_of_an_update(
    sizes: dict, seed: int, kind: type[LevelCollector]
) -> None:
    """A cycle later, and they stay; a compact collector offers them at once, plane k in cycle k + 1
    after that.
    """
    compact, source = kind is CompactCollector, random.Random(seed)
    lanes, units, planes, ends = (sizes[name] for name in ("lanes", "units", "planes", "ends"))
    group = Group(groups=lanes // units, timesteps=4, param_bits=4)
    write = WriteInfo(lanes=lanes, word=32, address_bits=7)
    block = kind(**sizes, group=group, write=write)
    sent = schedule(source, lanes // units, 40)
    places = [
        {"addr": source.randrange(128), "place": source.randrange(4), "first": source.randrange(2)}
        for _ in range(40)
    ]
    script: list[dict] = []
    expected: dict[int, dict] = {}
    moves = []  # cycles after which the planes may change
    levels: list[int] = []
    for cycle in range(max(sent) + ends + 3):
        words = []
        for position in range(ends + 1):
            at = sent.get(cycle - position, {})
            known = {name: at[name] for name in ("valid", "last", "emit", "restart") if at}
            noise = {} if at else {"last": 1, "emit": 1}  # of a group that is none
            words.append(group.const(known | noise).as_bits())
        here, ended = sent.get(cycle), sent.get(cycle - ends)
        place = dict(places[here["number"]]) if here else {"addr": source.randrange(128)}
        given = [source.randrange(1 << planes) for _ in range(units)]
        script.append(
            {
                "at": sum(word << group.size * i for i, word in enumerate(words)),
                "write": write.const(place).as_bits(),
                "levels": sum(level << planes * i for i, level in enumerate(given)),
            }
        )
        if ended and ended["emit"]:
            moves.append(cycle)
            levels += given
            if ended["last"]:
                bits = [sum((v >> k & 1) << c for c, v in enumerate(levels)) for k in range(planes)]
                expected[cycle + (not compact)] = {
                    "planes": bits,
                    "restart": ended["restart"],
                    "write": places[ended["number"]],
                }
                levels = []
    bench = Bench(block)
    signals = {name: getattr(block, name).as_value() for name in ("at", "write", "levels")}
    bench.script(signals, script)
    offered = bench.monitor(block.o)
    ports: Any = block
    planes_of = ports.o.payload.planes if not compact else ports.planes
    seen = bench.probe(planes=planes_of.as_value())
    bench.run(extra=planes)
    found = dict(zip(offered.cycles, offered.payloads, strict=True))
    assert len(expected) > 10
    if compact:
        for cycle, payload in found.items():
            after = seen["planes"][cycle + 1 :]
            payload["planes"] = [after[k] >> lanes * k & (1 << lanes) - 1 for k in range(planes)]
        assert found == expected
        return
    assert found == expected
    for cycle, told in expected.items():
        until = next((move for move in moves if move >= cycle), len(script) - 1)
        word = sum(plane << lanes * k for k, plane in enumerate(told["planes"]))
        assert set(seen["planes"][cycle : until + 1]) == {word}
