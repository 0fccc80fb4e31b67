# amaranth: UnusedElaboratable=no
"""The memory test, alone and at the pins of a simulated chip."""

from __future__ import annotations

import dataclasses

import pytest
from core.external.fake import FakeMemory
from core.external.simulated import SMALL_16, SMALL_32, TEST, run
from core.harness import Bench

from lbq_hw.core.external.pattern import compute
from lbq_hw.core.external.selftest import SelfTest
from lbq_hw.sim.models.traffic import stalls

CHIP = dataclasses.replace(SMALL_16, column_bits=4)
PAGE = 16


def examine(last: int, spoil=lambda _address, word: word, tests: int = 1, rate: float = 0.2):
    """The memory, and what was counted in each test."""
    block = SelfTest(chip=CHIP)
    bench = Bench(block)
    memory = bench.add(FakeMemory(block.port, spoil=spoil, stall=stalls(3, rate)))
    length = 20 * (last + 10) + 6 * PAGE
    steps = [{"start": 1, "last": last}, *[{"last": last}] * length] * tests
    bench.script({"start": block.start, "last": block.last}, steps)
    history = bench.probe(busy=block.busy, differing=block.differing)
    bench.run()
    ends = [(test + 1) * (length + 1) - 1 for test in range(tests)]
    assert all(history["busy"][end] == 0 for end in ends)
    return memory, [history["differing"][end] for end in ends], history


@pytest.mark.parametrize("last", [0, 1, 15, 16, 50])
def test_a_good_memory_has_no_differing_word(last: int) -> None:
    memory, counts, history = examine(last)
    assert counts == [0]
    assert memory.writes == [*range(last + 1)] * 2
    pages = [(first, PAGE - 1) for first in range(0, last + 1, PAGE)]
    assert memory.reads == pages * 2
    assert memory.words == {a: compute(a, 16) ^ 0xFFFF for a in range(last + 1)}
    assert history["busy"][:2] == [0, 1]


def test_every_differing_word_is_counted_and_a_test_counts_anew() -> None:
    _, counts, _ = examine(50, lambda address, word: word ^ (address in (0, 17, 50)), tests=2)
    assert counts == [6, 6]


def test_a_bit_that_is_stuck_shows_in_one_of_the_two_times() -> None:
    _, counts, _ = examine(50, lambda address, word: word | 4 if address == 9 else word)
    assert counts == [1]


def test_words_at_wrong_addresses_are_found() -> None:
    words: dict[int, int] = {}

    def alias(address: int, word: int) -> int:  # address bit 3 is stuck at 0 in reads
        words[address] = word
        return words[address & ~8]

    _, counts, _ = examine(31, alias)
    assert counts == [32]


def test_a_count_is_whole_when_the_test_ends() -> None:
    _, counts, history = examine(20, lambda _address, word: word ^ 1, rate=0.0)
    end = len(history["busy"]) - 1 - history["busy"][::-1].index(1)
    assert history["differing"][end + 1] == counts[0] == 42


@pytest.mark.parametrize("last", [0, 700])
def test_a_simulated_chip_passes(last: int) -> None:
    done = run([(TEST, last)], chip=SMALL_32, clock_hz=60_000_000)
    assert (done.violations, done.differing) == ([], [0])
