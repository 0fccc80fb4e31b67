"""Sends inputs through a core's door: the next inputs travel while one runs."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from math import ceil

import numpy as np
from numpy.typing import NDArray

from lbq_hw.host.frames import REPLY_BYTES, REQUEST_BYTES, Request, cuts
from lbq_hw.host.line import Asked, LinkError, SerialTransport
from lbq_hw.isa import link
from lbq_hw.isa.door import CYCLES, DOOR, NUMBER_BITS, Opening
from lbq_hw.isa.link import Command

FRAME_BYTES = REQUEST_BYTES + link.CRC_BYTES + 1
AHEAD = 2
"""Inputs under way to a core with a queue: one runs, and the next one travels."""
ATTEMPTS = 6
"""Largest number of times that the pixels of an input are sent."""
SPARE = 1.25
"""The core is certainly done after the time of the longest run times this factor."""
CHECK = 8  # cycles of the link for the CRC of a byte
WORD = 7  # cycles of the link to write a word


@dataclass(frozen=True, kw_only=True)
class Result:
    """The result of a run: slices of logits, and its cycles."""

    slices: tuple[int, ...]
    cycles: int


class FailedError(RuntimeError):
    """A run ended with an error; the core's registers have its code."""


def requests(opening: Opening, words: NDArray[np.uint32]) -> list[Request]:
    """The frames of an input: its pixels, and the read of its result."""
    parts = [words[first : first + size].tolist() for first, size in cuts(0, len(words))]
    return [
        *(
            Request(sequence=0, command=Command.WRITE, address=DOOR, data=(*part,))
            for part in parts
        ),
        Request(sequence=0, command=Command.READ, address=DOOR | CYCLES, words=opening.results + 2),
    ]


def reply_bytes(read: Request) -> int:
    """Bytes of the answer to a read, without escapes."""
    return REPLY_BYTES + link.CRC_BYTES + 1 + 4 * read.words


@dataclass(frozen=True, kw_only=True)
class Pace:
    """The spacing of frames. The core drops a frame that is complete before the previous frame is
    processed, so idle bytes must separate the two.

    Parameters: `cycles` of the longest run so far; None if unknown.
    """

    opening: Opening
    clock_hz: int
    baud: int
    cycles: float | None

    @property
    def streams(self) -> bool:
        """Whether inputs are sent without waiting for results.

        With a queue they are if the line is slower than the core. Without a queue, idle bytes fill
        the time of a run, unless waiting for the answer is faster than sending them.
        """
        if self.cycles is None:
            return False
        words = self.opening.pixels.words
        sent = 4 * words + (len(cuts(0, words)) + 1) * FRAME_BYTES
        run = self.cycles + self._spread * words
        return sent * self._byte > (SPARE if self.opening.queue else SPARE - 1) * run

    def idle(self, before: Request, request: Request) -> int:
        """Number of idle bytes between two frames."""
        return max(0, ceil(self._busy(before) / self._byte) - len(request.encode()) + 1)

    @property
    def gap(self) -> float:
        """Approximate seconds between two runs of a core, if pixels wait in its queue: it first
        sends the result, and then spreads the pixels.
        """
        pixels = self.opening.pixels
        *_, read = requests(self.opening, np.zeros(pixels.words, np.uint32))
        return (reply_bytes(read) * self._byte + pixels.run_cycles) / self.clock_hz

    @property
    def _byte(self) -> float:
        """Cycles of a byte on the line."""
        return link.BYTE_BITS * self.clock_hz / self.baud

    @property
    def _spread(self) -> int:
        return self.opening.pixels.spread_cycles  # for a word of pixels

    def _busy(self, request: Request) -> float:
        """Upper bound on the cycles from a request's last byte to the end of its answer."""
        count, queued = len(request.data), self.opening.queue > 0
        answer = self._byte * (REPLY_BYTES + link.CRC_BYTES + 1)
        check = CHECK * (4 * count + FRAME_BYTES)
        if request.command == Command.WRITE:
            return answer + check + count * (WORD + (0 if queued else self._spread))
        run = 0 if queued else (self.cycles or 0) + self._spread
        return SPARE * (answer + check + 4 * self._byte * request.words + run)


