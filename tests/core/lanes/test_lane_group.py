# amaranth: UnusedElaboratable=no
"""Groups of lanes against sums in Python's integers; `test_lane_array.py` has them as an array."""

from __future__ import annotations

import random

import pytest
from core.harness import Bench

from lbq_hw.core.lanes.lane_group import LaneGroup, PairLaneGroup, SpreadLaneGroup

SIZES = {"lanes": 3, "mask_bits": 3, "weight_bits": 4, "acc_bits": 10}


def wrapped(value: int) -> int:
    return (value + 512) % 1024 - 512


@pytest.mark.parametrize("kind", [LaneGroup, SpreadLaneGroup, PairLaneGroup])
@pytest.mark.parametrize("stages", [1, 2, 3])
def test_weights_are_added_in_the_cycle_after_their_action(
    kind: type[LaneGroup], stages: int
) -> None:
    source = random.Random(stages)
    pairs = kind is PairLaneGroup
    group = kind(**SIZES, stages=stages)
    count, late = 60, stages + pairs
    script: list[dict] = [{"room": 1} for _ in range(count + late + 1)]
    sums, expected = [0, 0, 0], []
    for cycle in range(count):
        mask, adds = source.getrandbits(3), source.getrandbits(2)
        clear = int(cycle == 0 or source.random() < 0.2)
        double = int(not clear and source.random() < 0.2)
        rows = [[source.randrange(-8, 8) for _ in range(3)] for _ in range(1 + pairs)]
        packed = [sum((w & 15) << 4 * i for i, w in enumerate(row)) for row in rows]
        script[cycle] |= {"mask": mask} | ({"adds": adds} if pairs else {})
        script[cycle + stages]["weights"] = sum(word << 12 * i for i, word in enumerate(packed))
        script[cycle + late] |= {"action": 1 | clear << 1 | double << 2}
        for lane in range(3):
            given = [row[lane] for i, row in enumerate(rows) if not pairs or adds >> i & 1]
            before = 0 if clear else sums[lane] << double
            sums[lane] = wrapped(before + (sum(given) if mask >> lane & 1 else 0))
        expected.append(list(sums))
    bench = Bench(group)
    names = {"room", "mask", "weights", "action"} | ({"adds"} if pairs else set())
    signals = {name: getattr(group, name) for name in names}
    signals |= {name: signals[name].as_value() for name in ("weights", "action")}
    bench.script(signals, script)
    seen = bench.probe(**{f"s{i}": group.sums[i] for i in range(3)})
    bench.run(extra=2)
    first = late + 2
    found = [[seen[f"s{i}"][first + cycle] for i in range(3)] for cycle in range(count)]
    assert found == expected


@pytest.mark.parametrize("kind", [LaneGroup, SpreadLaneGroup])
def test_a_finished_sum_waits_for_room(kind: type[LaneGroup]) -> None:
    group = kind(**SIZES, stages=1)
    bench = Bench(group)
    script = [{"room": 0, "mask": 0, "weights": 0, "action": 0} for _ in range(12)]
    script[0]["mask"] = 7
    script[1] |= {"weights": 0x321, "action": 0b1011}  # valid, clear, end
    script[2] |= {"weights": 0x777, "action": 0b0001}
    script[6]["room"] = 1
    signals = {name: getattr(group, name) for name in script[0]}
    signals |= {name: signals[name].as_value() for name in ("weights", "action")}
    bench.script(signals, script)
    seen = bench.probe(advance=group.advance, ends=group.ends, sum=group.sums[0])
    bench.run()
    assert seen["ends"][2] == 1
    assert seen["advance"] == [1, 1, 1, 0, 0, 0, 0, *[1] * (len(seen["advance"]) - 7)]
    assert seen["sum"][3:8] == [1] * 5
