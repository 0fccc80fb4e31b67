# amaranth: UnusedElaboratable=no
"""NeuronUnit against `lbq_hw.numeric`, every value at its position."""

from __future__ import annotations

import random
import re
from itertools import product
from typing import Any

import numpy as np
import pytest
from core.harness import Bench, ones

from lbq_hw import numeric
from lbq_hw.core.neurons.compact_unit import CompactPositions, CompactUnit
from lbq_hw.core.neurons.neuron_unit import NeuronUnit, Positions
from lbq_hw.network.neuron import PARAMETERS, RULES, SUBTRACT, TO_ZERO


def wrap(value: int, bits: int) -> int:
    return (value + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


def run_unit(unit: NeuronUnit, cases: list[dict], **fixed: int) -> tuple[list[int], list[int]]:
    """`next_v` and `level` of each case; every input is given at its position."""
    at = unit.positions
    offsets = {"acc": at.acc, "bias": 1, "v": at.v, "theta": at.theta, "pooled": at.end}
    offsets |= {rule.name: at.theta for rule in PARAMETERS if hasattr(unit, rule.name)}
    steps: list[dict[str, Any]] = [dict(fixed) for _ in range(len(cases) + at.end + 1)]
    for i, case in enumerate(cases):
        for name, offset in offsets.items():
            steps[i + offset][name] = case.get(name, 0)
        for bit in range(at.decay_bits + 1):
            step = steps[i + at.decay(bit)]
            step["decay"] = step.get("decay", 0) | case.get("decay", 0) & 1 << bit
    names = {name for step in steps for name in step}
    bench = Bench(unit)
    bench.script({name: getattr(unit, name) for name in names}, steps)
    seen = bench.probe(next_v=unit.next_v, level=unit.level)
    bench.run()
    half = 1 << len(unit.v) - 1
    next_v = [(v + half) % (2 * half) - half for v in seen["next_v"]]
    return next_v[at.fire :][: len(cases)], seen["level"][at.end :][: len(cases)]


kinds = pytest.mark.parametrize("kind", [NeuronUnit, CompactUnit])


@kinds
@pytest.mark.parametrize(
    ("planes", "capacity"), [(1, 1), (2, 3), (3, 7), (3, 5), (4, 11), (5, 31), (5, 14)]
)
def test_every_membrane_and_threshold_of_five_bits_gives_its_level(
    planes: int, capacity: int, kind: type[NeuronUnit]
) -> None:
    cases = [
        {"bias": u, "theta": theta, "reset": (7 * theta) % 32 - 16}
        for u, theta in product(range(-16, 16), range(1, 16))
    ]
    sizes = {"acc_bits": 4, "membrane_bits": 5, "decay_bits": 1, "shift_bits": 0}
    unit = kind(**sizes, planes=planes)
    next_v, levels = run_unit(unit, cases, capacity=capacity, fire=1)
    u, theta, reset = (np.array([case[name] for case in cases]) for name in cases[0])
    golden = numeric.burst_level(u, theta, capacity)
    assert levels == golden.tolist()
    assert next_v == [wrap(int(v), 5) for v in u - reset * (golden > 0)]


def test_a_unit_that_keeps_no_membranes_shows_them_before_the_reset() -> None:
    cases = [{"bias": u, "theta": theta} for u, theta in product(range(-16, 16), range(1, 16))]
    sizes = {"acc_bits": 4, "membrane_bits": 5, "decay_bits": 1, "shift_bits": 0}
    unit = CompactUnit(**sizes, planes=3, keeps=False)
    next_v, levels = run_unit(unit, cases, capacity=5, fire=1)
    u, theta = (np.array([case[name] for case in cases]) for name in cases[0])
    assert levels == numeric.burst_level(u, theta, 5).tolist()
    assert next_v == u.tolist()


@kinds
@pytest.mark.parametrize("to_zero", [0, 1])
@pytest.mark.parametrize("fire", [0, 1])
def test_a_unit_with_zero_resets_resets_to_zero_only_where_it_is_asked(
    to_zero: int, fire: int, kind: type[NeuronUnit]
) -> None:
    cases = [
        {"bias": u, "theta": theta, "reset": (7 * theta) % 32 - 16}
        for u, theta in product(range(-16, 16), range(1, 16))
    ]
    sizes = {"acc_bits": 4, "membrane_bits": 5, "planes": 1, "decay_bits": 1, "shift_bits": 0}
    unit = kind(**sizes, rules=(SUBTRACT, TO_ZERO))
    next_v, _ = run_unit(unit, cases, capacity=1, fire=fire, to_zero=to_zero)
    for case, v in zip(cases, next_v, strict=True):
        fires = fire and case["bias"] >= case["theta"]
        after = 0 if to_zero else wrap(case["bias"] - case["reset"], 5)
        assert v == (after if fires else case["bias"])


@kinds
@pytest.mark.parametrize("to_zero", [0, 1])
@pytest.mark.parametrize("fire", [0, 1])
def test_a_unit_with_floors_leaves_no_less_than_the_floor_after_either_reset(
    to_zero: int, fire: int, kind: type[NeuronUnit]
) -> None:
    """All membranes, floors and thresholds of five bits whose difference fits, a reset that wraps
    around too; a readout has no floor."""
    cases = [
        {"bias": u, "theta": theta, "reset": wrap(reset, 5), "floor": floor}
        for u, theta, reset, floor in product(
            range(-16, 16), (1, 4, 15), (-1, 0, 3, 14, 20), (-16, -15, -7, -1, 0)
        )
        if u < theta or -16 <= u - reset < 16
    ]
    sizes = {"acc_bits": 4, "membrane_bits": 5, "planes": 1, "decay_bits": 1, "shift_bits": 0}
    unit = kind(**sizes, rules=RULES)
    next_v, _ = run_unit(unit, cases, capacity=1, fire=fire, to_zero=to_zero)
    for case, v in zip(cases, next_v, strict=True):
        expected = case["bias"]
        if fire and case["bias"] >= case["theta"]:
            expected = 0 if to_zero else wrap(case["bias"] - case["reset"], 5)
        assert v == (max(expected, case["floor"]) if fire else expected)


@kinds
@pytest.mark.parametrize("bits", [0, 1, 2, 3, 4])
def test_every_decay_of_every_membrane_is_floored(bits: int, kind: type[NeuronUnit]) -> None:
    pairs = list(product(range(-16, 16), range((1 << bits) + 1)))
    sizes = {"acc_bits": 4, "membrane_bits": 5, "planes": 1, "shift_bits": 0}
    unit = kind(**sizes, decay_bits=bits)
    cases = [{"v": v, "decay": m, "theta": 15} for v, m in pairs]
    next_v, _ = run_unit(unit, cases, fire=0)
    assert next_v == [numeric.decay(v, m, bits) for v, m in pairs]


@kinds
def test_sums_are_shifted_and_levels_pooled(kind: type[NeuronUnit]) -> None:
    source = random.Random(5)
    sizes = {"acc_bits": 6, "membrane_bits": 14, "planes": 3, "decay_bits": 3, "shift_bits": 2}
    unit = kind(**sizes)
    cases = [
        {
            "acc": source.randrange(-32, 32),
            "bias": source.randrange(-200, 200),
            "v": source.randrange(-500, 500),
            "decay": source.randrange(9),
            "theta": source.randrange(1, 200),
            "reset": source.randrange(-50, 200),
            "pooled": source.randrange(8),
        }
        for _ in range(300)
    ]
    next_v, levels = run_unit(unit, cases, shift=3, capacity=6, fire=1)
    for case, v, level in zip(cases, next_v, levels, strict=True):
        u = numeric.decay(case["v"], case["decay"], 3) + case["bias"] + (case["acc"] << 3)
        burst = int(numeric.burst_level(np.array(u), np.array(case["theta"]), 6))
        assert v == u - case["reset"] * (burst > 0)
        assert level == max(burst, case["pooled"])


@pytest.mark.parametrize(
    ("kind", "planes", "decay_bits", "theta", "fire", "loop", "end"),
    [
        (NeuronUnit, 1, 0, 3, 4, 3, 6),
        (NeuronUnit, 3, 1, 3, 4, 3, 8),
        (NeuronUnit, 3, 2, 4, 5, 4, 9),
        (NeuronUnit, 5, 4, 5, 6, 5, 12),
        (CompactUnit, 1, 0, 1, 2, 3, 2),
        (CompactUnit, 2, 1, 1, 2, 3, 3),
        (CompactUnit, 3, 1, 1, 2, 3, 3),
        (CompactUnit, 3, 2, 2, 3, 4, 4),
        (CompactUnit, 5, 4, 3, 4, 5, 6),
    ],
)
def test_positions_are_those_of_the_pipeline(
    kind: type[NeuronUnit], planes: int, decay_bits: int, theta: int, fire: int, loop: int, end: int
) -> None:
    shape = {"planes": planes, "decay_bits": decay_bits}
    at = Positions(**shape) if kind is NeuronUnit else CompactPositions(**shape)
    assert (at.theta, at.fire, at.loop, at.end) == (theta, fire, loop, end)
    assert CompactPositions(**shape, keeps=False).fire == CompactPositions(**shape).theta
    unit = kind(acc_bits=4, membrane_bits=8, shift_bits=0, **shape)
    assert unit.positions == at
    bench = Bench(unit)
    # One current that fires, of a channel that is at position p in cycle `zero` + p.
    zero = 20
    steps = [
        {"bias": 0, "theta": 100, "reset": 7, "capacity": 1, "fire": 1}
        for _ in range(zero + end + 2)
    ]
    steps[zero + 1]["bias"] = 20
    steps[zero + theta]["theta"] = 20
    bench.script({name: getattr(unit, name) for name in steps[0]}, steps)
    seen = bench.probe(next_v=unit.next_v, level=unit.level)
    bench.run()
    assert ones(seen["next_v"][zero:]) == [fire]
    assert ones(seen["level"][zero:]) == [end]
    assert seen["next_v"][zero + fire] == 20 - 7


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"acc_bits": 0}, ValueError, "acc_bits must be at least 1, not 0"),
        ({"membrane_bits": 2}, ValueError, "membrane_bits must be at least planes, not 2"),
        ({"planes": 1.0}, TypeError, "planes must be an integer, not 1.0"),
        ({"decay_bits": -1}, ValueError, "decay_bits must be at least 0, not -1"),
        ({"shift_bits": -1}, ValueError, "shift_bits must be at least 0, not -1"),
    ],
)
def test_sizes_that_make_no_sense_are_refused(change: dict, error: type, text: str) -> None:
    sizes = {"acc_bits": 4, "membrane_bits": 8, "planes": 3, "decay_bits": 1, "shift_bits": 2}
    with pytest.raises(error, match=f"^{re.escape(text)}$"):
        NeuronUnit(**sizes | change)
