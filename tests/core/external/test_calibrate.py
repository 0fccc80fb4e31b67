# amaranth: UnusedElaboratable=no
"""Calibration, alone and at the pins of a simulated chip, whose words come when they come."""

from __future__ import annotations

import pytest
from core.external.fake import FakeMemory
from core.external.simulated import CALIBRATE, READ, RUN, SMALL_16, SMALL_32, WAIT, run
from core.harness import Bench, ones

from lbq_hw.chips import Chip
from lbq_hw.chips.eye import DRIFT, Sampling
from lbq_hw.core.external.calibrate import Calibrate
from lbq_hw.core.external.pattern import compute
from lbq_hw.core.external.port import Capture
from lbq_hw.isa import regions
from lbq_hw.sim.models.traffic import stalls

CLOCK = 80_000_000
"""At which the nominal edge of a chip of 16 bits is the falling one: odd captures."""


class Alone:
    """Calibrations of a memory in which `working` captures are right, but for their `bad` tries.

    A capture is judged after as many reads as it has tries.
    """

    def __init__(
        self,
        working: set[int],
        *,
        bad: set[tuple[int, int]] = frozenset(),
        clock_hz: int = CLOCK,
        rate: float = 0.0,
        again: int | None = None,
        cycles: int = 2500,
    ) -> None:
        block = Calibrate(chip=SMALL_16, clock_hz=clock_hz)
        bench = Bench(block)
        self.seen = seen = bench.probe(
            capture=block.capture.as_value(),
            passed=block.passed,
            done=block.done,
            failed=block.failed,
        )

        def spoil(address: int, word: int) -> int:
            tried = (len(self.memory.reads) - 1) % Calibrate.TRIES
            wrong = seen["capture"][-1] not in working or (seen["capture"][-1], tried) in bad
            return word ^ 0x100 if wrong and address % 16 == 15 else word

        self.memory = bench.add(
            FakeMemory(block.port, spoil=spoil, empty=block.empty, stall=stalls(1, rate))
        )
        bench.script({"again": block.again}, [{"again": cycle == again} for cycle in range(cycles)])
        bench.run()

    @property
    def last(self) -> dict[str, int]:
        return {name: values[-1] for name, values in self.seen.items()}


@pytest.mark.parametrize(
    ("working", "chosen"),
    [
        ({5}, 5), ({4}, 4), ({4, 5}, 5), ({5, 6}, 5), ({0}, 0), ({0, 1}, 1), ({13}, 13),
        ({12, 13}, 13), ({2, 6}, 2), (set(range(14)), 1),
    ],
)  # fmt: skip
def test_of_the_captures_that_pass_the_one_at_the_nominal_edge_is_chosen(
    working: set[int], chosen: int
) -> None:
    run = Alone(working)
    passed = sum(1 << capture for capture in working)
    assert run.last == {"capture": chosen, "passed": passed, "done": 1, "failed": 0}
    assert set(run.seen["capture"]) >= set(range(Capture.SETTINGS))


def test_at_another_clock_the_nominal_edge_is_the_other() -> None:
    assert not Sampling(chip=SMALL_16, clock_hz=30_000_000).falling
    assert [Alone({4, 5}, clock_hz=hz).last["capture"] for hz in (CLOCK, 30_000_000)] == [5, 4]


@pytest.mark.parametrize("tried", range(Calibrate.TRIES))
def test_a_capture_that_is_wrong_once_has_not_passed(tried: int) -> None:
    run = Alone({4, 5}, bad={(5, tried)})
    assert run.last == {"capture": 4, "passed": 1 << 4, "done": 1, "failed": 0}


def test_an_error_is_told_where_no_capture_passes_until_another_calibration() -> None:
    run = Alone(set())
    assert run.last == {"capture": 0, "passed": 0, "done": 0, "failed": 1}
    end = ones(run.seen["failed"])[0]
    run = Alone(set(), again=end + 5, cycles=2 * end)
    assert ones(run.seen["failed"]) == list(range(end, end + 6))


def test_another_calibration_forgets_the_first_in_the_next_cycle() -> None:
    end = ones(Alone({4, 5}).seen["done"])[0]
    # While it is under way it is not asked again.
    assert ones(Alone({4, 5}, again=end - 9).seen["done"])[0] == end
    run = Alone({4, 5}, again=end + 20, cycles=3 * end)
    length = end + 21  # of both together
    assert ones(run.seen["done"])[:21] == list(range(end, length))
    assert ones(run.seen["done"])[21] == length + end
    assert run.last == {"capture": 5, "passed": 0b110000, "done": 1, "failed": 0}
    assert run.memory.reads == [(SMALL_16.words - 16, 15)] * (2 * Capture.SETTINGS * 4)


