# amaranth: UnusedElaboratable=no
"""The controller: when words of pages come, with every capture, and what it stores."""

from __future__ import annotations

import dataclasses
import random

import pytest
from core.external.simulated import (
    RATE,
    READ,
    RUN,
    SMALL_16,
    SMALL_32,
    WAIT,
    WRITE,
    Run,
    run,
)  # fmt: skip

from lbq_hw.chips import ULX3S, Chip
from lbq_hw.chips.timing import reader_timing
from lbq_hw.core.external.calibrate import Calibrate
from lbq_hw.core.external.sdram import Sdram
from lbq_hw.cycles.words import WordStream

SHAPES = [
    (SMALL_16, 80_000_000),
    (SMALL_16, 125_000_000),
    (SMALL_32, 60_000_000),
    (SMALL_32, 125_000_000),
]
IDS = [f"{chip.data_bits} bits, {clock // 10**6} MHz" for chip, clock in SHAPES]


def filled(chip: Chip, seed: int = 1) -> list[int]:
    source = random.Random(seed)
    return [source.getrandbits(chip.data_bits) for _ in range(chip.words)]


def assert_on_time(done: Run, words: list[int], chip: Chip, clock_hz: int) -> None:
    """Every word of every run comes in the cycle of the model."""
    assert done.violations == []
    timing = reader_timing(chip, clock_hz)
    for taken in done.runs():
        stream = WordStream(timing)
        for number, (cycle, earliest, word) in enumerate(taken):
            assert cycle == stream.take(earliest, 1), f"word {number}"
            assert word == words[number]


def traffic(chip: Chip, words: list[int], count: int, seed: int) -> tuple[list, list[int]]:
    """A random script, and the slices that it must read; `words` follow the writes.

    Runs read what was written before all of them, in the first pages.
    """
    source, halves = random.Random(seed), 32 // chip.data_bits
    script: list[tuple[int, ...]] = []
    expected = []
    usable = range(12 * chip.page_words // halves, (chip.words - Calibrate.WORDS) // halves)
    for _ in range(count):
        kind = source.choice(["runs", "writes", "reads", "reads", "waits", "rates"])
        slices = [source.choice(usable) for _ in range(source.randint(1, 4))]
        if kind == "runs":
            page = chip.page_words
            script.append((RUN, source.choice((1, 7, page, page + 1, 3 * page, 5 * page + 9))))
        elif kind == "writes":
            for place in slices:
                value = source.getrandbits(32)
                script.append((WRITE, place, value))
                for half in range(halves):
                    part = value >> half * chip.data_bits & (1 << chip.data_bits) - 1
                    words[halves * place + half] = part
        elif kind == "reads":
            for place in slices:
                script.append((READ, place))
                parts = words[halves * place : halves * (place + 1)]
                expected.append(sum(word << i * chip.data_bits for i, word in enumerate(parts)))
        elif kind == "waits":
            script.append((WAIT, source.choice((1, 3, 20, 400))))
        else:
            script.append((RATE, source.choice((256, 250, 200, 40))))
    return [*script, (RATE, 250), (RUN, 6 * chip.page_words)], expected


@pytest.mark.parametrize(("chip", "clock_hz"), SHAPES, ids=IDS)
def test_words_of_runs_come_in_the_cycles_of_the_model_between_accesses_of_the_host(
    chip: Chip, clock_hz: int
) -> None:
    words = filled(chip)
    start = list(words)
    script, expected = traffic(chip, words, 12, seed=clock_hz + chip.data_bits)
    # The window of 125 MHz is narrower than half a period unless the chip is a fast one.
    done = run(script, chip=chip, clock_hz=clock_hz, access=5400, words=start)
    assert_on_time(done, words, chip, clock_hz)
    assert done.slices == expected


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("chip", "clock_hz"), SHAPES, ids=IDS)
def test_longer_random_traffic(chip: Chip, clock_hz: int, seed: int) -> None:
    words = filled(chip, seed)
    start = list(words)
    script, expected = traffic(chip, words, 60, seed=seed)
    options = {"latency": 1 + seed % 3, "access": 5400, "seed": seed + 1}
    done = run(script, chip=chip, clock_hz=clock_hz, words=start, **options)
    assert_on_time(done, words, chip, clock_hz)
    assert done.slices == expected


@pytest.mark.parametrize(
    ("delay", "latency"), [(0, 1), (1, 1), (2, 1), (3, 1), (0, 3), (1, 3), (2, 3)]
)
def test_a_later_capture_does_not_move_the_words(delay: int, latency: int) -> None:
    words, access = filled(SMALL_16), 6000 + 12_500 * delay // 2 * 2
    script = [(RUN, 1100), (RATE, 200), (RUN, 700)]
    done = run(script, access=access, hold=access - 4000, latency=latency, words=words)
    assert done.capture >> 1 == delay + 2 * (latency - 1)
    assert_on_time(done, words, SMALL_16, 80_000_000)
    assert done.runs()[0][0][0] == reader_timing(SMALL_16, 80_000_000).first


def test_frequent_refreshes_meet_every_state_and_words_are_on_time() -> None:
    chip = dataclasses.replace(SMALL_16, refresh=700_000)
    words = filled(chip)
    start = list(words)
    script, expected = traffic(chip, words, 12, seed=5)
    done = run(script, chip=chip, words=start)
    assert_on_time(done, words, chip, 80_000_000)
    assert done.slices == expected


@pytest.mark.parametrize(
    ("chip", "clock_hz", "least"),
    [
        (SMALL_16, 80_000_000, 0.98),
        pytest.param(SMALL_16, 100_000_000, 0.979, marks=pytest.mark.slow),
        pytest.param(SMALL_32, 80_000_000, 0.97, marks=pytest.mark.slow),
    ],
    ids=["16 bits, 80 MHz", "16 bits, 100 MHz", "32 bits, 80 MHz"],
)
def test_a_long_run_has_the_rate_of_the_model(chip: Chip, clock_hz: int, least: float) -> None:
    words, count = filled(chip), 10_000
    done = run([(RUN, count)], chip=chip, clock_hz=clock_hz, words=words)
    assert_on_time(done, words, chip, clock_hz)
    [taken] = done.runs()
    assert count / (taken[-1][0] - taken[0][0] + 1) >= least
    assert reader_timing(chip, clock_hz).rate >= least


def test_an_access_has_the_sizes_of_the_chip() -> None:
    sdram = Sdram(chip=ULX3S, clock_hz=80_000_000)
    assert len(sdram.port.access.payload.address) == 24
    assert len(sdram.port.access.payload.more) == 9