class Stream:
    """Sends inputs as words of pixels, and returns their results in order.

    If `Pace` allows it, inputs are sent without waiting for results. Otherwise the pixels of an
    input are sent when the core certainly has room for them: during the previous run if the core
    has a queue, and after that run if it has none. A lost result is computed again.

    Parameters: `clock_hz` of the core; `most`, an upper bound on the cycles of a run.
    """

    def __init__(
        self, line: SerialTransport, opening: Opening, *, clock_hz: int, most: int
    ) -> None:
        self._line, self._opening = line, opening
        self._clock_hz, self._most = clock_hz, most
        self._ahead = AHEAD if opening.queue else 1
        self._cycles: int | None = None
        self._sent: deque[NDArray[np.uint32]] = deque()

    def run(
        self, inputs: Iterable[NDArray[np.uint32]], *, begin: Callable[[], None]
    ) -> Iterator[Result]:
        """The results of inputs, given as words; `begin` makes the core drop all earlier pixels."""
        waiting = iter(inputs)
        failures = 0
        begin()
        while True:
            for result in self._session(waiting):
                if result is None:
                    break
                self._sent.popleft()
                self._cycles = max(self._cycles or 0, result.cycles)
                failures = 0
                yield result
            else:
                return
            failures += 1
            if failures == ATTEMPTS:
                raise LinkError("results are lost repeatedly: try a lower --baud or another cable")
            self._line.sync()
            begin()

    def _session(self, waiting: Iterator[NDArray[np.uint32]]) -> Iterator[Result | None]:
        """Results in order; None after a lost result, which ends the session."""
        pixels = self._opening.pixels
        longest = (self._most + pixels.spread_cycles * pixels.words) / self._clock_hz
        answers = self._line.stream(self._spaced(self._asked(waiting)), longest=longest)
        for number, data in enumerate(answers, 1):
            if data is None or data[1] % (1 << NUMBER_BITS) != number % (1 << NUMBER_BITS):
                yield None
                return
            if data[1] >> NUMBER_BITS & 1:
                raise FailedError
            yield Result(slices=data[2:], cycles=data[0])

    def _asked(self, waiting: Iterator[NDArray[np.uint32]]) -> Iterator[Asked]:
        """Requests in order: the pixels of an input come before the read of the previous result.

        The last reads have no pixels between them. If a run may take longer than the line, each of
        these reads waits for the previous answer.
        """
        late: deque[Request] = deque()
        number = 0
        for number, words in enumerate(chain([*self._sent], self._kept(waiting)), 1):
            needs = 0 if self._pace.streams else max(0, number - self._ahead)
            *writes, read = requests(self._opening, words)
            yield from (Asked(request=write, needs=needs) for write in writes)
            late.append(read)
            if len(late) == self._ahead:
                yield Asked(request=late.popleft())
        for before, read in enumerate(late, number - len(late)):
            yield Asked(request=read, needs=0 if self._pace.streams else before)

    def _kept(self, waiting: Iterator[NDArray[np.uint32]]) -> Iterator[NDArray[np.uint32]]:
        """The inputs; each is kept until its result has arrived."""
        for words in waiting:
            self._sent.append(words)
            yield words

    def _spaced(self, asked: Iterable[Asked]) -> Iterator[Asked]:
        """Requests with idle bytes between them, except before one that waits for an answer."""
        before: Request | None = None
        for one in asked:
            waits = one.needs > 0 and before is not None and before.command == Command.READ
            idle = 0 if before is None or waits else self._pace.idle(before, one.request)
            yield replace(one, idle=idle)
            before = one.request

    @property
    def _pace(self) -> Pace:
        return Pace(
            opening=self._opening,
            clock_hz=self._clock_hz,
            baud=self._line.baud,
            cycles=self._cycles,
        )
