# amaranth: UnusedElaboratable=no
"""Pixels through a link's port are spread and run, and results are read when they are there."""

from __future__ import annotations

import contextlib
from collections import deque
from typing import Any

import pytest
from core.bus.fake import CONTROL, FakeCore
from core.harness import Bench
from core.pixels.pictures import LAYOUTS, expected, packed, pixels, random_picture

from lbq_hw.core.host.door import Door
from lbq_hw.isa import regions
from lbq_hw.isa.door import CYCLES, DOOR, NUMBER, Opening
from lbq_hw.isa.pixels import PixelLayout
from lbq_hw.isa.regions import REGISTERS, Region
from lbq_hw.sim.models.traffic import Stall, never, stalls

STATUS = REGISTERS["status"].address
PLANES, LOGITS = Region.PLANES << regions.SHIFT, Region.LOGITS << regions.SHIFT
COUNTER, COUNTED = REGISTERS["cycles"].address, 500
RESULTS = 3
CLEAR = (1, CONTROL, 2)
NAMES = ("a picture as it is", "gathered taps", "frames", "a border")


class Core(FakeCore):
    """Its logits tell the run and their place."""

    def __init__(self, block: Any, *, cycles: int, stall: Stall) -> None:
        super().__init__(block, cycles=cycles, stall=stall, answer=self.value)

    def value(self, addr: int) -> int:
        if addr == STATUS:
            return 2
        return 1000 * self.runs + (COUNTED if addr == COUNTER else addr - LOGITS)


class Asker:
    """A link: asks one request after the other; `answers` has what reads gave."""

    def __init__(self, port: Any, requests: list[tuple[int, int, int]], stall: Stall) -> None:
        self.port, self.stall, self.left = port, stall, deque(requests)
        self.samples = [port.ready, port.r_valid, port.r_data]
        self.answers: list[int] = []
        self.valid = self.awaiting = False

    @property
    def done(self) -> bool:
        return not self.left and not self.awaiting

    def set(self, ctx: Any) -> None:
        if self.left and not self.awaiting and (self.valid or not self.stall()):
            for name, value in zip(("write", "addr", "w_data"), self.left[0], strict=True):
                ctx.set(getattr(self.port, name), value)
            self.valid = True
        ctx.set(self.port.valid, self.valid)

    def see(self, cycle: int, ready: int, answered: int, data: int) -> None:
        del cycle
        if answered:
            assert self.awaiting, "nothing was asked"
            self.answers.append(data)
            self.awaiting = False
        if self.valid and ready:
            write, *_ = self.left.popleft()
            self.valid, self.awaiting = False, not write


def puts(shape: PixelLayout, seed: int) -> list[tuple[int, int, int]]:
    """The words of a random picture."""
    words = packed(shape, pixels(shape, random_picture(shape, seed)), 32)
    return [(1, DOOR | at & 255, word) for at, word in enumerate(words)]


RESULT = [(0, DOOR | at, 0) for at in (CYCLES, NUMBER, *range(RESULTS))]


def result(number: int, run: int | None = None) -> list[int]:
    """What a read of a result gives."""
    first = 1000 * (number if run is None else run)
    return [first + COUNTED, number, *(first + at for at in range(RESULTS))]


def play(
    shape: PixelLayout, requests: list[tuple[int, int, int]], *, queue: int = 0,
    cycles: int = 60, rate: float = 0.0, seed: int = 0,
) -> tuple[list[int], list[tuple[int, int, int]], Core]:  # fmt: skip
    """The answers to requests, and what the core was asked."""
    block = Door(Opening(pixels=shape, results=RESULTS, queue=queue))
    bench = Bench(block)
    core = bench.add(Core(block, cycles=cycles, stall=stalls(seed, rate) if rate else never))
    asker = bench.add(Asker(block.link, requests, stalls(seed + 1, rate) if rate else never))
    bench.run(extra=20)
    return asker.answers, core.taken, core


def slices(shape: PixelLayout, seed: int) -> dict[int, int]:
    return {PLANES | at: word for at, word in expected(shape, random_picture(shape, seed)).items()}


def inputs(taken: list[tuple[int, int, int]]) -> list[dict[int, int]]:
    """The plane words of each run."""
    found: list[dict[int, int]] = [{}]
    for write, addr, data in taken:
        if write and addr & PLANES == PLANES:
            found[-1][addr] = data
        elif (write, addr, data) == (1, CONTROL, 1):
            found.append({})
    return found[:-1]


