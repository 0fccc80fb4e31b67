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
"""A line this much slower than the core never brings pixels that have no place."""
CHECK = 8  # cycles that the link takes for the CRC of a byte
WORD = 7  # and to write a word


@dataclass(frozen=True, kw_only=True)
class Result:
    """What a run gave: slices of logits, and its cycles."""

    slices: tuple[int, ...]
    cycles: int


class FailedError(RuntimeError):
    """A run ended with an error, which the core's registers tell."""


class Stream:
    """Sends inputs as words of pixels, and gives their results in order.

    Where the line is slower than the core, inputs follow each other without a pause. Where the core
    is slower, the pixels of an input are sent once they have a place for certain: while the one
    before it runs, if the core has a queue, or else after that. A result that was lost on its way
    is computed again.

    Parameters: `clock_hz` of the core; `most`, the most cycles of a run.
    """

    def __init__(
        self, line: SerialTransport, opening: Opening, *, clock_hz: int, most: int
    ) -> None:
        self._line, self._opening = line, opening
        self._clock_hz, self._most = clock_hz, most
        self._spread = opening.pixels.spread_cycles  # for a word of pixels
        self._ahead = 2 if opening.queue else 1
        self._cycles: int | None = None
        self._sent: deque[NDArray[np.uint32]] = deque()

    def run(
        self, inputs: Iterable[NDArray[np.uint32]], *, begin: Callable[[], None]
    ) -> Iterator[Result]:
        """The results of inputs, each as words; `begin` makes the core forget all that came."""
        waiting = iter(inputs)
        failures = 0
        while failures < ATTEMPTS:
            begin()
            failures += 1
            for result in self._session(waiting):
                if result is None:
                    break
                self._sent.popleft()
                self._cycles = max(self._cycles or 0, result.cycles)
                failures = 0
                yield result
            else:
                return
        raise LinkError("results are lost again and again: the line is too bad")

    def _session(self, waiting: Iterator[NDArray[np.uint32]]) -> Iterator[Result | None]:
        """Results in order, until one is lost: None."""
        longest = (self._most + self._spread * self._opening.pixels.words) / self._clock_hz
        answers = self._line.stream(self._spaced(self._asked(waiting)), longest=longest)
        for number, data in enumerate(answers, 1):
            if data is None or data[1] % (1 << NUMBER_BITS) != number % (1 << NUMBER_BITS):
                yield None
                return
            if data[1] >> NUMBER_BITS & 1:
                raise FailedError
            yield Result(slices=data[2:], cycles=data[0])

    def _asked(self, waiting: Iterator[NDArray[np.uint32]]) -> Iterator[Asked]:
        """Pixels of inputs, and reads of their results behind those of the inputs after them."""
        late, number = self._ahead - 1, 0
        for number, words in enumerate(chain([*self._sent], self._kept(waiting)), 1):
            needs = 0 if self._streams() else max(0, number - self._ahead)
            for first, size in cuts(0, len(words)):
                part = tuple(words[first : first + size].tolist())
                request = Request(sequence=0, command=Command.WRITE, address=DOOR, data=part)
                yield Asked(request=request, needs=needs)
            if number > late:
                yield Asked(request=self._read())
        for _ in range(min(late, number)):
            yield Asked(request=self._read())

    def _kept(self, waiting: Iterator[NDArray[np.uint32]]) -> Iterator[NDArray[np.uint32]]:
        """Inputs, each of which is kept until its result is there."""
        for words in waiting:
            self._sent.append(words)
            yield words

    def _read(self) -> Request:
        return Request(
            sequence=0,
            command=Command.READ,
            address=DOOR | CYCLES,
            words=self._opening.results + 2,
        )

    def _streams(self) -> bool:
        """Whether the line is known to be slower than the core."""
        if self._cycles is None:
            return False
        words = self._opening.pixels.words
        sent = 4 * words + (len(cuts(0, words)) + 1) * FRAME_BYTES
        line = sent * link.BYTE_BITS / self._line.baud
        return line > SPARE * (self._cycles + self._spread * words) / self._clock_hz

    def _spaced(self, asked: Iterable[Asked]) -> Iterator[Asked]:
        """Requests with idle bytes, so that none is complete before the one before it is done."""
        byte = link.BYTE_BITS * self._clock_hz / self._line.baud  # cycles
        busy = 0.0
        for one in asked:
            size = len(one.request.encode())
            yield replace(one, idle=max(0, ceil(busy / byte) - size + 1))
            busy = self._cycles_of(one.request, byte)

    def _cycles_of(self, request: Request, byte: float) -> float:
        """The cycles from a request's last byte to the end of its answer, at most."""
        count, queued = len(request.data), self._opening.queue > 0
        answer = byte * (REPLY_BYTES + link.CRC_BYTES + 1)
        check = CHECK * (4 * count + FRAME_BYTES)
        if request.command == Command.WRITE:
            return answer + check + count * (WORD + (0 if queued else self._spread))
        run = 0 if queued else (self._cycles or 0) + self._spread
        return SPARE * (answer + check + 4 * byte * request.words + run)
