# amaranth: UnusedElaboratable=no
"""Calibration, alone and at the pins of a simulated chip."""

from __future__ import annotations

import pytest
from core.external.fake import FakeMemory
from core.external.simulated import SMALL_16, SMALL_32, WAIT, run
from core.harness import Bench

from lbq_hw.core.external.calibrate import Calibrate
from lbq_hw.core.external.pattern import compute
from lbq_hw.core.external.port import Capture
from lbq_hw.external.chips import Chip
from lbq_hw.sim.models.traffic import stalls


def calibrate(working: set[int], rate: float = 0.0) -> tuple[FakeMemory, dict[str, list[int]]]:
    block = Calibrate(chip=SMALL_16)
    bench = Bench(block)
    history = bench.probe(capture=block.capture.as_value(), done=block.done, failed=block.failed)

    def spoil(address: int, word: int) -> int:
        wrong = history["capture"][-1] not in working
        return word ^ 0x100 if wrong and address % 64 == 63 else word

    memory = bench.add(
        FakeMemory(block.port, spoil=spoil, empty=block.empty, stall=stalls(1, rate))
    )
    bench.script({}, [{}] * 1700 if not rate else [{}] * 5000)
    bench.run()
    return memory, history


@pytest.mark.parametrize(
    ("working", "chosen"),
    [
        ({5}, 5), ({4, 5}, 4), ({4, 5, 6}, 5), ({0}, 0), ({15}, 15), ({13, 14, 15}, 14),
        (set(range(16)), 7), ({3, 4, 5, 9}, 4),
    ],
)  # fmt: skip
def test_the_middle_of_the_first_settings_that_work_is_chosen(
    working: set[int], chosen: int
) -> None:
    _, history = calibrate(working)
    assert (history["done"][-1], history["failed"][-1]) == (1, 0)
    assert history["capture"][-1] == chosen
    assert set(history["capture"]) == set(range(Capture.SETTINGS))


def test_an_error_is_told_where_no_setting_works() -> None:
    _, history = calibrate(set())
    assert (history["done"][-1], history["failed"][-1]) == (0, 1)


def test_only_the_last_words_of_the_memory_are_used() -> None:
    memory, history = calibrate({2, 3}, rate=0.3)
    first = SMALL_16.words - Calibrate.WORDS
    assert memory.writes == list(range(first, SMALL_16.words))
    assert memory.words == {a: compute(a, 16) for a in range(first, SMALL_16.words)}
    assert memory.reads == [(first, Calibrate.WORDS - 1)] * Capture.SETTINGS
    assert history["capture"][-1] == 2


def settings(period: int, access: int, hold: int) -> list[int]:
    """Captures that are between access and hold time, at pins of latency 1.

    Capture 0 is half a period after the edge that launches the word.
    """
    ages = range(1, Capture.SETTINGS + 1)
    right = [2 * access <= age * period and (age - 2) * period <= 2 * hold for age in ages]
    return [capture for capture, works in enumerate(right) if works]


def sweep(chip: Chip, clock_hz: int, board: range, latency: int = 1) -> None:
    period = 10**12 // clock_hz
    for delay in board:
        access, hold = chip.access + delay, chip.hold + delay
        working = [s + 4 * (latency - 1) for s in settings(period, access, hold)]
        options = {"access": access, "hold": hold, "latency": latency}
        done = run([(WAIT, 1)], chip=chip, clock_hz=clock_hz, **options)
        assert done.violations == []
        assert working, f"no setting should work at {delay} ps"
        assert done.capture == (working[0] + working[-1]) // 2


@pytest.mark.parametrize(
    ("clock_hz", "board"), [(50_000_000, 0), *((80_000_000, b) for b in (0, 3100, 6500, 11_300))]
)
def test_delays_of_the_board_are_found(clock_hz: int, board: int) -> None:
    sweep(SMALL_16, clock_hz, range(board, board + 1))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("chip", "clock_hz", "latency"),
    [
        (SMALL_16, 80_000_000, 1),
        (SMALL_16, 50_000_000, 1),
        (SMALL_16, 100_000_000, 3),
        (SMALL_32, 60_000_000, 2),
    ],
    ids=["16 bits, 80 MHz", "16 bits, 50 MHz", "16 bits, 100 MHz", "32 bits, 60 MHz"],
)
def test_every_delay_of_the_board_up_to_a_period_is_found(
    chip: Chip, clock_hz: int, latency: int
) -> None:
    sweep(chip, clock_hz, range(0, 10**12 // clock_hz, 500), latency)


def test_a_chip_whose_words_are_never_there_long_enough_is_an_error() -> None:
    # Right for 200 ps only, and at none of the edges.
    done = run([(WAIT, 1)], access=13_000, hold=700)
    assert done.failed