@pytest.mark.parametrize("rate", [0.0, 0.4])
@pytest.mark.parametrize("name", NAMES)
def test_inputs_are_run_and_their_results_read_one_after_the_other(name: str, rate: float) -> None:
    shape = LAYOUTS[name]
    requests = [CLEAR]
    for seed in range(3):
        requests += puts(shape, seed) + RESULT
    answers, taken, _ = play(shape, requests, rate=rate)
    assert answers == [value for number in (1, 2, 3) for value in result(number)]
    assert inputs(taken) == [slices(shape, seed) for seed in range(3)]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("cycles", "rate"), [(5, 0.4), (400, 0.0)])
def test_the_next_input_comes_while_one_runs(name: str, cycles: int, rate: float) -> None:
    shape = LAYOUTS[name]
    each = [puts(shape, seed) for seed in range(4)]
    requests = [CLEAR, *each[0]]
    for words in each[1:]:
        requests += words + RESULT
    requests += RESULT
    queue = max(3, len(each[0]) + 1)
    answers, taken, core = play(shape, requests, queue=queue, cycles=cycles, rate=rate)
    assert answers == [value for number in (1, 2, 3, 4) for value in result(number)]
    assert inputs(taken) == [slices(shape, seed) for seed in range(4)]
    assert core.runs == 4


@pytest.mark.parametrize("queue", [True, False])
def test_an_input_is_taken_during_a_run_if_it_has_a_place(queue: bool) -> None:
    shape = LAYOUTS["gathered taps"]
    words = puts(shape, 0)
    block = Door(Opening(pixels=shape, results=RESULTS, queue=(len(words) + 1) * queue))
    bench = Bench(block)
    bench.add(Core(block, cycles=100_000, stall=never))
    asker = bench.add(Asker(block.link, [CLEAR, *words, *words], never))
    with contextlib.suppress(AssertionError):  # that it is not done
        bench.run(limit=3000)
    assert asker.done == queue


@pytest.mark.parametrize("queue", [0, 3])
def test_a_result_that_is_not_read_gives_way_to_pixels_without_a_place(queue: int) -> None:
    shape = LAYOUTS["a picture as it is"]
    answers, _, core = play(shape, [CLEAR, *(8 * puts(shape, 0)), *RESULT], queue=queue)
    _, number, *_ = answers
    assert number > 4
    assert answers == result(number)
    assert core.runs in (number, number + 1)  # the next run begins once the result was read


def test_a_result_is_read_again_as_long_as_nothing_else_ran() -> None:
    shape = LAYOUTS["a picture as it is"]
    answers, _, _ = play(shape, [CLEAR, *puts(shape, 0), *RESULT, *RESULT])
    assert answers == result(1) * 2


def test_a_clear_drops_pixels_and_results() -> None:
    shape = LAYOUTS["gathered taps"]
    part = puts(shape, 5)[:2]
    for queue in (0, 9):
        requests = [CLEAR, *puts(shape, 0), *RESULT, *part, CLEAR, *puts(shape, 1), *RESULT]
        answers, taken, _ = play(shape, requests, queue=queue)
        assert answers == [*result(1), *result(1, run=2)]
        assert inputs(taken)[1] | slices(shape, 1) == inputs(taken)[1]


def test_the_run_of_an_input_that_was_dropped_gives_no_result() -> None:
    shape = LAYOUTS["gathered taps"]
    found = []
    for wait in range(28, 33):  # from before the last slice is written until the run begins
        requests = [*puts(shape, 0), *[(0, LOGITS, 0)] * wait, CLEAR, *puts(shape, 1), *RESULT]
        answers, taken, _ = play(shape, requests)
        runs = len(inputs(taken))
        assert answers[wait:] == result(1, run=runs)
        found.append(runs)
    assert set(found) == {1, 2}


def test_other_requests_pass() -> None:
    shape = LAYOUTS["a picture as it is"]
    requests = [(1, PLANES | 5, 77), (0, LOGITS | 2, 0), (1, CONTROL, 1), (0, STATUS, 0)]
    answers, taken, _ = play(shape, requests[:2], rate=0.4)
    assert answers == [2]
    assert taken == requests[:2]
