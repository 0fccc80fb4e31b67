# amaranth: UnusedElaboratable=no
"""The controller at the pins of a simulated chip: what it reads, and when."""

from __future__ import annotations

import dataclasses
import itertools
import random

import pytest
from core.external.simulated import (
    DRAIN,
    FLUSH,
    RATE,
    READ,
    SMALL_16,
    SMALL_32,
    WAIT,
    WRITE,
    Run,
    run,
)  # fmt: skip

from lbq_hw.core.external.calibrate import Calibrate
from lbq_hw.external.chips import ULX3S, Chip
from lbq_hw.core.external.sdram import Sdram

SHAPES = [  # chip, clock, CAS latency
    (SMALL_16, 80_000_000, 2),
    (SMALL_16, 125_000_000, 3),
    (SMALL_32, 60_000_000, 2),
    (SMALL_32, 125_000_000, 3),
]
IDS = [f"{chip.data_bits} bits, {clock // 10**6} MHz" for chip, clock, _ in SHAPES]


def filled(chip: Chip, seed: int = 1) -> list[int]:
    source = random.Random(seed)
    return [source.randrange(1 << chip.data_bits) for _ in range(chip.words)]


def traffic(chip: Chip, words: list[int], count: int, seed: int) -> tuple[list, list[int]]:
    """A random script, and the words that it must bring; `words` follow the writes."""
    source = random.Random(seed)
    script: list[tuple[int, ...]] = []
    expected = []
    usable = chip.words - Calibrate.WORDS
    for _ in range(count):
        kind = source.random()
        if kind < 0.3:
            address = source.randrange(usable)
            for _ in range(source.randrange(1, 6)):
                data = source.randrange(1 << chip.data_bits)
                script.append((WRITE, address, data))
                words[address] = data
                address = (address + source.choice((0, 1, 1, 1, 1 << chip.column_bits))) % usable
        elif kind < 0.85:
            length = source.choice((1, 2, 5, 40, 300))
            address = source.randrange(usable - length)
            if source.random() < 0.5:  # across the end of a row
                end = (address >> chip.column_bits) + 1 << chip.column_bits
                address = max(0, min(end - length // 2 - 1, usable - length))
            script.append((READ, address, length - 1))
            expected += words[address : address + length]
        elif kind < 0.95:
            script.append((WAIT, source.choice((1, 3, 20, 400))))
        else:
            script.append((RATE, source.choice((256, 200, 128, 40))))
    return [*script, (RATE, 256), (DRAIN,)], expected


def check(done: Run, expected: list[int]) -> None:
    assert done.violations == []
    assert done.words == expected


@pytest.mark.parametrize(("chip", "clock_hz", "cas"), SHAPES, ids=IDS)
def test_random_reads_give_what_random_writes_have_left(
    chip: Chip, clock_hz: int, cas: int
) -> None:
    assert chip.cycles(clock_hz).cas == cas
    words = filled(chip)
    start = list(words)
    script, expected = traffic(chip, words, 30, seed=clock_hz + chip.data_bits)
    # The window of 125 MHz is narrower than half a period unless the chip is a fast one.
    check(run(script, chip=chip, clock_hz=clock_hz, access=5400, words=start), expected)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("chip", "clock_hz", "cas"), SHAPES, ids=IDS)
def test_longer_random_traffic(chip: Chip, clock_hz: int, cas: int, seed: int) -> None:
    del cas
    words = filled(chip, seed)
    start = list(words)
    script, expected = traffic(chip, words, 400, seed=seed)
    depth, latency = ((33, 1), (65, 1), (65, 2), (129, 3), (513, 3), (40, 2))[seed]
    options = {"depth": depth, "latency": latency, "access": 5400, "seed": seed + 1}
    check(run(script, chip=chip, clock_hz=clock_hz, words=start, **options), expected)


@pytest.mark.parametrize("delay", [0, 1, 2])
def test_the_first_word_comes_after_the_stated_cycles_and_the_others_follow(delay: int) -> None:
    access = 6000 + 12_500 * delay
    script = [(WRITE, address, address) for address in range(20)]
    script += [(WAIT, 100), (READ, 0, 0), (DRAIN,), (READ, 0, 19), (DRAIN,)]
    # A capture at the falling edge, half a cycle later, has the delay of the rising one.
    done = run(script, access=access, hold=access - 4000)
    check(done, [0, *range(20)])
    assert done.capture >> 1 == delay
    asked, words = done.cycles("asked"), done.cycles("word")
    cas = SMALL_16.cycles(80_000_000).cas
    assert words[0] == asked[0] + 7 + cas + delay
    assert words[1:] == [asked[1] + 7 + cas + delay + n for n in range(20)]


def test_writes_to_an_open_row_are_taken_every_three_cycles() -> None:
    wrote = run([(WRITE, n, n) for n in range(20)]).cycles("wrote")
    assert [after - before for before, after in itertools.pairwise(wrote[3:])] == [3] * 16


def throughput(chip: Chip, clock_hz: int, count: int) -> float:
    words = filled(chip)
    done = run([(READ, 0, count - 1), (DRAIN,)], chip=chip, clock_hz=clock_hz, words=words)
    check(done, words[:count])
    cycles = done.cycles("word")
    return count / (cycles[-1] - cycles[0] + 1)


def test_a_long_read_has_97_percent_of_the_peak_rate() -> None:
    assert throughput(SMALL_16, 80_000_000, 16_384) >= 0.97


@pytest.mark.slow
@pytest.mark.parametrize(
    ("chip", "clock_hz", "least"),
    [
        (SMALL_16, 80_000_000, 0.975),
        (SMALL_16, 100_000_000, 0.97),
        (SMALL_32, 80_000_000, 0.97),
    ],
    ids=["16 bits, 80 MHz", "16 bits, 100 MHz", "32 bits, 80 MHz"],
)
def test_the_rate_over_a_whole_memory(chip: Chip, clock_hz: int, least: float) -> None:
    assert throughput(chip, clock_hz, chip.words - Calibrate.WORDS) >= least


def test_no_word_is_lost_while_the_consumer_takes_none() -> None:
    words = filled(SMALL_16)
    script = [(RATE, 0), (READ, 500, 199), (WAIT, 2000), (RATE, 256), (DRAIN,)]
    check(run(script, words=words), words[500:700])


def test_a_flush_ends_a_read_and_the_next_one_begins_anew() -> None:
    words = filled(SMALL_16)
    script = [(READ, 0, 9999), (WAIT, 700), (RATE, 0), (WAIT, 100), (FLUSH,), (RATE, 256)]
    done = run([*script, (READ, 77, 49), (DRAIN,)], words=words)
    assert done.violations == []
    (flushed,) = done.cycles("flushed")
    before = [cycle for cycle in done.cycles("word") if cycle <= flushed]
    assert 500 < len(before) < 800
    assert done.words == words[: len(before)] + words[77:127]


def test_a_read_past_the_end_goes_on_at_the_beginning() -> None:
    words = filled(SMALL_16)
    done = run([(READ, SMALL_16.words - 1, 5), (DRAIN,)], words=words)
    assert done.words[1:] == words[:5]


def test_frequent_refreshes_meet_every_state_and_are_never_late() -> None:
    chip = dataclasses.replace(SMALL_16, refresh=600_000)
    words = filled(chip)
    start = list(words)
    script, expected = traffic(chip, words, 30, seed=5)
    check(run(script, chip=chip, words=start), expected)


def test_a_queue_that_words_on_their_way_would_fill_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^depth must be at least 32, not 31$"):
        Sdram(chip=ULX3S, clock_hz=80_000_000, depth=31)
