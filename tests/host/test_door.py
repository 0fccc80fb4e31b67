"""What the host asks through a door, and when: a line that answers every read at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, cast

import numpy as np
import pytest
from simulators import digits

from lbq_hw.compiler import compile_network, smallest_for
from lbq_hw.host.door import Stream
from lbq_hw.host.line import Asked, SerialTransport
from lbq_hw.isa.door import Opening
from lbq_hw.isa.link import Command

CLOCK_HZ = 12_000_000
SLOW, QUICK = 10_000, 1_000_000
"""Rates at which a run is shorter than an input's way over the line, and longer."""
RUN = 8_000


class Answers:
    """A line that keeps what was asked."""

    def __init__(self, baud: int) -> None:
        self.baud = baud
        self.asked: list[Asked] = []

    def stream(self, asked: Iterable[Asked], *, longest: float) -> Iterator[tuple[int, ...]]:
        assert longest > 0
        given = 0
        for one in asked:
            assert one.needs <= given
            self.asked.append(one)
            if one.request.command == Command.READ:
                given += 1
                yield (RUN, given, *[0] * (one.request.words - 2))


def asked(count: int, *, baud: int, queue: bool) -> list[Asked]:
    """All requests of a number of inputs."""
    program = compile_network(digits(), smallest_for(digits(), lanes=4, word=32))
    words = program.pixels.words
    opening = Opening(pixels=program.pixels, results=10, queue=(words + 1) * queue)
    line = Answers(baud)
    stream = Stream(
        cast(SerialTransport, cast(Any, line)), opening, clock_hz=CLOCK_HZ, most=2 * RUN
    )
    inputs = [np.zeros(words, np.uint32) for _ in range(count)]
    assert len(list(stream.run(inputs, begin=lambda: None))) == count
    return line.asked


@pytest.mark.parametrize("queue", [False, True])
@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_a_read_behind_a_read_waits_for_its_answer_where_runs_are_long(
    count: int, queue: bool
) -> None:
    requests = asked(count, baud=QUICK, queue=queue)
    reads = [number for number, one in enumerate(requests) if one.request.command == Command.READ]
    assert len(reads) == count
    for before, number in enumerate(reads):
        if number - 1 in reads:
            assert requests[number].needs == before


@pytest.mark.parametrize("count", [3, 7])
def test_nothing_waits_on_a_slow_line_once_the_time_of_a_run_is_known(count: int) -> None:
    requests = asked(count, baud=SLOW, queue=True)
    known = [one.request.command for one in requests].index(Command.READ) + 2
    assert all(one.needs == 0 for one in requests[known:])
