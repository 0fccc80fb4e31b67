# amaranth: UnusedElaboratable=no
"""The pages of a tape: asked for in their order, until a stop."""

from __future__ import annotations

import dataclasses
from typing import Any

from core.external.fake import FakeMemory
from core.external.simulated import SMALL_16
from core.harness import Bench, ones

from lbq_hw.core.external.tape_pages import TapePages
from lbq_hw.sim.models.traffic import stalls

CHIP = dataclasses.replace(SMALL_16, column_bits=3)
PAGE = 8


def play(steps: list[dict[str, int]], rate: float = 0.0) -> tuple[FakeMemory, Any, dict]:
    block = TapePages(chip=CHIP)
    bench = Bench(block)
    memory = FakeMemory(block.port, empty=block.empty, stall=stalls(2, rate))
    memory.words = {address: 7 * address for address in range(CHIP.words)}
    bench.add(memory)
    bench.script({"start": block.start, "stop": block.stop}, steps)
    monitor = bench.monitor(block.words)
    access = block.port.access
    history = bench.probe(active=block.active, asked=access.valid, granted=access.ready)
    bench.run()
    asked, granted = history["asked"], history["granted"]
    for now, heard, later in zip(asked, granted, asked[1:], strict=False):
        assert later or heard or not now  # asked until granted
    return memory, monitor, history


def test_pages_come_from_the_first_one_on() -> None:
    memory, monitor, history = play([{"stop": 1}, {"start": 1}, *[{}] * 200], rate=0.3)
    assert memory.reads == [(PAGE * n, PAGE - 1) for n in range(len(memory.reads))]
    assert len(memory.reads) > 5
    assert monitor.payloads == [7 * n for n in range(len(monitor.payloads))]
    assert len(monitor.payloads) > 40
    assert ones(history["asked"])[0] == ones(history["active"])[0] == 2


def test_all_that_was_asked_for_before_a_stop_comes_and_the_next_run_begins_anew() -> None:
    steps = [{"start": 1}, *[{}] * 12, *[{"stop": 1}] * 20, {"start": 1}, *[{}] * 12]
    memory, monitor, history = play([*steps, *[{"stop": 1}] * 20])
    again = memory.reads.index((0, PAGE - 1), 1)
    first = monitor.payloads.index(0, 1)
    assert monitor.payloads[:first] == [7 * n for n in range(first)]
    assert monitor.payloads[first:] == [7 * n for n in range(len(monitor.payloads) - first)]
    assert 0 < first == PAGE * again
    assert memory.reads[again:][:2] == [(0, PAGE - 1), (PAGE, PAGE - 1)]
    quiet = [cycle for cycle in range(len(steps) + 20) if not history["active"][cycle]]
    assert 32 in quiet
    assert history["active"][-1] == 0
    assert not memory.coming