def test_only_the_last_words_of_the_memory_are_used() -> None:
    run = Alone({2, 3}, rate=0.3, cycles=5000)
    first = SMALL_16.words - Calibrate.WORDS
    assert run.memory.writes == list(range(first, SMALL_16.words))
    assert run.memory.words == {a: compute(a, 16) for a in range(first, SMALL_16.words)}
    reads = Capture.SETTINGS * Calibrate.TRIES
    assert run.memory.reads == [(first, Calibrate.WORDS - 1)] * reads
    assert run.last["capture"] == 3


def test_the_register_says_how_many_words_are_overwritten() -> None:
    meaning = regions.MEMORY_REGISTERS["captures"].meaning
    assert meaning.endswith(f"overwrites the last {Calibrate.WORDS} memory words")


def counted(numbers: list[int], latency: int) -> list[int]:
    """Captures at half periods after the launch, at pins of a latency."""
    return [number - 1 + 4 * (latency - 1) for number in numbers]


def sweep(chip: Chip, clock_hz: int, delays: range, latency: int = 1) -> None:
    sampling = Sampling(chip=chip, clock_hz=clock_hz)
    for delay in delays:
        eye = sampling.eye(delay)
        options = {"access": chip.access + delay, "hold": chip.hold + delay, "latency": latency}
        done = run([(WAIT, 1)], chip=chip, clock_hz=clock_hz, **options)
        assert done.violations == []
        chosen = sampling.chosen(eye)
        assert chosen is not None, f"no capture should pass at {delay} ps"
        [used] = counted([chosen], latency)
        assert done.calibrations == [(used, counted(sampling.passing(eye), latency))]


@pytest.mark.parametrize(
    ("clock_hz", "delay"), [(50_000_000, 0), *((CLOCK, d) for d in (0, 3100, 6500, 11_300))]
)
def test_delays_of_the_board_are_found(clock_hz: int, delay: int) -> None:
    sweep(SMALL_16, clock_hz, range(delay, delay + 1))


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


WORDS = [address * 40503 & 0xFFFF for address in range(SMALL_16.words)]


@pytest.mark.parametrize("drift", [-DRIFT, DRIFT])
@pytest.mark.parametrize(
    ("chip", "clock_hz", "begin"),
    [(SMALL_32, 60_000_000, 7_900), (SMALL_16, 75_000_000, 11_800)],
    ids=["Tang Nano 20K", "ULX3S"],
)
def test_an_eye_that_begins_just_before_an_edge_may_drift(
    chip: Chip, clock_hz: int, begin: int, drift: int
) -> None:
    """The eye begins at 7.9 ns, and an edge is at 8.33; at 11.8 ns, and an edge is at 13.33."""
    words = WORDS[: chip.words]
    shape = {"chip": chip, "clock_hz": clock_hz, "words": words}
    eye = {"access": begin, "hold": begin - chip.access + chip.hold}
    done = run([(WAIT, 100), (RUN, 300)], drift=(drift, 3000, 4200), **shape, **eye)
    assert done.violations == []
    assert [word for _, _, word in done.runs()[0]] == words[:300]


def test_words_that_drift_out_of_the_capture_are_wrong_until_another_calibration() -> None:
    # Right at 12.5 ns first, at 18.75 after the drift.
    script = [(READ, 5), (WAIT, 900), (READ, 5), (CALIBRATE,), (READ, 5), (RUN, 600)]
    options = {"access": 9_000, "hold": 6_100, "drift": (4_000, 4_200, 4_700)}
    done = run(script, words=WORDS, **options)
    assert done.violations == []
    assert done.calibrations == [(1, [1]), (2, [2])]
    slice_5 = WORDS[11] << 16 | WORDS[10]
    first, drifted, last = done.slices
    assert (first, last) == (slice_5, slice_5)
    assert drifted != slice_5
    assert [word for _, _, word in done.runs()[0]] == WORDS[:600]


def test_a_calibration_waits_until_the_words_of_a_run_are_forgotten() -> None:
    done = run([(RUN, 3), (CALIBRATE,), (RUN, 700)], words=WORDS)
    assert done.violations == []
    assert [used for used, _ in done.calibrations] == [1, 1]
    assert [word for _, _, word in done.runs()[1]] == WORDS[:700]


def test_a_chip_whose_words_are_never_there_long_enough_is_an_error() -> None:
    # Right for 200 ps only, and at none of the edges.
    done = run([(WAIT, 1)], access=13_000, hold=700)
    assert done.failed
