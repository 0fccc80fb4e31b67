# amaranth: UnusedElaboratable=no
"""A word scanner against a model of its contract."""

from __future__ import annotations

import pytest
from core.harness import Bench, Driver
from core.streaming.words import config, events_of, words

from lbq_hw.core.streaming.scanner import WordScanner
from lbq_hw.sim.models.traffic import never, stalls


def without_row(event: dict[str, int]) -> dict[str, int]:
    """An event without lanes may have any row."""
    return event | {"row": event["row"] if event["mask"] else 0}


@pytest.mark.parametrize("identities", [0, 1])
@pytest.mark.parametrize("rate", [0, 0.5])
def test_a_scanner_makes_an_event_of_each_bit(identities: int, rate: float) -> None:
    c = config(identities)
    given = words(c, 40, 1)
    expected = [event for word in given for event in events_of(c, word)]
    bench = Bench(WordScanner(c))
    bench.add(Driver(bench.block.i, given, stalls(2, rate) if rate else never))
    taken = bench.monitor(bench.block.o, len(expected), stall=stalls(3, rate) if rate else never)
    bench.run()
    assert [without_row(e) for e in taken.payloads] == [without_row(e) for e in expected]
    if not rate:  # a cycle per event, and one per word of 0 that does not end a tile
        silent = [max(1, len(events_of(c, word))) for word in given]
        assert taken.cycles[-1] == sum(silent)
