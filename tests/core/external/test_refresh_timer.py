# amaranth: UnusedElaboratable=no
"""When refreshes are due, cycle by cycle."""

from __future__ import annotations

import random

from core.harness import Bench

from lbq_hw.chips.timing import ReaderTiming
from lbq_hw.core.external.refresh_timer import RefreshTimer

TIMING = ReaderTiming(page_words=64, first=8, rest=-4, refresh=6, interval=25, elapsed=7)


def watch(steps: list[dict[str, int]]) -> dict[str, list[int]]:
    timer = RefreshTimer(TIMING)
    bench = Bench(timer)
    bench.script({name: getattr(timer, name) for name in ("counts", "made")}, steps)
    names = ("tick", "due", "phase")
    history = bench.probe(**{name: getattr(timer, name) for name in names})
    bench.run(limit=len(steps) + 1)
    return history


def places(history: dict[str, list[int]], name: str) -> list[int]:
    return [cycle for cycle, value in enumerate(history[name]) if value]


def test_a_tick_comes_once_in_an_interval_and_the_phase_so_much_later() -> None:
    history = watch([{}] * 200)
    ticks = places(history, "tick")
    assert ticks == list(range(ticks[0], 200, TIMING.interval))
    assert places(history, "phase")[-6:] == [t + TIMING.elapsed for t in ticks if t + 7 < 200][-6:]
    assert places(history, "due") == []  # as long as ticks do not count


def test_as_many_refreshes_are_due_as_ticks_were_counted() -> None:
    source = random.Random(1)
    steps: list[dict[str, int]] = []
    pending, expected, wait = 0, [], 0
    for cycle in range(3000):
        # A page lasts 68 cycles, in which nothing is made: three or four are due then.
        wait = wait - 1 if wait else source.choice((0, 0, 0, 68))
        made = int(pending > 0 and not wait)
        expected.append(int(pending > 0))
        steps.append({"counts": 1, "made": made})
        pending += (cycle % TIMING.interval == TIMING.interval - 1) - made
        if made:
            wait = TIMING.refresh
    history = watch(steps)
    assert places(history, "tick")[0] == TIMING.interval - 1
    assert history["due"][: len(expected)] == expected
    assert sum(step["made"] for step in steps) > 100
