# amaranth: UnusedElaboratable=no
"""PartialSums against a list of words: what is added, what is left, in which cycle."""

from __future__ import annotations

import random

import pytest
from amaranth import Value
from core.harness import Bench

from lbq_hw.core.neurons.partial_sums import LATENCY, PartialSums

UNITS, ACC_BITS, BITS = 2, 12, 9
LOW, HIGH = -(1 << BITS - 1), 1 << BITS - 1


@pytest.mark.parametrize(("groups", "steps"), [(4, 3), (1, 5), (2, 1), (1, 1)])
def test_each_pass_adds_what_the_one_before_has_left(groups: int, steps: int) -> None:
    block = PartialSums(
        units=UNITS, groups=groups, acc_bits=ACC_BITS, words=groups * steps, bits=BITS
    )
    source = random.Random(groups)
    names = ("begin", "step", "valid", "group", "sums", "add", "leave")
    script: list[dict] = []
    expected: dict[int, list[int]] = {}
    held = [[0] * UNITS for _ in range(groups * steps)]
    # What is left must fit; what is only added need not.
    for add, leave in ((0, 1), (1, 1), (1, 1), (1, 0), (0, 0), (1, 1), (1, 0)):
        layer = {"add": add, "leave": leave}
        script.append(layer | {"begin": 1})
        updates = 1 if leave else 2
        for step in range(steps):
            script += [layer] * source.choice([0, 0, 2])
            script.append(layer | {"step": 1})
            for group in list(range(groups)) * updates:
                script += [layer] * source.choice([0, 0, 0, 1])
                before = held[step * groups + group] if add else [0] * UNITS
                totals = [source.randrange(LOW, HIGH) for _ in range(UNITS)]
                parts = [total - part for total, part in zip(totals, before, strict=True)]
                sums = sum((part & (1 << ACC_BITS) - 1) << ACC_BITS * i
                           for i, part in enumerate(parts))  # fmt: skip
                expected[len(script) + LATENCY] = totals
                if leave:
                    held[step * groups + group] = totals
                script.append(layer | {"valid": 1, "group": group, "sums": sums})
        script += [layer] * 3
    bench = Bench(block)
    bench.script({name: Value.cast(getattr(block, name)) for name in names}, script)
    seen = bench.probe(**{f"o{i}": Value.cast(block.o[i]) for i in range(UNITS)})
    bench.run(extra=LATENCY)
    found = {cycle: [seen[f"o{i}"][cycle] for i in range(UNITS)] for cycle in expected}
    assert found == expected
