"""Inputs through a core's door: the next ones are on their way while one runs."""

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
ATTEMPTS = 6
"""Times that the pixels of an input are sent, at most."""
SPARE = 1.25
"""After this much of the time of the longest run, the core is done for certain."""
CHECK = 8  # cycles that the link takes for the CRC of a byte
WORD = 7  # and to write a word


@dataclass(frozen=True, kw_only=True)
class Result:
    """What a run gave: slices of logits, and its cycles."""

    slices: tuple[int, ...]
    cycles: int


class FailedError(RuntimeError):
    """A run ended with an error, which the core's registers tell."""


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


@dataclass(frozen=True, kw_only=True)
class Pace:
    """How soon frames follow each other: a frame that is complete before the core is done with the
    one before it would be dropped.

    Parameters: `cycles` of a run, of the longest one so far; None if nothing is known.
    """

    opening: Opening
    clock_hz: int
    baud: int
    cycles: float | None

    @property
    def streams(self) -> bool:
        """Whether inputs follow each other without waiting for results.

        With a queue they do where the line is slower than the core. Without one, idle bytes make up
        for a run, unless a turn on the line takes less time than they do.
        """
        if self.cycles is None:
            return False
        words = self.opening.pixels.words
        sent = 4 * words + (len(cuts(0, words)) + 1) * FRAME_BYTES
        run = self.cycles + self._spread * words
        return sent * self._byte > (SPARE if self.opening.queue else SPARE - 1) * run

    def idle(self, before: Request, request: Request) -> int:
        """Bytes that mean nothing, between two frames."""
        return max(0, ceil(self._busy(before) / self._byte) - len(request.encode()) + 1)

    @property
    def _byte(self) -> float:
        """Cycles of a byte on the line."""
        return link.BYTE_BITS * self.clock_hz / self.baud

    @property
    def _spread(self) -> int:
        return self.opening.pixels.spread_cycles  # for a word of pixels

    def _busy(self, request: Request) -> float:
        """The cycles from a request's last byte to the end of its answer, at most."""
        count, queued = len(request.data), self.opening.queue > 0
        answer = self._byte * (REPLY_BYTES + link.CRC_BYTES + 1)
        check = CHECK * (4 * count + FRAME_BYTES)
        if request.command == Command.WRITE:
            return answer + check + count * (WORD + (0 if queued else self._spread))
        run = 0 if queued else (self.cycles or 0) + self._spread
        return SPARE * (answer + check + 4 * self._byte * request.words + run)


class Stream:
    """Sends inputs as words of pixels, and gives their results in order.

    Inputs follow each other without waiting for results where `Pace` says so. Else the pixels of an
    input are sent once they have a place for certain: while the one before it runs, if the core has
    a queue, or else after that. A result that was lost on its way is computed again.

    Parameters: `clock_hz` of the core; `most`, the most cycles of a run.
    """

    def __init__(
        self, line: SerialTransport, opening: Opening, *, clock_hz: int, most: int
    ) -> None:
        self._line, self._opening = line, opening
        self._clock_hz, self._most = clock_hz, most
        self._ahead = 2 if opening.queue else 1
        self._cycles: int | None = None
        self._sent: deque[NDArray[np.uint32]] = deque()

    def run(
        self, inputs: Iterable[NDArray[np.uint32]], *, begin: Callable[[], None]
    ) -> Iterator[Result]:
        """The results of inputs, each as words; `begin` makes the core forget all that came."""
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
                raise LinkError("results are lost again and again: the line is too bad")
            self._line.sync()
            begin()

    def _session(self, waiting: Iterator[NDArray[np.uint32]]) -> Iterator[Result | None]:
        """Results in order, until one is lost: None."""
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
        """Pixels of inputs, and reads of their results behind those of the inputs after them.

        The last reads have no pixels between them: where a run may take longer than the line does,
        each waits for the answer before it.
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
        """Inputs, each of which is kept until its result is there."""
        for words in waiting:
            self._sent.append(words)
            yield words

    def _spaced(self, asked: Iterable[Asked]) -> Iterator[Asked]:
        """Requests, with idle bytes between them, unless one waits for the answer before it."""
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
