# amaranth: UnusedElaboratable=no
"""SummaryFlags against a list of flags, in the cycles in which marks are seen."""

from __future__ import annotations

import random

import pytest
from core.harness import Bench

from lbq_hw.core.memory.flags import SpreadFlags, SummaryFlags

WORDS = 8


@pytest.mark.parametrize("late", [False, True], ids=["soon", "late"])
@pytest.mark.parametrize("summary", [1, 2, 8])
@pytest.mark.parametrize("rate", [0.5, 0.9, 1.0])
def test_a_mark_is_seen_two_cycles_later_or_three(summary: int, late: bool, rate: float) -> None:
    source = random.Random(f"{summary} {late} {rate}")
    block = (SpreadFlags if late else SummaryFlags)(words=WORDS, summary=summary)
    flags, marks, script = [0] * WORDS, [], []
    expected = []
    for cycle in range(400):
        mark = {"valid": int(source.random() < rate), "addr": source.randrange(WORDS)}
        mark |= {"first": source.randrange(2), "any_set": source.randrange(2)}
        marks.append(mark)
        seen = cycle - (3 if late else 2)  # the youngest mark that a read of this cycle sees
        if seen >= 0 and marks[seen]["valid"]:
            old = marks[seen]
            kept = flags[old["addr"]] if not old["first"] else 0
            flags[old["addr"]] = old["any_set"] | kept
        span = source.randrange(WORDS // summary)
        at = span * summary
        expected.append(sum(flag << i for i, flag in enumerate(flags[at : at + summary])))
        script.append(mark | {"span": span, "en": 1})
    bench = Bench(block)
    names = ("valid", "addr", "first", "any_set")
    read = {"span": block.summary.addr, "en": block.summary.en}
    bench.script({name: getattr(block, name) for name in names} | read, script)
    history = bench.probe(data=block.summary.data)["data"]
    bench.run(extra=1)
    assert history[1 : 1 + len(expected)] == expected
