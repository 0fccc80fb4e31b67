# amaranth: UnusedElaboratable=no
"""Slices of the host: what words they become, and what is answered."""

from __future__ import annotations

import random

import pytest
from core.external.fake import FakeMemory
from core.external.simulated import SMALL_16, SMALL_32
from core.harness import Bench

from lbq_hw.chips import Chip
from lbq_hw.core.external.slices import Slices
from lbq_hw.sim.models.traffic import stalls


@pytest.mark.parametrize("chip", [SMALL_16, SMALL_32], ids=lambda chip: chip.name)
@pytest.mark.parametrize("rate", [0.0, 0.4])
def test_reads_give_what_writes_have_left(chip: Chip, rate: float) -> None:
    source, halves = random.Random(1), 32 // chip.data_bits
    wanted, slices, expected, words = [], {}, [], {}
    for _ in range(60):
        address = source.randrange(40)
        if source.random() < 0.5:
            value = slices[address] = source.getrandbits(32)
            wanted.append({"write": 1, "address": address, "data": value})
            for half in range(halves):
                word = value >> half * chip.data_bits & (1 << chip.data_bits) - 1
                words[halves * address + half] = word
        else:
            wanted.append({"write": 0, "address": address, "data": 0})
            expected.append(slices.get(address, 0))
    block = Slices(chip=chip)
    bench = Bench(block)
    memory = bench.add(FakeMemory(block.port, stall=stalls(2, rate)))
    bench.drive(block.request, wanted, stall=stalls(3, rate))
    monitor = bench.monitor(block.answer, len(expected))
    bench.run()
    assert monitor.payloads == expected
    assert memory.words == words
    asked = [one["address"] for one in wanted if not one["write"]]
    assert memory.reads == [(halves * address, halves - 1) for address in asked]


def test_a_read_is_answered_in_the_cycle_after_its_last_word() -> None:
    block = Slices(chip=SMALL_16)
    bench = Bench(block)
    bench.add(FakeMemory(block.port))
    driver = bench.drive(block.request, [{"write": 0, "address": 3, "data": 0}])
    history = bench.probe(came=block.port.words.valid, answered=block.answer.valid)
    bench.monitor(block.answer, 1)
    bench.run(extra=3)
    assert driver.cycles == [0]
    assert history["came"][:5] == [0, 1, 1, 0, 0]
    assert history["answered"][:5] == [0, 0, 0, 1, 0]
